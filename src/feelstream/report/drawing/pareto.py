"""Accuracy against energy: the plot for papers and the chart of the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log10, sqrt
from typing import Any

from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from feelstream.display.picture import Look
from feelstream.display.quantities import QUANTITIES, short, significant
from feelstream.experiment.measures import Point
from feelstream.report.drawing.accuracy_axis import bend, bent
from feelstream.report.drawing.energy_axis import ROOM, EnergyAxis, energy_axis
from feelstream.report.drawing.figures import styled
from feelstream.report.drawing.labels import label_points
from feelstream.report.drawing.legend import legend_below
from feelstream.report.drawing.style import COLUMN_WIDTH_IN, LINE_STYLES, RC, legible, line_style
from feelstream.report.html.charts import plain

X_AXIS, Y_AXIS = QUANTITIES["energy_j"].axis, QUANTITIES["late_accuracy"].axis
TITLE = "Accuracy at the end of the run against energy"
CROWDED = 14  # points from which on the beaten have numbers, and a key beside the plot
KEY_PT = 6.0
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")


def axis_of(points: Sequence[Point]) -> EnergyAxis:
    return energy_axis([point.energy_mj for point in points], [point.energy_half for point in points])


def front_of(points: Sequence[Point]) -> list[Point]:
    """The points on the front, from the cheapest to the most accurate."""
    return sorted((point for point in points if point.on_front), key=lambda point: (point.energy_mj, point.accuracy))


def pareto_figure(points: Sequence[Point], look: Look | None = None) -> Figure:
    """All arms with 95 % intervals; those on the front filled and joined by a line, every one with its name.

    Of many arms the beaten have numbers, whose names are beside the plot: names would cover each other. look: the
    user's; default, that of a paper.
    """
    with look.settings(RC) if look else styled():
        figure, (axes,) = (look or Look()).panels(1, 1, (2 * COLUMN_WIDTH_IN, 1.15 * COLUMN_WIDTH_IN))
        best, other = line_style(0).light, "#5C6670"
        front, x_axis = front_of(points), axis_of(points)
        if len(front) > 1:
            axes.plot(
                [x_axis.place(point.energy_mj) for point in front], [point.accuracy for point in front],
                color=best, linewidth=0.9, drawstyle="steps-post", alpha=0.6, label="Pareto front", zorder=1.5,
            )  # fmt: skip
        for chosen, colour, face, name in ((True, best, best, "on the front"), (False, other, "white", "beaten")):
            shown = [point for point in points if point.on_front is chosen]
            if shown:
                axes.errorbar(
                    [x_axis.place(point.energy_mj) for point in shown], [point.accuracy for point in shown],
                    xerr=[point.energy_half or 0.0 for point in shown],
                    yerr=[point.accuracy_half or 0.0 for point in shown],
                    fmt="o", color=colour, markerfacecolor=face, markersize=4.2, markeredgewidth=0.9,
                    elinewidth=0.6, ecolor=(*to_rgb(colour), 0.55), label=legible(name),
                )  # fmt: skip
        if x_axis.logarithmic:
            axes.set_xscale("log")
        axes.set_xlabel(X_AXIS)
        axes.set_ylabel(Y_AXIS)
        if bent([point.accuracy for point in points]):
            bend(axes, *_y_limits(points))
        else:
            axes.set_ylim(*_y_limits(points))
        axes.set_xlim(x_axis.low, x_axis.high)
        if x_axis.logarithmic:
            axes.set_xticks([at for at, _ in x_axis.ticks], [text for _, text in x_axis.ticks])
            axes.xaxis.set_minor_formatter(NullFormatter())
        if x_axis.break_at is not None:
            axes.axvline(x_axis.break_at, color="#AAAAAA", linewidth=0.7, linestyle=(0, (2, 3)), zorder=0.5)
            axes.xaxis.set_minor_locator(NullLocator())
        if look and look.ax is not None:
            axes.legend()
        else:
            legend_below(figure, [axes], grow=False)
        beaten = sorted((point for point in points if not point.on_front), key=lambda point: -point.accuracy)
        ordered, names = [*front, *beaten], [point.arm for point in (*front, *beaten)]
        if len(points) > CROWDED and beaten:
            numbers = [str(number) for number in range(1, len(beaten) + 1)]
            names[len(front) :] = numbers
            key = "\n".join(f"{n}  {legible(point.arm)}" for n, point in zip(numbers, beaten, strict=True))
            axes.annotate(
                key, (1.015, 1.0), xycoords="axes fraction", va="top", fontsize=KEY_PT, linespacing=1.25,
                parse_math=False,
            )  # fmt: skip
        label_points(
            figure, axes, [(x_axis.place(p.energy_mj), p.accuracy) for p in ordered], names,
            size_pt=6.5, bars=[bar for p in points for bar in _bars(p, x_axis)],
        )  # fmt: skip
    return figure


def _bars(point: Point, x_axis: EnergyAxis) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Both error bars from end to end."""
    x, y, dx, dy = x_axis.place(point.energy_mj), point.accuracy, point.energy_half, point.accuracy_half
    if dx:
        yield (max(x - dx, x / 1e3), y), (x + dx, y)  # a logarithmic axis has no place for 0
    if dy:
        yield (x, y - dy), (x, y + dy)


