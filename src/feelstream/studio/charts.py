"""ECharts options from what lanes hold: plain dictionaries, no page and no formula of the model.

Every chart has the race's whole length as its frame and a line at the round that is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feelstream.quantities import QUANTITIES, short
from feelstream.report.drawing.style import line_style
from feelstream.studio.lanes import Lane, scenario_at
from feelstream.studio.views import RoundView

Options = dict[str, Any]
MOST_POINTS = 400  # of a curve, as sent to the page
BUDGETED = "energy_mean_cum_j"  # the quantity that the budget bounds
GOLDEN_ANGLE = 137.50776
QUEUE_COLOURS = {
    False: ["#9CC9E3", "#F0D58C", "#E08A3C", "#B2341F"],
    True: ["#3E7FA6", "#D9B84F", "#E8873A", "#FF5A47"],
}
SENT, DROPPED = {False: "#00855F", True: "#35CFA0"}, {False: "#C8102E", True: "#FF6B6B"}


def colour(index: int, dark: bool) -> str:
    style = line_style(index)
    return style.dark if dark else style.light


def ink(dark: bool) -> str:
    return "#D6DADF" if dark else "#39424E"


def faint(dark: bool) -> str:
    return "#333B45" if dark else "#E3E7EC"


def _base(dark: bool) -> Options:
    return {
        "animationDuration": 0,
        "animationDurationUpdate": 150,
        "animationEasingUpdate": "linear",
        "backgroundColor": "transparent",
        "textStyle": {"fontFamily": "system-ui, sans-serif", "color": ink(dark)},
        "aria": {"enabled": True},
    }


def _axis(dark: bool, **settings: Any) -> Options:
    return {
        "axisLine": {"lineStyle": {"color": faint(dark)}},
        "axisTick": {"show": False},
        "axisLabel": {"color": ink(dark), "fontSize": 11, "hideOverlap": True},
        "splitLine": {"lineStyle": {"color": faint(dark)}},
        "nameTextStyle": {"color": ink(dark), "fontSize": 11},
        **settings,
    }


def _tooltip(dark: bool, trigger: str) -> Options:
    return {
        "trigger": trigger,
        "confine": True,
        "backgroundColor": "#20262E" if dark else "#FFFFFF",
        "borderColor": faint(dark),
        "textStyle": {"color": ink(dark), "fontSize": 12},
        "axisPointer": {"type": "line"},
    }


def curves(lanes: Sequence[Lane], column: str, shown: int, dark: bool) -> Options:
    """A column of rounds.parquet by round, one curve a lane, up to the round shown; energy with the budget in force."""
    rounds, quantity = min((lane.scenario.system.rounds for lane in lanes), default=1), QUANTITIES[column]
    series = []
    for index, lane in enumerate(lanes):
        points = [
            [row["round"], short(row[column] * quantity.scale, 4)]
            for row in lane.rows[:shown]
            if row.get(column) is not None
        ]
        series.append(_curve(lane.label, _thinned(points), index, dark))
    if series:
        series[0]["markLine"] = _marker(shown, dark)
        if column == BUDGETED:
            series.append(_budget(lanes[0], quantity.scale, dark))
    return _curves(series, rounds, dark, quantity.most)


def _budget(lane: Lane, scale: float, dark: bool) -> Options:
    """The budget in force as a dashed line."""
    rounds = lane.scenario.system.rounds
    steps = sorted({1, *(change.round for change in lane.changes if change.round <= rounds)})
    budgets = [
        [t, short(float(np.mean(scenario_at(lane, t).system.energy_budget_j)) * scale, 4)] for t in (*steps, rounds)
    ]
    return {
        "name": "budget", "type": "line", "data": budgets, "step": "end", "symbol": "none", "silent": True,
        "lineStyle": {"type": "dashed", "width": 1.5, "color": ink(dark)}, "itemStyle": {"color": ink(dark)},
    }  # fmt: skip


def _curve(name: str, points: list, index: int, dark: bool) -> Options:
    dash = {"dash": [6, 3], "dashdot": [6, 3, 2, 3], "dot": [2, 2], "longdash": [9, 3]}
    kind = dash.get(line_style(index).plotly_dash, "solid")
    return {
        "name": name, "type": "line", "data": points, "showSymbol": len(points) == 1, "symbolSize": 6,
        "lineStyle": {"width": 2.2, "color": colour(index, dark), "type": kind},
        "itemStyle": {"color": colour(index, dark)}, "emphasis": {"disabled": True},
    }  # fmt: skip


def _curves(series: list[Options], rounds: int, dark: bool, top: float | None) -> Options:
    return {
        **_base(dark),
        "grid": {"left": 8, "right": 14, "top": 12, "bottom": 4, "containLabel": True},
        "tooltip": _tooltip(dark, "axis"),
        "xAxis": _axis(dark, type="value", min=1, max=max(rounds, 2), minInterval=1, splitLine={"show": False}),
        "yAxis": _axis(dark, type="value", min=0, max=top, splitNumber=4, interval=top and top / 4),
        "series": series,
    }


def _marker(shown: int, dark: bool) -> Options:
    return {
        "silent": True, "symbol": "none", "animation": False, "label": {"show": False},
        "lineStyle": {"color": ink(dark), "type": "solid", "width": 1, "opacity": 0.35},
        "data": [{"xAxis": max(shown, 1)}],
    }  # fmt: skip


def _thinned(points: list) -> list:
    """At most MOST_POINTS of them, the last among them."""
    stride = -(-len(points) // MOST_POINTS)
    return points if stride <= 1 else [*points[:-1:stride], points[-1]]


def device_map(view: RoundView, most_queue_j: float, most_stored: float, selected: int | None, dark: bool) -> Options:
    """The devices around the server, the farther the weaker their mean channel.

    Colour: queue; large disc: stored data; small disc: fresh data; ring: scheduled, and sent or dropped.
    """
    devices, queue = view.devices, QUANTITIES["queue_j"]
    assert devices is not None
    loss_db = -10 * np.log10(devices["beta"])
    angle = devices["device"] * GOLDEN_ANGLE % 360

    def size(count: float) -> float:
        return round(5 + 27 * float(np.sqrt(max(count, 0) / max(most_stored, 1))), 1)

    def point(i: int, diameter: float, **more: Any) -> Options:
        backlog = short(float(devices["queue_j"][i]) * queue.scale, 4)
        value = [round(float(loss_db[i]), 2), round(float(angle[i]), 1), backlog]
        return {"name": f"device {devices['device'][i]}", "value": value, "symbolSize": diameter, **more}

    everyone = range(len(angle))
    stored = [
        point(i, size(devices["stored"][i]), itemStyle={"opacity": 0.45 if devices["feasible"][i] else 0.15})
        for i in everyone
    ]
    fresh = [point(i, size(devices["fresh"][i]) * 0.6) for i in everyone if devices["fresh"][i]]
    sent = [i for i in view.chosen if devices["transmitted"][i]]
    dropped = [i for i in view.chosen if not devices["transmitted"][i]]
    where = view.where(selected) if selected is not None else None

    def rings(name: str, members: Sequence[int], edge: str, grow: float, line: str = "solid") -> Options:
        style = {"color": "transparent", "borderColor": edge, "borderWidth": 3, "borderType": line}
        data = [point(i, size(devices["stored"][i]) + grow) for i in members]
        return {"name": name, "type": "scatter", "coordinateSystem": "polar", "data": data, "itemStyle": style, "z": 5}

    low, high = float(np.floor(loss_db.min())), float(np.ceil(loss_db.max()))
    cloud: Options = {"type": "scatter", "coordinateSystem": "polar"}
    return {
        **_base(dark),
        "polar": {"radius": "90%", "center": ["50%", "46%"]},
        "angleAxis": {"type": "value", "min": 0, "max": 360, "show": False},
        "radiusAxis": _axis(
            dark, type="value", min=low - 1.5, max=high + 0.5, interval=2, axisLine={"show": False},
            axisLabel={
                "color": ink(dark), "fontSize": 9, "opacity": 0.6, "formatter": "{value} dB", "showMinLabel": False,
            },
        ),
        "visualMap": {
            "type": "continuous", "seriesIndex": [0, 1], "dimension": 2,
            "min": 0, "max": max(short(most_queue_j * queue.scale, 4), 1),
            "inRange": {"color": QUEUE_COLOURS[dark]}, "orient": "horizontal", "left": "center", "bottom": 0,
            "itemWidth": 10, "itemHeight": 120, "text": [queue.unit, f"{queue.heading} 0"],
            "textStyle": {"color": ink(dark), "fontSize": 11},
            "calculable": False,
        },
        "tooltip": {**_tooltip(dark, "item"), "formatter": "{b}<br>queue and loss: {c}"},
        "series": [
            {**cloud, "name": "stored", "data": stored, "z": 2},
            {**cloud, "name": "fresh", "data": fresh, "z": 3, "silent": True},
            rings("sent", sent, SENT[dark], 7),
            rings("dropped", dropped, DROPPED[dark], 7, "dashed"),
            rings("selected", [] if where is None else [where], ink(dark), 14, "dotted"),
        ],
    }  # fmt: skip


def timeline(lane: Lane, index: int, shown: int, selected: int | None, dark: bool) -> Options:
    """Who was scheduled when: a mark per round and device, hollow where the device was dropped."""
    rounds, devices = lane.scenario.system.rounds, lane.scenario.system.devices
    recent = [entry for entry in lane.schedule if entry[0] <= shown][-1500:]
    width = max(2.0, min(9.0, 420 / rounds))
    mark = {"type": "scatter", "symbol": "rect", "symbolSize": [width, max(3.0, min(7.0, 240 / devices))]}
    line: Options = {"silent": True, "symbol": "none", "animation": False, "label": {"show": False}, "data": []}
    if selected is not None:
        line["data"] = [{"yAxis": selected}]
        line["lineStyle"] = {"color": ink(dark), "type": "dotted", "width": 1}
    return {
        **_base(dark),
        "grid": {"left": 8, "right": 14, "top": 8, "bottom": 4, "containLabel": True},
        "tooltip": {**_tooltip(dark, "item"), "formatter": "round and device: {c}"},
        "xAxis": _axis(dark, type="value", min=1, max=max(rounds, 2), minInterval=1, splitLine={"show": False}),
        "yAxis": _axis(dark, type="value", min=0, max=max(devices - 1, 1), minInterval=1, splitNumber=4, inverse=True),
        "series": [
            {
                **mark, "name": "sent", "data": [[t, device] for t, device, went in recent if went],
                "itemStyle": {"color": colour(index, dark)}, "markLine": line,
            },
            {
                **mark, "name": "dropped", "data": [[t, device] for t, device, went in recent if not went],
                "itemStyle": {"color": "transparent", "borderColor": DROPPED[dark], "borderWidth": 1.5},
            },
        ],
    }  # fmt: skip


def by_label(named: Sequence[tuple[str, NDArray]], dark: bool, unit: str = "") -> Options:
    """Counts by label as groups of bars: (name of the lane, counts) each."""
    classes = max((len(counts) for _, counts in named), default=0)
    return {
        **_base(dark),
        "grid": {"left": 8, "right": 14, "top": 26, "bottom": 4, "containLabel": True},
        "tooltip": {**_tooltip(dark, "axis"), "axisPointer": {"type": "shadow"}},
        "xAxis": _axis(dark, type="category", data=[str(label) for label in range(classes)], splitLine={"show": False}),
        "yAxis": _axis(dark, type="value", name=unit, splitNumber=3, minInterval=1, nameTextStyle={"align": "left"}),
        "series": [
            {
                "name": name, "type": "bar", "data": [float(count) for count in counts], "barMaxWidth": 16,
                "itemStyle": {"color": colour(index, dark), "borderRadius": [2, 2, 0, 0]},
            }
            for index, (name, counts) in enumerate(named)
        ],
    }  # fmt: skip


def for_export(options: Options, title: str, dark: bool) -> Options:
    """The chart as a picture that stands by itself: with title, legend and background."""
    named = [series["name"] for series in options["series"] if series["type"] in ("line", "bar")]
    exported = {
        **options,
        "animation": False,
        "backgroundColor": "#14181D" if dark else "#FFFFFF",
        "title": {"text": title, "left": 10, "top": 6, "textStyle": {"color": ink(dark), "fontSize": 14}},
    }
    if named:
        exported["legend"] = {"data": named, "top": 30, "left": 10, "textStyle": {"color": ink(dark)}}
    if "grid" in options:
        exported["grid"] = {**options["grid"], "top": 64 if named else 36}
    return exported
