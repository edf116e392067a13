"""Two figures: accuracy and energy by scenario, and accuracy over the number of devices and of those in a round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from feelstream.studies import pages
from feelstream_studies.within_budget.configurations import (
    DEVICES,
    EVERYONE,
    LABEL_FREE,
    LABELS,
    MORE,
    ON_TWO,
    SCENARIOS,
    of_devices,
)
from feelstream_studies.within_budget.findings import row_of

ROW_IN = 0.24  # height of a scenario in the picture
SHOWN = {EVERYONE: "everyone, same server", LABELS: "balanced_joint, told labels", LABEL_FREE: "told a sketch"}
Row = dict[str, Any]


def overview_figure(table: pl.DataFrame) -> Figure:
    """Accuracy on the left, energy on the right, with 95 % intervals; a line for each scenario."""
    names = [name for name in SCENARIOS if row_of(table, name, LABELS)]
    with pages.styled():
        figure = Figure(figsize=(2 * pages.COLUMN_WIDTH_IN, ROW_IN * len(names) + 1.1), layout="constrained")
        accuracy, energy = figure.subplots(1, 2, sharey=True)
        for number, (way, label) in enumerate(SHOWN.items()):
            rows = [row_of(table, name, way) for name in names]
            heights = [height + 0.18 * (number - 1) for height in range(len(names))]
            for axes, name, scale in ((accuracy, "late_accuracy", 100.0), (energy, "energy_over_budget", 1.0)):
                _points(axes, number, label, heights, rows, name, scale)
        spent = [
            row["energy_over_budget"] or 1.0 for name in names for way in SHOWN if (row := row_of(table, name, way))
        ]
        _against_budget(energy, spent)
        accuracy.set_yticks(range(len(names)), names)
        accuracy.set_ylim(len(names) - 0.5, -0.5)  # the first at the top, as in the table
        accuracy.set_xlabel("Accuracy, last fifth (%), 95 % interval")
        energy.set_xlabel("Energy / budget")
        pages.legend_below(figure, [accuracy, energy])
    return figure


def _points(
    axes: Axes, number: int, label: str, heights: Sequence[float], rows: Sequence[Row | None], name: str, scale: float
) -> None:
    style = pages.line_style(number)
    for height, row in zip(heights, rows, strict=True):
        if row is not None and row[name] is not None:
            axes.errorbar(
                scale * row[name], height, xerr=_half(row, name, scale), color=style.light, markersize=5,
                marker=style.marker, linestyle="none", elinewidth=0.8, label=label,
            )  # fmt: skip


def devices_figure(table: pl.DataFrame) -> Figure:
    """Accuracy over K on the left, and over devices a round on the right where K is 400; 95 % intervals."""
    with pages.styled():
        size = (2 * pages.COLUMN_WIDTH_IN, pages.PANEL_HEIGHT_IN + 0.3)
        figure = Figure(figsize=size, layout="constrained")
        by_devices, by_round = figure.subplots(1, 2, sharey=True)
        for number, name in enumerate(ON_TWO):
            grown = [(devices, row_of(table, of_devices(name, devices), LABELS)) for devices in DEVICES]
            _line(by_devices, number, name, [(float(devices), row) for devices, row in grown if row])
            more = [row for way in (LABELS, *MORE) if (row := row_of(table, of_devices(name, 400), way))]
            _line(
                by_round,
                number,
                name,
                sorted(((row["devices_a_round"], row) for row in more), key=lambda each: each[0]),
            )
        for axes, label, ticks in (
            (by_devices, "Devices K", list(DEVICES)),
            (by_round, "Devices a round, K = 400", [1, 2, 4, 8, 16]),
        ):
            axes.set(xscale="log", xlabel=label)
            axes.set_xticks(ticks, [f"{tick}" for tick in ticks])
            axes.minorticks_off()
        by_devices.set_ylabel("Accuracy, last fifth (%)")
        pages.legend_below(figure, [by_devices, by_round])
    return figure


def _line(axes: Axes, number: int, label: str, found: Sequence[tuple[float, Row]]) -> None:
    shown = [(x, row) for x, row in found if row["late_accuracy"] is not None]
    style = pages.line_style(number)
    axes.errorbar(
        [x for x, _ in shown], [100 * row["late_accuracy"] for _, row in shown],
        yerr=[_half(row, "late_accuracy", 100.0) for _, row in shown], color=style.light, marker=style.marker,
        markersize=5, elinewidth=0.8, label=label,
    )  # fmt: skip


def _against_budget(axes: Axes, spent: Sequence[float]) -> None:
    """Energies over the budget on a logarithmic axis, the same one in all panels, with the budget as a line."""
    axes.axvline(1.0, label="budget", **pages.BUDGET_LINE)
    low, high = min([1.0, *spent]) / 2, 3 * max([1.0, *spent])
    ticks = pages.log_ticks(low, high)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])


def _half(row: Row, name: str, scale: float) -> float:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return 0.0 if low is None or high is None else scale * (high - low) / 2
