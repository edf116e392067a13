"""Accuracy against energy: the plot for papers and the chart of the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor, log10, sqrt
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from feelstream.experiment.leaderboard import Point
from feelstream.report.drawing.figures import styled
from feelstream.report.drawing.labels import label_points
from feelstream.report.drawing.style import COLUMN_WIDTH_IN, LINE_STYLES, line_style
from feelstream.report.html.charts import plain
from feelstream.report.numbers import significant

X_AXIS, Y_AXIS = "Energy per device (mJ per round)", "Test accuracy (%)"
TITLE = "Accuracy at the end of the run against energy"
WIDE = 8.0  # energies that differ by more than this factor get a logarithmic axis
ROOM = 0.08  # beside the outermost points, as a part of the axis
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")


def is_wide(points: Sequence[Point]) -> bool:
    energies = [point.energy_mj for point in points]
    return min(energies) > 0 and max(energies) > WIDE * min(energies)


def log_ticks(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis between two positive values: 1, 2, 5 of each decade, or decades if they are many."""
    steps = (1, 2, 5) if high < 100 * low else (1,)
    decades = range(floor(log10(low)), floor(log10(high)) + 1)
    return [tick for power in decades for step in steps if low <= (tick := step * 10.0**power) <= high]


def front_of(points: Sequence[Point]) -> list[Point]:
    """The points on the front, from the cheapest to the most accurate."""
    return sorted((point for point in points if point.on_front), key=lambda point: (point.energy_mj, point.accuracy))


def pareto_figure(points: Sequence[Point]) -> Figure:
    """All arms with 95 % intervals; those on the front filled and joined by a line, every one with its name."""
    with styled():
        figure = Figure(figsize=(2 * COLUMN_WIDTH_IN, 1.15 * COLUMN_WIDTH_IN), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        best, other = line_style(0).light, "#5C6670"
        front = front_of(points)
        if len(front) > 1:
            axes.plot(
                [point.energy_mj for point in front], [point.accuracy for point in front],
                color=best, linewidth=0.9, drawstyle="steps-post", alpha=0.6, label="Pareto front", zorder=1.5,
            )  # fmt: skip
        for chosen, colour, face, name in ((True, best, best, "on the front"), (False, other, "white", "beaten")):
            shown = [point for point in points if point.on_front is chosen]
            if shown:
                axes.errorbar(
                    [point.energy_mj for point in shown], [point.accuracy for point in shown],
                    xerr=[point.energy_half or 0.0 for point in shown],
                    yerr=[point.accuracy_half or 0.0 for point in shown],
                    fmt="o", color=colour, markerfacecolor=face, markersize=4.2, markeredgewidth=0.9,
                    elinewidth=0.6, ecolor=(*to_rgb(colour), 0.55), label=name,
                )  # fmt: skip
        if is_wide(points):
            axes.set_xscale("log")
        axes.set_xlabel(X_AXIS)
        axes.set_ylabel(Y_AXIS)
        axes.margins(y=0.08)
        # An interval may reach past what is possible; the axes do not.
        axes.set_ylim(max(axes.get_ylim()[0], 0.0), min(axes.get_ylim()[1], 100.0))
        axes.set_xlim(_x_limits(points))
        if is_wide(points):
            ticks = log_ticks(*axes.get_xlim())
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.xaxis.set_minor_formatter(NullFormatter())
        figure.legend(loc="outside lower center", ncols=3)
        ordered = [*front, *(point for point in points if not point.on_front)]
        label_points(
            figure, axes, [(p.energy_mj, p.accuracy) for p in ordered], [p.arm for p in ordered], size_pt=6.5,
            bars=[bar for p in points for bar in _bars(p)],
        )  # fmt: skip
    return figure


def _bars(point: Point) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Both error bars from end to end."""
    x, y, dx, dy = point.energy_mj, point.accuracy, point.energy_half, point.accuracy_half
    if dx:
        yield (max(x - dx, x / 1e3), y), (x + dx, y)  # a logarithmic axis has no place for 0
    if dy:
        yield (x, y - dy), (x, y + dy)


def _x_limits(points: Sequence[Point]) -> tuple[float, float]:
    """All points and bars with some room beside; on a logarithmic axis, bars that reach far down run out of it."""
    ends = [(p.energy_mj - (p.energy_half or 0), p.energy_mj + (p.energy_half or 0)) for p in points]
    energies = [p.energy_mj for p in points]
    if is_wide(points):
        room = (max(energies) / min(energies)) ** ROOM
        lows = [low for low, _ in ends if low > min(energies) / room**2]
        return min([*lows, *energies]) / room, max(high for _, high in ends) * room
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    room = ROOM * (high - low) or ROOM * high or 1.0
    return max(low - room, 0.0), high + room


def pareto_chart(points: Sequence[Point]) -> dict[str, Any]:
    """The same as a plotly specification; names of beaten arms are in the legend, lest they cover each other."""
    front = front_of(points)
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": "Pareto front",
        "x": [_short(point.energy_mj) for point in front],
        "y": [_short(point.accuracy) for point in front],
        "line": {"width": 1, "shape": "hv", "dash": "dot"},
        "hoverinfo": "skip",
        "meta": {"role": "budget"},  # drawn in the colour of the text
    }
    traces: list[dict[str, Any]] = [line] if len(front) > 1 else []
    low, high = _x_limits(points)
    x_axis: dict[str, Any] = {"title": {"text": X_AXIS}, "range": [_short(low), _short(high)]}
    middle = (low + high) / 2
    if is_wide(points):
        ticks, middle = log_ticks(low, high), sqrt(low * high)
        x_axis |= {"type": "log", "range": [_short(log10(low)), _short(log10(high))]}
        x_axis |= {"tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}
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
                "textposition": "top right" if point.energy_mj < middle else "top left",
                "cliponaxis": False,
                "x": [_short(point.energy_mj)],
                "y": [_short(point.accuracy)],
                "error_x": _bar(point.energy_half),
                "error_y": _bar(point.accuracy_half),
                "marker": {
                    "size": 10,
                    "symbol": symbol if point.on_front else f"{symbol}-open",
                    "line": {"width": 1.5},
                },
                "line": {"width": 1},
                "customdata": [[_margin(point.energy_half), _margin(point.accuracy_half)]],
                "hovertemplate": "%{y:.4~g}%{customdata[1]} %<br>%{x:.4~g}%{customdata[0]} mJ",
                "meta": {"role": "point", "style": index},
            }
        )
    layout = {
        "hovermode": "closest",
        "xaxis": x_axis,
        "yaxis": {"title": {"text": Y_AXIS}},
    }
    return {"title": TITLE, "axis": f"{Y_AXIS} against {X_AXIS}", "traces": traces, "layout": layout}


def _bar(half: float | None) -> dict[str, Any]:
    return {"type": "data", "array": [_short(half or 0.0)], "visible": half is not None, "thickness": 1, "width": 0}


def _margin(half: float | None) -> str:
    return "" if half is None else f" ± {significant(half, 3)}"


def _short(value: float) -> float:
    return float(f"{value:.6g}")
