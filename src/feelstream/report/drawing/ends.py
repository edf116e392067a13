"""What runs came to, one number each, side by side: a row for every configuration, a panel for every quantity."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from feelstream.display.picture import Look, in_lines
from feelstream.display.quantities import QUANTITIES, Quantity
from feelstream.errors import RunError
from feelstream.experiment.statistics import LEAST_SEEDS
from feelstream.report.drawing.energy_axis import log_ticks
from feelstream.report.drawing.limits import log_limits, spans_decades
from feelstream.report.drawing.style import COLUMN_WIDTH_IN, RC, legible, line_colour, line_style

ROW_IN, AROUND_IN = 0.19, 0.75  # height of a row, and of all that is not rows


def ends_figure(
    arms: Sequence[str], summary: pl.DataFrame, runs: pl.DataFrame, quantities: Sequence[str], look: Look
) -> Figure:
    """Means with 95 % intervals; below five seeds, every seed. The first configuration is on top.

    runs: `comparison.per_run`.
    """
    shown = [name for name in quantities if summary.filter(pl.col("quantity") == name)["mean"].is_finite().any()]
    if not shown:
        raise RunError(f"no run has {' or '.join(quantities)} to draw")
    with look.settings(RC):
        size = (COLUMN_WIDTH_IN * max(1 / len(shown), 0.7), ROW_IN * len(arms) + AROUND_IN)
        figure, grid = look.panels(len(shown), len(shown), size)
        for place, (axes, name) in enumerate(zip(grid, shown, strict=True)):
            _draw(axes, QUANTITIES[name], arms, summary.filter(pl.col("quantity") == name), runs)
            axes.set_yticks(range(len(arms)), [legible(arm) for arm in arms] if place == 0 else [])
            axes.set_ylim(len(arms) - 0.5, -0.5)
            axes.tick_params(axis="y", length=0)
            axes.grid(axis="y", visible=False)
    return figure


def _draw(axes: Axes, quantity: Quantity, arms: Sequence[str], rows: pl.DataFrame, runs: pl.DataFrame) -> None:
    means: list[float] = []
    for row in rows.filter(pl.col("mean").is_finite()).rows(named=True):
        place, mean = list(arms).index(row["arm"]), row["mean"] * quantity.scale
        means.append(mean)
        style, colour = line_style(0), line_colour(0)
        low, high = row["low"], row["high"]
        if row["n"] < LEAST_SEEDS or low is None:
            own = (runs.filter(arm=row["arm"])[quantity.name].drop_nulls() * quantity.scale).to_list()
            axes.plot(own, [place] * len(own), ".", color=colour, alpha=0.5, markersize=3, zorder=1.5)
            bar = None
        else:
            bar = [[mean - low * quantity.scale], [high * quantity.scale - mean]]
        axes.errorbar(
            [mean], [place], xerr=bar, color=colour, marker=style.marker, markerfacecolor="white", markeredgewidth=0.9,
            elinewidth=0.9, capsize=2,
        )  # fmt: skip
    axes.set_xlabel(in_lines(quantity.axis))
    if quantity.logarithmic and spans_decades(means) and min(means) > 0:
        axes.set_xscale("log")
        low, high = log_limits([*means, *axes.get_xlim()])
        ticks = log_ticks(low, high)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, min_n_ticks=2))
