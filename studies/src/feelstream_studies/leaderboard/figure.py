"""The figure: accuracy against energy over the budget, a panel for each board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
from matplotlib.figure import Figure

from feelstream.studies import pages
from feelstream.studies.results import by_arm

OTHERS = "other entries"
GREY = "#9AA3AB"


def overview_figure(boards: Mapping[str, pl.DataFrame], named: Sequence[str]) -> Figure | None:
    """boards: summaries by title. named: policies with a colour. None where nothing was learned or no energy kept."""
    known = {title: rows for title, summary in boards.items() if (rows := _points(summary))}
    if not known:
        return None
    with pages.styled():
        across, down = min(len(known), 2), -(-len(known) // 2)
        size = (2 * pages.COLUMN_WIDTH_IN, 1.1 * pages.PANEL_HEIGHT_IN * down + 0.35)
        figure = Figure(figsize=size, layout="constrained")
        grid = list(figure.subplots(down, across, squeeze=False).flat)
        for axes in grid[len(known) :]:
            axes.set_visible(False)
        for axes, (title, points) in zip(grid, known.items(), strict=False):
            for arm in sorted(points, key=lambda arm: arm in named):  # the named on top
                energy, accuracy, half = points[arm]
                style = pages.line_style(named.index(arm)) if arm in named else None
                axes.errorbar(
                    energy, accuracy, yerr=half, linestyle="none", elinewidth=0.7, markersize=5 if style else 3.5,
                    color=style.light if style else GREY, marker=style.marker if style else "o",
                    label=arm if style else OTHERS,
                )  # fmt: skip
            axes.axvline(1.0, label="budget", **pages.BUDGET_LINE)
            spent = [energy for energy, *_ in points.values()]
            low, high = min([1.0, *spent]) / 2, 2 * max([1.0, *spent])
            ticks = pages.log_ticks(low, high)
            axes.set(xscale="log", xlim=(low, high))
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.set_xlabel("Energy / budget")
            axes.set_title(title, loc="left", pad=4)
        grid[0].set_ylabel("Accuracy, last fifth (%)")
        pages.legend_below(figure, grid)
    return figure


def _points(summary: pl.DataFrame) -> dict[str, tuple[float, float, float]]:
    """Energy over the budget, accuracy and half of its interval, %."""
    found = {}
    for arm, rows in by_arm(summary).items():
        late, spent = rows.get("late_accuracy", {}), rows.get("energy_over_budget", {})
        if late.get("n") and spent.get("n") and spent["mean"] > 0:
            half = 0.0 if late["low"] is None else 50 * (late["high"] - late["low"])
            found[arm] = (spent["mean"], 100 * late["mean"], half)
    return found
