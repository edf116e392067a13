"""Importance, and accuracy where there is one, against energy, over the weight between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from feelstream.display.picture import Look, label_beside
from feelstream.display.quantities import QUANTITIES
from feelstream.experiment.statistics import Interval
from feelstream.experiment.tuning import MEASURED, Trade, keeps
from feelstream.report.drawing.energy_axis import energy_axis
from feelstream.report.drawing.figures import styled
from feelstream.report.drawing.labels import label_points
from feelstream.report.drawing.legend import legend_below
from feelstream.report.drawing.limits import axis_limits
from feelstream.report.drawing.style import BUDGET_LINE, COLUMN_WIDTH_IN, RC, legible, line_style

ENERGY = QUANTITIES[MEASURED["energy_j"]]
APART = 0.1  # points that differ by less than this part of both ranges count as one, and get one name


def trade_off_figure(field: str, trades: Sequence[Trade], budget_j: float, look: Look | None = None) -> Figure:
    """One point a weight, with its 95 % interval; the budget as a line, weights that keep it filled.

    look: the user's; default, that of a paper.
    """
    with look.settings(RC) if look else styled():
        learned = any(trade.accuracy for trade in trades)
        figure, grid = (look or Look()).panels(2 if learned else 1, 2, (COLUMN_WIDTH_IN, 0.9 * COLUMN_WIDTH_IN))
        for axes, what in zip(grid, ("importance", "accuracy"), strict=False):
            points = [(trade, value) for trade in trades if (value := getattr(trade, what)) is not None]
            if points:
                _draw(axes, points, QUANTITIES[MEASURED[what]].name, budget_j)
        if look and look.ax is not None:
            grid[0].legend()
        else:
            legend_below(figure, grid, grow=look is None or look.figsize is None)
        for axes, what in zip(grid, ("importance", "accuracy"), strict=False):
            scale = QUANTITIES[MEASURED[what]].scale
            named = [
                ((trade.energy_j.mean * ENERGY.scale, value.mean * scale), f"{trade.weight:g}")
                for trade in trades
                if (value := getattr(trade, what)) is not None
            ]
            shown = _apart(named)
            if shown:
                names = [f"{field} = {name}" if place == 0 else name for place, (_, name) in enumerate(shown)]
                line = [point for point, _ in named]
                joined = list(pairwise(line))
                label_points(figure, axes, [point for point, _ in shown], names, size_pt=6, bars=joined)
    return figure


def _draw(axes: Axes, points: Sequence[tuple[Trade, Interval]], column: str, budget_j: float) -> None:
    quantity = QUANTITIES[column]
    energies = [trade.energy_j.mean * ENERGY.scale for trade, _ in points]
    halves = [None if (half := trade.energy_j.half_width) is None else half * ENERGY.scale for trade, _ in points]
    axis = energy_axis([*energies, budget_j * ENERGY.scale], [*halves, None])
    places = [axis.place(energy) for energy in energies]
    axes.plot(places, [value.mean * quantity.scale for _, value in points], color="#5C6670", linewidth=0.8, zorder=1)
    blue = line_style(0).light
    for kept, face, name in ((True, blue, "keeps the budget"), (False, "white", "may exceed it")):
        shown = [
            (place, value, half)
            for place, half, (trade, value) in zip(places, halves, points, strict=True)
            if keeps(trade, budget_j) is kept
        ]
        if shown:
            axes.errorbar(
                [place for place, _, _ in shown], [value.mean * quantity.scale for _, value, _ in shown],
                xerr=[min(half or 0.0, place - axis.low) for place, _, half in shown],
                yerr=[(value.half_width or 0.0) * quantity.scale for _, value, _ in shown],
                color=blue, fmt="o", markersize=3.5, elinewidth=0.6, ecolor=(*to_rgb(blue), 0.45),
                markerfacecolor=face, zorder=2, label=legible(name),
            )  # fmt: skip
    axes.axvline(budget_j * ENERGY.scale, label="budget", **BUDGET_LINE)
    axes.set_xlabel(ENERGY.axis)
    label_beside(axes, quantity)
    lows, highs = (
        [end * quantity.scale for _, value in points if (end := getattr(value, side)) is not None]
        for side in ("low", "high")
    )
    means = [value.mean * quantity.scale for _, value in points]
    axes.set_ylim(*axis_limits(quantity, [*means, *lows, *highs], [], []))  # a few bars, which are all to be seen
    if axis.logarithmic:
        axes.set_xscale("log")
        axes.set_xticks([at for at, _ in axis.ticks], [text for _, text in axis.ticks])
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(axis.low, axis.high)


def _apart(named: Sequence[tuple[tuple[float, float], str]]) -> list[tuple[tuple[float, float], str]]:
    """The points that get a name: none that is as good as at the place of an earlier one, or names would pile up."""
    if not named:
        return []
    spans = [max(point[side] for point, _ in named) - min(point[side] for point, _ in named) for side in (0, 1)]
    shown: list[tuple[tuple[float, float], str]] = []
    for point, name in named:
        near = any(
            all(abs(point[side] - other[side]) <= APART * (spans[side] or 1.0) for side in (0, 1)) for other, _ in shown
        )
        if not near:
            shown.append((point, name))
    return shown
