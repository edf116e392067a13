"""Charts as plotly specifications: plain tables that the page's script draws and colours.

Traces carry `meta`: which line style they have and what they are. Colours are left to the page, which knows whether it
is light or dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feelstream.display.chart import LINE_STYLES, Axis, Chart, Ends, Line, line_style
from feelstream.display.quantities import short, significant

MOST_POINTS = 600  # of one line: more than a screen has pixels for
MOST_SEED_POINTS = 20_000  # of all seeds of one arm together
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")
Trace = dict[str, Any]


def to_plotly(chart: Chart) -> Trace:
    """Its title, what it shows in words, its traces and its layout."""
    least = chart.y.limits[0] / 10 if chart.y.limits and chart.y.logarithmic else None
    return {
        "title": chart.title,
        "axis": f"{chart.y.label} against {chart.x.label}",
        "traces": [trace for line in chart.lines for trace in _traces(line, chart.x, least)],
        "layout": {
            "xaxis": _axis(chart.x),
            "yaxis": _axis(chart.y),
            "hovermode": "closest" if any(line.role == "point" for line in chart.lines) else "x unified",
            "showlegend": sum(bool(line.name) for line in chart.lines) > 1,
        },
    }


def plain(text: str) -> str:
    """Text that plotly shows as it is: it reads labels as HTML."""
    return escape(text, quote=False)


def _axis(axis: Axis) -> Trace:
    found: Trace = {"title": {"text": plain(axis.label)}}
    if axis.limits is not None:
        low, high = (log10(limit) if axis.logarithmic else limit for limit in axis.limits)
        found["range"] = [short(low), short(high)]
    if axis.logarithmic:
        found["type"] = "log"
    if axis.ticks is not None:
        found |= {"tickvals": [at for at, _ in axis.ticks], "ticktext": [text for _, text in axis.ticks]}
    return found


def _traces(line: Line, x_axis: Axis, least: float | None) -> list[Trace]:
    """The band, single seeds (hidden until asked for), all single values, and the line, in the order they are painted.

    least: a logarithmic axis has no place for 0 and below, where a wide band may reach.
    """
    common: Trace = {"type": "scatter", "mode": "lines", "legendgroup": f"arm{line.style}", "name": plain(line.name)}
    if line.role in ("budget", "plain"):
        shape: Trace = {"x": _shown(line.x) or [None], "y": _shown(line.y) or [None], "hoverinfo": "skip"}
        look = {"width": 1, "dash": "dot", "shape": "hv" if line.steps else "linear"}
        return [common | shape | {"legendgroup": line.role, "line": look, "meta": {"role": line.role}}]
    behind = common | {"hoverinfo": "skip", "showlegend": False}
    meta = {"style": line.style}
    kept = _evenly(len(line.x), MOST_POINTS)
    x, y = ([values[place] for place in kept] for values in (line.x, line.y))
    x_ends, y_ends = ([ends[place] for place in kept] if ends else [] for ends in (line.x_ends, line.y_ends))
    traces: list[Trace] = []
    if line.interval == "band" and y_ends:
        edge = [*(high for _, high in y_ends), *(low for low, _ in reversed(y_ends))]
        edge = [short(value if least is None else max(value, least)) for value in edge]
        shade = {"x": [*x, *reversed(x)], "y": edge, "fill": "toself", "line": {"width": 0}}
        traces.append(behind | shade | {"meta": meta | {"role": "band"}})
    if line.seeds:
        at, own = _seed_lines(line)
        thin = {"x": at, "y": own, "visible": False, "line": {"width": 0.7}, "opacity": 0.55}
        traces.append(behind | thin | {"meta": meta | {"role": "seeds"}})
    if line.dots[0]:
        dots = {"x": _shown(line.dots[0]), "y": _shown(line.dots[1]), "mode": "markers", "opacity": 0.55}
        dots |= {"marker": {"size": 5}, "line": {"width": 0}}
        traces.append(behind | dots | {"meta": meta | {"role": "dots"}})
    said = [_interval(y_ends, place) for place in range(len(y))]
    drawn: Trace = {"x": _shown(x), "y": _shown(y), "customdata": said, "hovertemplate": "%{y:.4~g} %{customdata}"}
    drawn |= {"line": {"width": 2, "dash": line_style(line.style).plotly_dash}}
    if line.interval == "bars":
        drawn |= {"error_x": _bars(x, x_ends), "error_y": _bars(y, y_ends)}
        # Colours come again after seven arms; the symbol then is another one.
        symbol = SYMBOLS[(line.style + line.style // len(LINE_STYLES)) % len(SYMBOLS)]
        drawn |= {"mode": "lines+markers", "marker": {"size": 7}}
        if line.role == "point":
            names = dict(x_axis.ticks or ())
            across = [names.get(at) or f"{significant(at, 4)} {_interval(x_ends, place)}" for place, at in enumerate(x)]
            drawn |= {"mode": "markers", "marker": {"size": 10, "symbol": symbol + ("" if line.filled else "-open")}}
            drawn["marker"]["line"] = {"width": 1.5}
            drawn |= {"text": across, "hovertemplate": "%{y:.4~g} %{customdata}<br>at %{text}"}
    return [*traces, common | drawn | {"meta": meta | {"role": line.role}}]


def _shown(values: Sequence[float]) -> list[float]:
    return [short(value) for value in values]


def _bars(values: Sequence[float], ends: Ends) -> Trace:
    halves = [(short(high - value), short(value - low)) for value, (low, high) in zip(values, ends, strict=False)]
    bars = {"array": [above for above, _ in halves], "arrayminus": [below for _, below in halves]}
    return bars | {"type": "data", "symmetric": False, "visible": bool(ends), "thickness": 1}


def _interval(ends: Ends, place: int) -> str:
    return f"[{significant(ends[place][0], 4)}, {significant(ends[place][1], 4)}]" if ends else ""


def _seed_lines(line: Line) -> tuple[list[float | None], list[float | None]]:
    """The seeds as one line with gaps: one trace however many seeds."""
    x: list[float | None] = []
    y: list[float | None] = []
    for at, own in line.seeds:
        kept = _evenly(len(at), min(MOST_POINTS, MOST_SEED_POINTS // len(line.seeds)))
        x += [*(at[place] for place in kept), None]
        y += [*(short(own[place]) for place in kept), None]
    return x, y


def _evenly(count: int, most: int) -> NDArray[np.int64]:
    """At most `most` of `count` positions, the first and the last among them."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.int64))
