"""The report's line charts as plotly specifications: plain tables that the page's script draws and colours.

Traces carry `meta`: which line style they have and whether they are a mean, a band or single seeds. Colours are left to
the page, which knows whether it is light or dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import log10
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from feelstream.display.picture import is_near
from feelstream.display.quantities import QUANTITIES, ROUND_AXIS, Quantity, by_round, short, significant
from feelstream.experiment.statistics import LEAST_SEEDS, Series, band_by_round, series
from feelstream.report.drawing.limits import MOST_BANDS, axis_limits, final_values, log_limits, wants_logarithm
from feelstream.report.drawing.style import line_style

MOST_POINTS = 600  # of one line: more than a screen has pixels for
MOST_SEED_POINTS = 20_000  # of all seeds of one arm together
MOST_SEEDS = 100  # lines of single seeds of one arm: more are one patch of colour


@dataclass(frozen=True)
class Group:
    """Arms that are shown together, because they share a world: label of each, and its name in the legend."""

    title: str
    arms: tuple[tuple[str, str], ...]


def plain(text: str) -> str:
    """Text that plotly shows as it is: it reads labels as HTML."""
    return escape(text, quote=False)


def group_charts(
    group: Group, rounds: pl.DataFrame, budget_j: float | None, columns: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """One chart for each of the quantities, by default all that are known, that any arm of the group measured."""
    charts = []
    for quantity in [QUANTITIES[column] for column in columns] or by_round(rounds.columns):
        column = quantity.name
        bands = band_by_round(rounds, column)
        lines = [
            _Line(index, name, values, bands.filter(arm=arm).sort("round"))
            for index, (arm, name) in enumerate(group.arms)
            if (values := series(rounds, arm, column)) is not None
        ]
        if lines:
            limit = budget_j if column == "energy_mean_cum_j" else None
            charts.append(_chart(quantity, lines, limit))
    return charts


@dataclass(frozen=True)
class _Line:
    style: int
    name: str
    seeds: Series
    band: pl.DataFrame


def _chart(quantity: Quantity, lines: Sequence[_Line], budget_j: float | None) -> dict[str, Any]:
    traces: list[dict[str, Any]] = []
    for line in lines:
        traces += _arm_traces(line, quantity, banded=len(lines) <= MOST_BANDS)
    bands = pl.concat([line.band for line in lines])
    mean, low, high = ((bands[name].drop_nulls() * quantity.scale).to_list() for name in ("mean", "low", "high"))
    ends = [*(final_values(bands) * quantity.scale)]
    near = budget_j is not None and is_near(budget_j * quantity.scale, ends)
    budget = [budget_j * quantity.scale] if near and budget_j is not None else []
    limits = axis_limits(quantity, [*mean, *budget], low, high)
    layout: dict[str, Any] = {
        "xaxis": {"title": {"text": ROUND_AXIS}},
        "yaxis": {"title": {"text": quantity.full_unit}, "range": [short(limit) for limit in limits]},
    }
    if wants_logarithm(quantity, ends, mean):
        low_end, high_end = log_limits([*mean, *budget])
        for trace in traces:  # a logarithmic axis has no place for 0 and below, where a wide interval may reach
            if trace["meta"]["role"] == "band":
                trace["y"] = [max(value, short(low_end / 10)) for value in trace["y"]]
        layout["yaxis"] |= {"type": "log", "range": [short(log10(low_end)), short(log10(high_end))], "dtick": 1}
    if budget_j is not None:
        last = max(int(line.seeds.rounds[-1]) for line in lines)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": "budget" if near else f"budget: {budget_j * quantity.scale:g} {quantity.unit}, off the axis",
                "x": [1, last],
                "y": [short(budget_j * quantity.scale)] * 2 if near else [None, None],  # then its name says it
                "hoverinfo": "skip",
                "line": {"width": 1, "dash": "dot"},
                "meta": {"role": "budget"},
            }
        )
    return {"title": quantity.words, "axis": quantity.axis, "traces": traces, "layout": layout}


def _arm_traces(line: _Line, quantity: Quantity, banded: bool) -> list[dict[str, Any]]:
    """The band, the single seeds (hidden until asked for) and the mean, in the order they are painted.

    Below five seeds there is no band: the page shows the seeds themselves. Nor where bands would cover all lines.
    """
    table, values, index = line.band[_evenly(len(line.band), MOST_POINTS)], line.seeds, line.style
    rounds = table["round"].to_list()
    mean, low, high = (table[column] * quantity.scale for column in ("mean", "low", "high"))
    common = {"type": "scatter", "mode": "lines", "legendgroup": f"arm{index}", "name": plain(line.name)}
    traces: list[dict[str, Any]] = []
    if banded and len(values.seeds) >= LEAST_SEEDS and low.null_count() == 0:
        edge = [short(value) for value in [*high.to_list(), *reversed(low.to_list())]]
        traces.append(
            common
            | {
                "x": [*rounds, *reversed(rounds)],
                "y": edge,
                "fill": "toself",
                "hoverinfo": "skip",
                "showlegend": False,
                "line": {"width": 0},
                "meta": {"role": "band", "style": index},
            }
        )
    if len(values.seeds) > 1:
        x, y = _seed_lines(values, quantity)
        traces.append(
            common
            | {
                "x": x,
                "y": y,
                "visible": False,
                "hoverinfo": "skip",
                "showlegend": False,
                "line": {"width": 0.7},
                "opacity": 0.55,
                "meta": {"role": "seeds", "style": index},
            }
        )
    traces.append(
        common
        | {
            "x": rounds,
            "y": [short(value) for value in mean.to_list()],
            "customdata": [_interval_text(a, b) for a, b in zip(low, high, strict=True)],
            "hovertemplate": "%{y:.4~g} %{customdata}",
            "line": {"width": 2, "dash": line_style(index).plotly_dash},
            "meta": {"role": "mean", "style": index},
        }
    )
    return traces


def _seed_lines(values: Series, quantity: Quantity) -> tuple[list[int | None], list[float | None]]:
    """The seeds, of very many the first, as one line with gaps: one trace however many seeds."""
    drawn = values.values[:MOST_SEEDS]
    shown = _evenly(len(values.rounds), min(MOST_POINTS, MOST_SEED_POINTS // len(drawn)))
    x: list[int | None] = []
    y: list[float | None] = []
    for row in drawn:
        x += [*values.rounds[shown].tolist(), None]
        y += [*(short(value) for value in row[shown] * quantity.scale), None]
    return x, y


def _evenly(count: int, most: int) -> NDArray[np.int64]:
    """At most `most` of `count` positions, the first and the last among them."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.int64))


def _interval_text(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{significant(low, 4)}, {significant(high, 4)}]"