def _y_limits(points: Sequence[Point]) -> tuple[float, float]:
    """All points and bars with some room; an interval may reach past what is possible, the axis does not."""
    low = min(point.accuracy - (point.accuracy_half or 0.0) for point in points)
    high = max(point.accuracy + (point.accuracy_half or 0.0) for point in points)
    room = ROOM * (high - low) or 1.0
    return max(low - room, 0.0), min(high + room, 100.0)


def pareto_chart(points: Sequence[Point]) -> dict[str, Any]:
    """The same as a plotly specification; names of beaten arms are in the legend, or they would cover each other."""
    front, axis = front_of(points), axis_of(points)
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": "Pareto front",
        "x": [short(axis.place(point.energy_mj)) for point in front],
        "y": [short(point.accuracy) for point in front],
        "line": {"width": 1, "shape": "hv", "dash": "dot"},
        "hoverinfo": "skip",
        "meta": {"role": "budget"},  # drawn in the colour of the text
    }
    traces: list[dict[str, Any]] = [line] if len(front) > 1 else []
    low, high = axis.low, axis.high
    x_axis: dict[str, Any] = {"title": {"text": X_AXIS}, "range": [short(low), short(high)]}
    middle = (low + high) / 2
    if axis.logarithmic:
        middle = sqrt(low * high)
        x_axis |= {"type": "log", "range": [short(log10(low)), short(log10(high))]}
        x_axis |= {"tickvals": [at for at, _ in axis.ticks], "ticktext": [text for _, text in axis.ticks]}
    for index, point in enumerate(points):
        # Colours come again after seven arms; the symbol then is another one.
        symbol = SYMBOLS[(index + index // len(LINE_STYLES)) % len(SYMBOLS)]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers+text" if point.on_front else "markers",
                "name": plain(point.arm),
                "text": [plain(point.arm)],
                # Towards the middle: a phone's screen is hardly wider than two names.
                "textposition": "top right" if axis.place(point.energy_mj) < middle else "top left",
                "cliponaxis": False,
                "x": [short(axis.place(point.energy_mj))],
                "y": [short(point.accuracy)],
                "error_x": _bar(point.energy_half),
                "error_y": _bar(point.accuracy_half),
                "marker": {
                    "size": 10,
                    "symbol": symbol if point.on_front else f"{symbol}-open",
                    "line": {"width": 1.5},
                },
                "line": {"width": 1},
                "customdata": [[_margin(point.energy_half), _margin(point.accuracy_half), short(point.energy_mj)]],
                "hovertemplate": "%{y:.4~g}%{customdata[1]} %<br>%{customdata[2]:.4~g}%{customdata[0]} mJ",
                "meta": {"role": "point", "style": index},
            }
        )
    layout = {
        "hovermode": "closest",
        "xaxis": x_axis,
        "yaxis": {"title": {"text": Y_AXIS}, "range": [short(limit) for limit in _y_limits(points)]},
    }
    return {"title": TITLE, "axis": f"{Y_AXIS} against {X_AXIS}", "traces": traces, "layout": layout}


def _bar(half: float | None) -> dict[str, Any]:
    return {"type": "data", "array": [short(half or 0.0)], "visible": half is not None, "thickness": 1, "width": 0}


def _margin(half: float | None) -> str:
    return "" if half is None else f" ± {significant(half, 3)}"
