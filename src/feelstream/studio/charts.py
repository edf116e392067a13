"""ECharts options from what lanes hold: plain dictionaries, no page and no formula of the model.

Every chart has the race's whole length as its frame and a line at the round that is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from feelstream.display.line_styles import line_style
from feelstream.display.quantities import QUANTITIES, short
from feelstream.loop.changes import BUDGET
from feelstream.studio.lanes import Lane, scenario_at

Options = dict[str, Any]
T = TypeVar("T")
MOST_POINTS = 400  # of a curve, as sent to the page
BUDGETED = "energy_mean_cum_j"  # the quantity that the budget bounds
CHANGED = {False: "#8A5A00", True: "#E8B84F"}  # of the lines where V, size or budget changed


def colour(index: int, dark: bool) -> str:
    style = line_style(index)
    return style.dark if dark else style.light


def ink(dark: bool) -> str:
    return "#D6DADF" if dark else "#39424E"


def faint(dark: bool) -> str:
    return "#333B45" if dark else "#E3E7EC"


def base(dark: bool) -> Options:
    return {
        "animation": False,
        "backgroundColor": "transparent",
        "textStyle": {"fontFamily": "system-ui, sans-serif", "color": ink(dark)},
    }


def frame(dark: bool, x: Options, y: Options, series: list[Options], top: int = 18) -> Options:
    """A chart with two axes and a tooltip for what lies above one place."""
    return {
        **base(dark),
        "grid": {"left": 8, "right": 14, "top": top, "bottom": 4, "containLabel": True},
        "tooltip": tooltip(dark, "axis"),
        "xAxis": x,
        "yAxis": y,
        "series": series,
    }


def axis(dark: bool, **settings: Any) -> Options:
    return {
        "axisLine": {"lineStyle": {"color": faint(dark)}},
        "axisTick": {"show": False},
        "axisLabel": {"color": ink(dark), "fontSize": 11, "hideOverlap": True},
        "splitLine": {"lineStyle": {"color": faint(dark)}},
        "nameTextStyle": {"color": ink(dark), "fontSize": 11},
        **settings,
    }


def round_axis(dark: bool, rounds: int) -> Options:
    """The axis of a race's rounds, which tooltips name as such."""
    label = {"formatter": "round {value}", "precision": 0}
    return axis(
        dark, type="value", min=1, max=max(rounds, 2), minInterval=1, splitLine={"show": False},
        axisPointer={"label": label},
    )  # fmt: skip


def tooltip(dark: bool, trigger: str) -> Options:
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
        rows = thinned([row for row in lane.rows[:shown] if row.get(column) is not None])
        points = [[row["round"], short(row[column] * quantity.scale, 4)] for row in rows]
        series.append(curve(lane.label, points, index, dark))
    if series:
        series[0]["markLine"] = marker(shown, dark, lanes)
        if column == BUDGETED:
            series.append(_budget(lanes[0], dark))
    top = quantity.most
    y = axis(dark, type="value", min=0, max=top, splitNumber=4, interval=top and top / 4)
    return frame(dark, round_axis(dark, rounds), y, series)


def _budget(lane: Lane, dark: bool) -> Options:
    """The budget in force as a dashed line."""
    rounds = lane.scenario.system.rounds
    steps = sorted({1, *(change.round for change in lane.changes if change.round <= rounds)})
    budgets = [[t, budget_shown(lane, t)] for t in (*steps, rounds)]
    return {
        "name": "budget", "type": "line", "data": budgets, "step": "end", "symbol": "none", "silent": True,
        "lineStyle": {"type": "dashed", "width": 1.5, "color": ink(dark)}, "itemStyle": {"color": ink(dark)},
    }  # fmt: skip


def budget_shown(lane: Lane, round: int) -> float:
    """The mean budget of the devices in force in a round, in the unit of its chart."""
    return short(float(np.mean(scenario_at(lane, round).system.energy_budget_j)) * QUANTITIES[BUDGETED].scale, 4)


def curve(name: str, points: list, index: int, dark: bool) -> Options:
    dash = {"dash": [6, 3], "dashdot": [6, 3, 2, 3], "dot": [2, 2], "longdash": [9, 3]}
    kind = dash.get(line_style(index).plotly_dash, "solid")
    return {
        "name": name, "type": "line", "data": points, "showSymbol": len(points) == 1, "symbolSize": 6,
        "lineStyle": {"width": 2.2, "color": colour(index, dark), "type": kind},
        "itemStyle": {"color": colour(index, dark)}, "emphasis": {"disabled": True},
    }  # fmt: skip


def dash_name(index: int) -> str:
    """The nearest that a border of the page can have to the dashes of a curve."""
    return {"solid": "solid", "dot": "dotted"}.get(line_style(index).plotly_dash, "dashed")


