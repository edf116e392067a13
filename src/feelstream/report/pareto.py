"""Accuracy against energy: the plot for papers and the chart of the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from feelstream.leaderboard import Point
from feelstream.report.charts import plain
from feelstream.report.figures import styled
from feelstream.report.labels import label_points
from feelstream.report.style import COLUMN_WIDTH_IN, LINE_STYLES, line_style

X_AXIS, Y_AXIS = "Energy per device (mJ per round)", "Test accuracy after the last round (%)"
TITLE = "Accuracy against energy"
WIDE = 8.0  # energies that differ by more than this factor get a logarithmic axis
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")


def is_wide(points: Sequence[Point]) -> bool:
    energies = [point.energy_mj for point in points]
    return min(energies) > 0 and max(energies) > WIDE * min(energies)


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
                    elinewidth=0.6, ecolor=(*to_rgb(colour), 0.4), label=name,
                )  # fmt: skip
        if is_wide(points):
            axes.set_xscale("log")
        axes.set_xlabel(X_AXIS)
        axes.set_ylabel(Y_AXIS)
        axes.margins(x=0.08, y=0.08)
        # An interval may reach past what is possible; the axes do not.
        axes.set_ylim(max(axes.get_ylim()[0], 0.0), min(axes.get_ylim()[1], 100.0))
        axes.set_xlim(axes.get_xlim() if is_wide(points) else (max(axes.get_xlim()[0], 0.0), axes.get_xlim()[1]))
        figure.legend(loc="outside lower center", ncols=3)
        ordered = [*front, *(point for point in points if not point.on_front)]
        label_points(figure, axes, [(p.energy_mj, p.accuracy) for p in ordered], [p.arm for p in ordered], size_pt=6.5)
    return figure


def pareto_chart(points: Sequence[Point]) -> dict[str, Any]:
    """The same as a plotly specification; names of beaten arms are in the legend, lest they cover each other."""
    front = front_of(points)
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "Pareto front",
            "x": [_short(point.energy_mj) for point in front],
            "y": [_short(point.accuracy) for point in front],
            "line": {"width": 1, "shape": "hv", "dash": "dot"},
            "hoverinfo": "skip",
            "meta": {"role": "budget"},  # drawn in the colour of the text
        }
    ]
    for index, point in enumerate(points):
        # Colours come again after seven arms; the symbol then is another one.
        symbol = SYMBOLS[(index + index // len(LINE_STYLES)) % len(SYMBOLS)]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers+text" if point.on_front else "markers",
                "name": plain(point.arm),
                "text": [plain(point.arm)],
                "textposition": "top center",
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
        "xaxis": {"title": {"text": "mJ per round"}, "type": "log" if is_wide(points) else "linear"},
        "yaxis": {"title": {"text": "%"}},
    }
    return {"title": TITLE, "axis": f"{Y_AXIS} against {X_AXIS}", "traces": traces, "layout": layout}


def _bar(half: float | None) -> dict[str, Any]:
    return {"type": "data", "array": [_short(half or 0.0)], "visible": half is not None, "thickness": 1, "width": 0}


def _margin(half: float | None) -> str:
    return "" if half is None else f" ± {half:.3g}"


def _short(value: float) -> float:
    return float(f"{value:.6g}")
