"""The result at a glance: accuracy and energy over budget by scenario."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from feelstream.studies import pages
from feelstream_studies.within_budget.configurations import LONGER
from feelstream_studies.within_budget.findings import pairs, same_server

EVERYONE, OWN, SAME = "training everyone", "balanced_joint", "training everyone, same server"
ROW_IN = 0.24  # height of a scenario in the picture
Row = dict[str, Any]


def overview_figure(table: pl.DataFrame, policy: str = LONGER) -> Figure:
    """Accuracy on the left, energy on the right, with 95 % intervals; a line for each scenario.

    Everyone with the same server is shown where it was played with as many seeds.
    """
    both = pairs(table, policy)
    everyone, own = [row for _, row, _ in both], [row for _, _, row in both]
    dot: Row = {"markersize": 5}
    shown: list[tuple[str, int, Row, Sequence[Row | None]]] = [(EVERYONE, 0, dot, everyone), (OWN, 1, dot, own)]
    if any(same := same_server(table, policy)):  # rings, around the dots whose energy they share
        shown.append((SAME, 0, {"markersize": 7.5, "markerfacecolor": "none"}, same))
    with pages.styled():
        figure = Figure(figsize=(2 * pages.COLUMN_WIDTH_IN, ROW_IN * len(both) + 1.1), layout="constrained")
        accuracy, energy = figure.subplots(1, 2, sharey=True)
        for label, number, look, rows in shown:
            style = pages.line_style(number)
            for height, row in enumerate(rows):
                for axes, name, scale in ((accuracy, "late_accuracy", 100.0), (energy, "energy_over_budget", 1.0)):
                    if row is not None and row[name] is not None:
                        axes.errorbar(
                            scale * row[name], height, xerr=_half(row, name, scale), color=style.light, **look,
                            marker=style.marker, linestyle="none", elinewidth=0.8, label=label,
                        )  # fmt: skip
        _against_budget(energy, [row["energy_over_budget"] or 1.0 for row in [*everyone, *own]])
        accuracy.set_yticks(range(len(both)), [scenario for scenario, *_ in both])
        accuracy.set_ylim(len(both) - 0.5, -0.5)  # the first at the top, as in the table
        accuracy.set_xlabel("Accuracy, last fifth (%)")
        energy.set_xlabel("Energy / budget")
        pages.legend_below(figure, [accuracy, energy])
    return figure


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