def marker(shown: int, dark: bool, lanes: Sequence[Lane] = ()) -> Options:
    """A line at the round that is shown, and one at every change of V, size or budget."""
    return {
        "silent": True, "symbol": "none", "animation": False, "label": {"show": False},
        "lineStyle": {"color": ink(dark), "type": "solid", "width": 1, "opacity": 0.35},
        "data": [{"xAxis": max(shown, 1)}, *changes(lanes, dark)],
    }  # fmt: skip


def changes(lanes: Sequence[Lane], dark: bool) -> list[Options]:
    """A labelled line at each round from which a lane has another V, size or budget; equal ones once."""
    named = {(c.round, f"{shown_setting(c.field, c.value)}"): None for lane in lanes for c in lane.changes}
    style = {"color": CHANGED[dark], "type": "dashed", "width": 1.2, "opacity": 0.9}
    label = {"show": True, "color": CHANGED[dark], "fontSize": 10, "position": "end", "distance": 2, "rotate": 0}
    return [
        {"xAxis": round, "lineStyle": style, "label": {**label, "formatter": text}} for round, text in sorted(named)
    ]


def shown_setting(field: str, value: str) -> str:
    """A setting and its value as the page shows them: budgets in mJ, as on the charts.

    >>> shown_setting("policy.V", "0.5"), shown_setting("system.energy_budget_j", "0.02")
    ('V = 0.5', 'budget = 20 mJ')
    """
    if field != BUDGET:
        return f"{field.split('.')[-1]} = {value}"
    try:
        return f"budget = {1e3 * float(value):g} mJ"
    except ValueError:  # one for each device
        return "budgets by device"


def thinned(points: Sequence[T]) -> Sequence[T]:
    """At most MOST_POINTS of them and the last; before anything is computed of them, since a race may be long."""
    stride = -(-len(points) // MOST_POINTS)
    return points if stride <= 1 else [*points[:-1:stride], points[-1]]


def enlarged(options: Any, factor: float = 1.6) -> Any:
    """The same chart with letters and lines that can be read from the last row."""
    if isinstance(options, list):
        return [enlarged(each, factor) for each in options]
    if not isinstance(options, dict):
        return options
    grown = ("fontSize", "width", "borderWidth")
    larger = {
        name: value * factor if name in grown and isinstance(value, int | float) else enlarged(value, factor)
        for name, value in options.items()
    }
    if "legend" in options and "grid" in options:  # which has two lines now
        larger["grid"] = {**options["grid"], "top": 2 * options["grid"]["top"]}
    return larger


def outline(options: Options) -> list:
    """What a chart is made of: its parts, and of each series the name and what is said of it."""
    return [sorted(options), *((series.get("name"), sorted(series)) for series in options["series"])]


def changed(old: Options, new: Options) -> Options:
    """The parts of a chart's options that are others, of each series the points after the first `kept`, which stay."""
    part = {name: value for name, value in new.items() if name != "series" and old[name] != value}
    if old["series"] != new["series"]:
        part["series"] = [_grown(*pair) for pair in zip(old["series"], new["series"], strict=True)]
    return part


def _grown(old: Options, new: Options) -> Options:
    both = enumerate(zip(old["data"], new["data"], strict=False))
    kept = next((at for at, (a, b) in both if a != b), min(len(old["data"]), len(new["data"])))
    return {**new, "data": new["data"][kept:], "kept": kept}


def for_export(options: Options, title: str, dark: bool, axes: tuple[str, str] = ("", "")) -> Options:
    """The chart as a picture that stands by itself: with title, legend, names of the axes and background."""
    named = [
        _in_legend(series) for series in options["series"] if series.get("data") and series["name"] in _legend(options)
    ]
    exported = {
        **options,
        "animation": False,
        "backgroundColor": "#14181D" if dark else "#FFFFFF",
        "title": {"text": title, "left": 10, "top": 6, "textStyle": {"color": ink(dark), "fontSize": 14}},
    }
    if named:
        exported["legend"] = {
            "data": named, "top": 30, "left": 10, "itemWidth": 34, "textStyle": {"color": ink(dark)},
        }  # fmt: skip
    if "grid" in options:
        exported["grid"] = {**options["grid"], "left": 34, "top": 64 if named else 40, "bottom": 30}
        for axis, name, gap in (("xAxis", axes[0], 28), ("yAxis", axes[1], 44)):
            exported[axis] = {**options[axis], "name": name, "nameLocation": "middle", "nameGap": gap}
    return exported


def _in_legend(series: Options) -> Options:
    """A line without points has none in the legend either, where ECharts would draw one all the same."""
    plain = series["type"] == "line" and not series.get("showSymbol")
    return {"name": series["name"], **({"itemStyle": {"opacity": 0}} if plain else {})}


def _legend(options: Options) -> list[str]:
    """Names that a legend explains: curves and bars; of marks who sent and who was dropped."""
    drawn = [series["name"] for series in options["series"] if series["type"] in ("line", "bar")]
    return drawn or ["sent", "dropped"]
