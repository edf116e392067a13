"""Quantities against a field that was varied, as plotly specifications: the figures against-FIELD of a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from feelstream.display.quantities import QUANTITIES, short
from feelstream.experiment.statistics import LEAST_SEEDS
from feelstream.report.content import Section
from feelstream.report.drawing.curves import AGAINST, Axis
from feelstream.report.drawing.limits import spans_decades
from feelstream.report.drawing.style import line_style
from feelstream.report.html.charts import plain


def varied_sections(axes: Sequence[Axis], summary: pl.DataFrame, runs: pl.DataFrame) -> list[Section]:
    """A section for each field, with a chart for each quantity that any run has. runs: `statistics.per_run`."""
    found = []
    for number, axis in enumerate(axes, start=1):
        charts = [chart for name in AGAINST if (chart := varied_chart(axis, summary, runs, name))]
        if charts:
            few = all(int(count) < LEAST_SEEDS for count in summary["n"])
            said = (
                "Each dot is one seed; lines join the means." if few else "Means over seeds; bars are 95 % t intervals."
            )
            title = f"Against {plain(axis.field)}"
            found.append(
                Section(
                    f"against-{number}", title, f"<p>{said}</p>", charts=[(chart["title"], chart) for chart in charts]
                )
            )
    return found


def varied_chart(axis: Axis, summary: pl.DataFrame, runs: pl.DataFrame, name: str) -> dict[str, Any] | None:
    """One quantity against the field, a line for each set of arms along it; None where no run has the quantity."""
    quantity = QUANTITIES[name]
    rows = {row["arm"]: row for row in summary.filter(quantity=name).rows(named=True) if row["n"]}
    traces: list[dict[str, Any]] = []
    means: list[float] = []
    for style, (line, points) in enumerate(axis.lines.items()):
        shown = [(value, rows[arm]) for value, arm in points if arm in rows]
        if not shown:
            continue
        common = {"type": "scatter", "legendgroup": f"line{style}", "name": plain(line)}
        few = max(row["n"] for _, row in shown) < LEAST_SEEDS
        if few:
            dots = [
                (value, short(own * quantity.scale))
                for value, row in shown
                for own in runs.filter(arm=row["arm"])[name].drop_nulls().to_list()
            ]
            traces.append(
                common
                | {
                    "mode": "markers", "x": [x for x, _ in dots], "y": [y for _, y in dots], "hoverinfo": "skip",
                    "showlegend": False, "opacity": 0.55, "marker": {"size": 5}, "line": {"width": 0},
                    "meta": {"role": "dots", "style": style},
                }
            )  # fmt: skip
        mean = [row["mean"] * quantity.scale for _, row in shown]
        half = [0.0 if few else ((row["high"] or 0) - (row["low"] or 0)) / 2 * quantity.scale for _, row in shown]
        means += mean
        traces.append(
            common
            | {
                "mode": "lines+markers",
                "x": [value for value, _ in shown],
                "y": [short(value) for value in mean],
                "error_y": {
                    "type": "data",
                    "array": [short(value) for value in half],
                    "visible": not few,
                    "thickness": 1,
                },
                "hovertemplate": "%{y:.4~g}",
                "marker": {"size": 7},
                "line": {"width": 2, "dash": line_style(style).plotly_dash},
                "meta": {"role": "against", "style": style},
            }
        )
    if not traces:
        return None
    values = [value for points in axis.lines.values() for value, _ in points]
    x_axis: dict[str, Any] = {"title": {"text": plain(axis.field)}}
    if spans_decades(values) and min(values) > 0:
        x_axis |= {"type": "log", "dtick": 1}
    elif all(value.is_integer() for value in values):
        x_axis |= {"tickformat": "d", "tickvals": sorted(set(values))}
    y_axis: dict[str, Any] = {"title": {"text": quantity.full_unit}}
    if quantity.logarithmic and spans_decades(means) and min(means) > 0:
        y_axis |= {"type": "log", "dtick": 1}
    title = f"{quantity.words} against {plain(axis.field)}"
    layout = {"xaxis": x_axis, "yaxis": y_axis, "showlegend": len(axis.lines) > 1}
    return {"title": title, "axis": f"{quantity.axis} against {axis.field}", "traces": traces, "layout": layout}
