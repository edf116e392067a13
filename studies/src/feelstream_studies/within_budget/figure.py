"""The figure: accuracy against energy over budget, a panel for each scenario."""

from __future__ import annotations

from math import ceil

import polars as pl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from feelstream.studies.pages import (
    BUDGET_LINE,
    COLUMN_WIDTH_IN,
    PANEL_HEIGHT_IN,
    legend_below,
    line_style,
    log_ticks,
    styled,
)
from feelstream_studies.within_budget.configurations import POLICIES

ACROSS = 3


def figure_of(table: pl.DataFrame) -> Figure:
    """A point for each policy with 95 % intervals; left of the dashed line, devices keep the budget on average."""
    scenarios = table["scenario"].unique(maintain_order=True).to_list()
    across = min(ACROSS, max(len(scenarios), 1))
    down = ceil(len(scenarios) / across)
    spent = [1.0, *(value for value in table["energy_over_budget"].drop_nulls() if value > 0)]
    low, high = min(spent) / 2, 3 * max(spent)
    ticks = log_ticks(low, high)
    with styled():
        size = (2 * COLUMN_WIDTH_IN, 0.95 * down * PANEL_HEIGHT_IN + 0.6)
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(down, across, squeeze=False).ravel()
        for axes, scenario in zip(grid, scenarios, strict=False):
            for number, policy in enumerate(POLICIES):
                rows = table.filter(scenario=scenario, policy=policy).drop_nulls("energy_over_budget")
                style = line_style(number)
                for row in rows.iter_rows(named=True):
                    axes.errorbar(
                        row["energy_over_budget"], 100 * row["late_accuracy"], yerr=_half(row, "late_accuracy", 100.0),
                        xerr=_half(row, "energy_over_budget", 1.0), color=style.light, marker=style.marker,
                        linestyle="none", markersize=4.5, elinewidth=0.6, label=policy,
                    )  # fmt: skip
            axes.axvline(1.0, label="budget", **BUDGET_LINE)
            axes.set_xscale("log")
            axes.set_xlim(low, high)  # the same in all, so that panels can be compared
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.yaxis.set_major_locator(MaxNLocator(4))
            axes.set_title(scenario, loc="left", pad=4)
        for axes in grid[max(len(scenarios) - across, 0) : len(scenarios)]:
            axes.set_xlabel("Energy / budget")
        for axes in grid[::across]:
            axes.set_ylabel("Accuracy, last fifth (%)")
        for axes in grid[len(scenarios) :]:
            axes.set_visible(False)
        legend_below(figure, list(grid[: len(scenarios)]))
    return figure


def _half(row: dict[str, float], name: str, scale: float) -> float:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return 0.0 if low is None or high is None else scale * (high - low) / 2
