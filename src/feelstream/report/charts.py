"""Charts of results: by round, against what was varied, accuracy against energy, whole runs, and tuning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from feelstream.display.chart import (
    MOST_BANDS,
    ROUNDS,
    Axis,
    Chart,
    Line,
    budget_line,
    logarithmic_axis,
    quantity_axis,
    spans_decades,
)
from feelstream.display.picture import in_lines
from feelstream.display.quantities import QUANTITIES, Quantity
from feelstream.errors import RunError
from feelstream.experiment.measures import Point
from feelstream.experiment.runs import series
from feelstream.experiment.statistics import LEAST_SEEDS, band_by_round
from feelstream.experiment.tuning import MEASURED, Trade, keeps
from feelstream.report.groups import Varied

MOST_SEEDS = 100  # lines of single seeds of one arm: more are one patch of colour
MOST_VALUES = 8  # of a field that was varied, each of which gets a tick
GOOD, APART = 90.0, 12.0  # %; from here on, and from this distance to the worst, differences are of the error
AGAINST = ("late_accuracy", "energy_j")  # what is shown against a field that was varied
TITLE = "Accuracy at the end of the run against energy"


def curve_chart(
    column: str,
    arms: Sequence[tuple[str, str]],
    rounds: pl.DataFrame,
    budget_j: float | None = None,
    styles: Sequence[str] = (),
    heading: str = "",
) -> Chart:
    """A quantity by round: means with 95 % bands, below five seeds the seeds themselves. No lines: nothing is known.

    arms: label and name of each. styles: the names of all lines of the figure, of which each has a style; by default,
    those of this chart.
    """
    quantity = QUANTITIES[column]
    curves = band_by_round(rounds.filter(pl.col("arm").is_in([arm for arm, _ in arms])), column)
    few = curves.is_empty() or int(curves["n"].to_numpy().max()) < LEAST_SEEDS
    order = {name: index for index, name in enumerate(styles or [name for _, name in arms])}
    lines: list[Line] = []
    for arm, name in arms:
        rows, own = curves.filter(arm=arm).sort("round"), series(rounds, arm, column)
        if own is None:
            continue
        mean, low, high = ((rows[end] * quantity.scale).to_list() for end in ("mean", "low", "high"))
        several = own.values[:MOST_SEEDS] if len(own.seeds) > 1 else ()
        lines.append(
            Line(
                name,
                rows["round"].to_list(),
                mean,
                order[name],
                y_ends=() if None in low else list(zip(low, high, strict=True)),
                interval="words" if few or len(arms) > MOST_BANDS else "band",
                seeds=[(own.rounds.tolist(), (row * quantity.scale).tolist()) for row in several],
            )
        )
    if not lines:
        return Chart(quantity.words, ROUNDS, Axis(quantity.axis), (), few, heading)
    last = [line.y[-1] for line in lines]
    across = [x for line in lines for x in line.x]
    budget = []
    if budget_j is not None and column == "energy_mean_cum_j":
        budget = [budget_line(budget_j, quantity, across, last)]
    shown = [y for line in [*lines, *budget] for y in line.y]
    if few:  # what was measured stays in the picture
        shown += [y for line in lines for _, own in line.seeds for y in own]
    ends = [] if few else [end for line in lines for end in line.y_ends]
    y_axis = quantity_axis(quantity, shown, ends, last, cut=True)
    return Chart(quantity.words, ROUNDS, y_axis, [*lines, *budget], few, heading)


def varied_charts(
    axis: Varied, summary: pl.DataFrame, runs: pl.DataFrame, quantities: Sequence[str], budget_j: float | None = None
) -> list[Chart]:
    """Each quantity that any run has against the field: mean and 95 % interval; below five seeds, every seed. Of arms
    without the field, a level line with its band.

    runs: `runs.of_rounds`. budget_j: of all.
    """
    values = sorted({value for points in axis.lines.values() for value, _ in points})
    label = axis.field.rpartition(".")[2]
    if spans_decades(values) and values[0] > 0:
        x_axis = logarithmic_axis(label, values)
    elif len(values) <= MOST_VALUES:
        x_axis = Axis(label, ticks=[(value, f"{value:g}") for value in values])
    else:
        x_axis = Axis(label, whole=all(value.is_integer() for value in values))
    charts = []
    for quantity in _known(quantities, summary):
        rows = _rows(summary, quantity.name)
        lines: list[Line] = []
        for style, (name, points) in enumerate(axis.lines.items()):
            found = [(value, rows[arm]) for value, arm in points if arm in rows]
            if found:
                lines.append(
                    _with_dots(name, style, [value for value, _ in found], [row for _, row in found], quantity, runs)
                )
        if not lines:  # no run along this field has finished
            continue
        for style, arm in enumerate(axis.without, len(axis.lines)):  # the same at any value
            if arm in rows:
                level = _with_dots(arm, style, [values[0], values[-1]], [rows[arm]] * 2, quantity, runs)
                lines.append(replace(level, interval="band"))
        means = [y for line in lines for y in line.y]
        budget = []
        if quantity.name == "energy_j" and budget_j is not None:
            budget = [budget_line(budget_j, quantity, values, means)]
        shown = [y for line in [*lines, *budget] for y in (*line.y, *line.dots[1])]
        y_axis = quantity_axis(quantity, shown, [end for line in lines for end in line.y_ends], means)
        charts.append(Chart(f"{quantity.words} against {axis.field}", x_axis, y_axis, [*lines, *budget]))
    return charts


def ends_charts(
    arms: Sequence[str], summary: pl.DataFrame, runs: pl.DataFrame, quantities: Sequence[str]
) -> list[Chart]:
    """What runs came to, one number each: a row for every configuration, the first on top, a chart per quantity."""
    charts, names = [], [(float(place), arm) for place, arm in enumerate(arms)]
    for quantity in (known := _known(quantities, summary)):
        rows = _rows(summary, quantity.name).values()
        lines = [_with_dots("", 0, [list(arms).index(row["arm"])], [row], quantity, runs, across=True) for row in rows]
        shown = [x for line in lines for x in (*line.x, *line.dots[0])]
        ends = [end for line in lines for end in line.x_ends]
        x_axis = quantity_axis(quantity, shown, ends, [line.x[0] for line in lines])
        x_axis = replace(x_axis, label=in_lines(x_axis.label))
        ticks = names if quantity is known[0] else []
        y_axis = Axis("", (-0.5, len(arms) - 0.5), ticks=ticks, down=True)
        charts.append(Chart(quantity.words, x_axis, y_axis, lines))
    return charts


def pareto_chart(points: Sequence[Point]) -> Chart:
    """A point with its intervals for each arm; those on the front are filled and joined.

    An arm that spends nothing stands at the left end of a logarithmic axis, over a tick that says 0.
    """
    energy, accuracy = QUANTITIES["energy_j"], QUANTITIES["late_accuracy"]
    at, ends = [point.energy_mj for point in points], [_around(p.energy_mj, p.energy_half) for p in points]
    spent = [value for value in at if value > 0]
    x_axis = quantity_axis(energy, spent if spans_decades(spent) else at, ends)
    zero = min(spent) / 3 if x_axis.logarithmic else 0.0
    if x_axis.logarithmic and len(spent) < len(at):
        limits = zero / 1.5, x_axis.limits[1] if x_axis.limits else max(spent)
        x_axis = replace(x_axis, limits=limits, ticks=[(zero, "0"), *(x_axis.ticks or ())])
    heights = [_around(point.accuracy, point.accuracy_half) for point in points]
    percent = [point.accuracy for point in points]
    y_axis = quantity_axis(accuracy, percent, heights)
    if max(percent) > GOOD and max(percent) - min(percent) > APART:  # or the good ones would stick together
        y_axis = replace(y_axis, by_error=True)
    lines = [
        Line(
            point.arm, [point.energy_mj or zero], [point.accuracy], style, "point", filled=point.on_front,
            x_ends=[across] if point.energy_half and point.energy_mj else (),
            y_ends=[upwards] if point.accuracy_half is not None else (),
        )
        for style, (point, across, upwards) in enumerate(zip(points, ends, heights, strict=True))
    ]  # fmt: skip
    front = front_of(points)
    if len(front) > 1:
        places = [point.energy_mj or zero for point in front]
        lines.insert(0, Line("Pareto front", places, [p.accuracy for p in front], role="plain", steps=True))
    return Chart(TITLE, x_axis, y_axis, lines)


def front_of(points: Sequence[Point]) -> list[Point]:
    """The points on the front, from the cheapest to the most accurate."""
    return sorted((point for point in points if point.on_front), key=lambda point: (point.energy_mj, point.accuracy))


def trade_off_charts(field: str, trades: Sequence[Trade], budget_j: float) -> list[Chart]:
    """Importance, and accuracy where it was learned, against energy: a point a weight, filled if it keeps the budget.

    The least and the largest weight are named, and the one that favours importance most and keeps the budget.
    """
    energy = QUANTITIES[MEASURED["energy_j"]]
    budget, charts = budget_j * energy.scale, []
    for what in ("importance", "accuracy"):
        quantity = QUANTITIES[MEASURED[what]]
        points = [(trade, trade.energy_j, value) for trade in trades if (value := getattr(trade, what)) is not None]
        if not points:
            continue
        lines = []
        for trade, spent, value in points:
            kept = keeps(trade, budget_j)
            lines.append(
                Line(
                    "keeps the budget" if kept else "may exceed it",
                    [spent.mean * energy.scale],
                    [value.mean * quantity.scale],
                    role="point",
                    x_ends=[_scaled(spent.low, spent.high, spent.mean, energy)],
                    y_ends=[_scaled(value.low, value.high, value.mean, quantity)],
                    filled=kept,
                )
            )
        x, y = [line.x[0] for line in lines], [line.y[0] for line in lines]
        x_axis = quantity_axis(energy, [*x, budget], [line.x_ends[0] for line in lines])
        y_axis = quantity_axis(quantity, y, [line.y_ends[0] for line in lines])
        joined, limit = Line("", x, y, role="plain"), Line("budget", [budget] * 2, y_axis.limits or (), role="budget")
        keeping = [place for place, line in enumerate(lines) if line.filled]
        best = max(keeping, key=lambda place: points[place][0].importance.mean, default=0)
        named = {(x[place], y[place]): place for place in (len(points) - 1, best, 0)}  # one word for each place
        notes = [(at, f"{field} = {points[place][0].weight:g}") for at, place in named.items()]
        charts.append(Chart(quantity.words, x_axis, y_axis, [joined, *lines, limit], notes=notes))
    return charts


def _known(quantities: Sequence[str], summary: pl.DataFrame) -> list[Quantity]:
    known = [QUANTITIES[name] for name in quantities if _rows(summary, name)]
    if not known:
        raise RunError(f"no run has {' or '.join(quantities)} to draw")
    return known


def _rows(summary: pl.DataFrame, quantity: str) -> dict[str, dict[str, Any]]:
    """By arm; without those that have no mean, as where a target was never reached."""
    known = summary.filter(pl.col("quantity") == quantity, pl.col("mean").is_finite())
    return {row["arm"]: row for row in known.rows(named=True)}


def _with_dots(
    name: str,
    style: int,
    at: Sequence[float],
    rows: Sequence[dict[str, Any]],
    quantity: Quantity,
    runs: pl.DataFrame,
    across: bool = False,
) -> Line:
    """Means of a summary's rows at these places, with their intervals; below five seeds with all that was measured."""
    mean = [row["mean"] * quantity.scale for row in rows]
    few = max(row["n"] for row in rows) < LEAST_SEEDS
    ends = [] if few else [_scaled(row["low"], row["high"], row["mean"], quantity) for row in rows]
    dots = [
        (place, value * quantity.scale)
        for place, row in zip(at, rows, strict=True)
        for value in (runs.filter(arm=row["arm"])[quantity.name].drop_nulls().to_list() if few else ())
    ]
    places, values = [place for place, _ in dots], [value for _, value in dots]
    if across:
        return Line(name, mean, at, style, x_ends=ends, dots=(values, places))
    return Line(name, at, mean, style, y_ends=ends, dots=(places, values))


def _scaled(low: float | None, high: float | None, mean: float, quantity: Quantity) -> tuple[float, float]:
    return (mean if low is None else low) * quantity.scale, (mean if high is None else high) * quantity.scale


def _around(value: float, half: float | None) -> tuple[float, float]:
    return value - (half or 0.0), value + (half or 0.0)
