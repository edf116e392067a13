"""ECharts options from what lanes hold: plain dictionaries, no page and no formula of the model.

Every chart has the race's whole length as its frame and a line at the round that is shown. A colour is the name of one
in studio.css, which chart.js looks up: light, dark and talk are matters of the page.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Ids
from feelstream.display.chart import NEAR, line_style
from feelstream.display.quantities import QUANTITIES, short
from feelstream.loop.changes import BUDGET
from feelstream.policies.ranking import Ranking
from feelstream.studio.lanes import MOST_LANES, Lane, scenario_at

Options = dict[str, Any]
MOST_POINTS = 400  # of a curve, as sent to the page
MOST_RANKED = 10  # candidates whose scores are shown
BUDGETED = "energy_mean_cum_j"  # the quantity that the budget bounds


def colour(index: int) -> str:
    """Of a lane."""
    return f"--lane-{index}"


def colours() -> str:
    """The style that says which these are."""

    def of(scheme: str) -> str:
        return "".join(f"{colour(index)}: {getattr(line_style(index), scheme)};" for index in range(MOST_LANES))

    return f":root {{ {of('light')} }} body.body--dark {{ {of('dark')} }}"


def base() -> Options:
    return {
        "animation": False,
        "backgroundColor": "transparent",
        "textStyle": {"fontFamily": "system-ui, sans-serif", "color": "--ink"},
    }


def frame(x: Options, y: Options, series: list[Options], top: int = 18, left: int = 8) -> Options:
    """A chart with two axes and a tooltip for what lies above one place."""
    return {
        **base(),
        "grid": {"left": left, "right": 14, "top": top, "bottom": 4, "containLabel": True},
        "tooltip": tooltip("axis"),
        "xAxis": x,
        "yAxis": y,
        "series": series,
    }


def axis(**settings: Any) -> Options:
    return {
        "axisLine": {"lineStyle": {"color": "--line"}},
        "axisTick": {"show": False},
        "axisLabel": {"color": "--ink", "fontSize": 11, "hideOverlap": True},
        "splitLine": {"lineStyle": {"color": "--line"}},
        "nameTextStyle": {"color": "--ink", "fontSize": 11},
        **settings,
    }


def round_axis(rounds: int) -> Options:
    """The axis of a race's rounds, which tooltips name as such."""
    label = {"formatter": "round {value}", "precision": 0}
    return axis(
        type="value", min=1, max=max(rounds, 2), minInterval=1, splitLine={"show": False}, axisPointer={"label": label}
    )


def tooltip(trigger: str, pointer: str = "line") -> Options:
    return {
        "trigger": trigger,
        "confine": True,
        "backgroundColor": "--card",
        "borderColor": "--line",
        "textStyle": {"color": "--ink", "fontSize": 12},
        "axisPointer": {"type": pointer},
    }


def curves(lanes: Sequence[Lane], column: str, shown: int) -> Options:
    """A column of rounds.parquet by round, one curve a lane, up to the round shown; energy with the budget in force."""
    rounds, quantity = min((lane.scenario.system.rounds for lane in lanes), default=1), QUANTITIES[column]
    series = [
        curve(lane.label, points(lane.rows[:shown], column, quantity.scale), index) for index, lane in enumerate(lanes)
    ]
    if series:
        style = {"color": "--ink", "type": "solid", "width": 1, "opacity": 0.35}
        series[0]["markLine"] = marks([{"xAxis": max(shown, 1), "lineStyle": style}, *changes(lanes)])
        if column == BUDGETED:
            series.append(_budget(lanes, shown))
    top = quantity.most
    y = axis(type="value", min=0, max=top, splitNumber=4, interval=top and top / 4)
    return frame(round_axis(rounds), y, series)


def _budget(lanes: Sequence[Lane], shown: int) -> Options:
    """The budget in force as a dashed line, and by how much it is exceeded where the curves are far above it."""
    first = lanes[0]
    rounds = first.scenario.system.rounds
    steps = sorted({1, *(change.round for change in first.changes if change.round <= rounds)})
    budgets = [[t, budget_shown(first, t)] for t in (*steps, rounds)]
    return {
        "name": "budget", "type": "line", "data": budgets, "step": "end", "symbol": "none", "silent": True,
        "lineStyle": {"type": "dashed", "width": 1.5, "color": "--ink"}, "itemStyle": {"color": "--ink"},
        "endLabel": {
            "show": True, "formatter": over_budget(lanes, shown) or "budget", "color": "--ink", "fontSize": 11,
            "align": "right", "verticalAlign": "bottom", "offset": [-4, -4],
        },
    }  # fmt: skip


def over_budget(lanes: Sequence[Lane], shown: int) -> str:
    """How many times the budget was spent in the round shown, where it was many times; else nothing."""
    spent = [
        lane.rows[shown - 1][BUDGETED] * QUANTITIES[BUDGETED].scale / budget
        for lane in lanes
        if 1 <= shown <= lane.head and (budget := budget_shown(lane, shown))
    ]
    over = sorted({round(times) for times in spent if times > NEAR})
    return f"over budget, {' to '.join(map(str, dict.fromkeys((over[0], over[-1]))))} times" if over else ""


def budget_shown(lane: Lane, round: int) -> float:
    """The mean budget of the devices in force in a round, in the unit of its chart."""
    return short(float(np.mean(scenario_at(lane, round).system.energy_budget_j)) * QUANTITIES[BUDGETED].scale, 4)


def curve(name: str, points: list, index: int) -> Options:
    dash = {"dash": [6, 3], "dashdot": [6, 3, 2, 3], "dot": [2, 2], "longdash": [9, 3]}
    kind = dash.get(line_style(index).plotly_dash, "solid")
    return {
        "name": name, "type": "line", "data": points, "showSymbol": len(points) == 1, "symbolSize": 6,
        "lineStyle": {"width": 2.2, "color": colour(index), "type": kind},
        "itemStyle": {"color": colour(index)}, "emphasis": {"disabled": True},
    }  # fmt: skip


def marks(lines: list[Options]) -> Options:
    """Lines across a chart, which nobody points at."""
    return {"silent": True, "symbol": "none", "animation": False, "label": {"show": False}, "data": lines}


def changes(lanes: Sequence[Lane]) -> list[Options]:
    """A labelled line at each round from which a lane has another V, size or budget; equal ones once."""
    named = {(c.round, f"{shown_setting(c.field, c.value)}"): None for lane in lanes for c in lane.changes}
    style = {"color": "--changed", "type": "dashed", "width": 1.2, "opacity": 0.9}
    label = {"show": True, "color": "--changed", "fontSize": 10, "position": "end", "distance": 2, "rotate": 0}
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


def points(rows: Sequence[dict[str, Any]], column: str, scale: float) -> list[list[float]]:
    """Round and value of at most MOST_POINTS rows, the last among them, since a race may be long."""
    known = [row for row in rows if row.get(column) is not None]
    few = [*known[: -1 : max(-(-len(known) // MOST_POINTS), 1)], *known[-1:]]
    return [[row["round"], short(row[column] * scale, 4)] for row in few]


def by_label(named: Sequence[tuple[str, NDArray]]) -> Options:
    """Counts by label as groups of bars: (name of the lane, counts) each."""
    classes = max((len(counts) for _, counts in named), default=0)
    x = axis(type="category", data=[str(label) for label in range(classes)], splitLine={"show": False})
    y = axis(type="value", splitNumber=3, minInterval=1)
    series: list[Options] = [
        {
            "name": name, "type": "bar", "data": [float(count) for count in counts], "barMaxWidth": 16,
            "itemStyle": {"color": colour(index), "borderRadius": [2, 2, 0, 0]},
        }
        for index, (name, counts) in enumerate(named)
    ]  # fmt: skip
    return {**frame(x, y, series, top=26), "tooltip": tooltip("axis", "shadow")}


def scores(ranking: Ranking, schedule: Ids) -> Options:
    """The best candidates, a bar for each term of what they are ranked by, its sum as a mark, and the cut-off line."""
    total = ranking.total
    ids = np.argsort(total, kind="stable")[: min(MOST_RANKED, int(np.isfinite(total).sum()))]
    taken = np.isin(ids, schedule)
    green = {"color": "--scheduled"}
    names = [
        {"value": f"device {k}", "textStyle": green if went else {}}
        for k, went in zip(ids.tolist(), taken, strict=True)
    ]
    series: list[Options] = [
        {
            "name": term.name, "type": "bar", "stack": "terms", "barMaxWidth": 12,
            "data": [short(float(term.values[k]), 4) for k in ids],
            "itemStyle": {"color": f"--term-{index % 4}"},
        }
        for index, term in enumerate(ranking.terms)
    ]  # fmt: skip
    sums = [[short(float(total[k]), 4), f"device {k}"] for k in ids]
    mark: Options = {
        "name": "sum", "type": "scatter", "symbol": "diamond", "symbolSize": 8, "data": sums, "z": 5,
        "itemStyle": {"color": "--ink", "borderColor": "--line", "borderWidth": 1},
    }  # fmt: skip
    cut = cut_off(ranking, schedule)
    if cut is not None:
        label = {"show": True, "formatter": "cut-off", "color": "--ink", "fontSize": 10, "position": "start"}
        style = {"color": "--ink", "type": "dashed", "width": 1.2}
        mark["markLine"] = marks([{"xAxis": short(cut, 4), "label": label, "lineStyle": style}])
    x = axis(type="value", splitNumber=3)
    y = axis(type="category", data=names, inverse=True, splitLine={"show": False})
    return {
        **frame(x, y, [*series, mark], top=42, left=24),
        "legend": {
            "top": 0, "left": 0, "itemWidth": 12, "itemHeight": 8, "itemGap": 8,
            "data": [each["name"] for each in series],
            "textStyle": {"color": "--ink", "fontSize": 10},
        },
        "tooltip": tooltip("axis", "shadow"),
    }  # fmt: skip


def cut_off(ranking: Ranking, schedule: Ids) -> float | None:
    """Between the last that was scheduled and the best that was left out; at most 0 where a place may stay empty."""
    total = ranking.total
    member = np.isin(np.arange(len(total)), schedule) & np.isfinite(total)
    others = np.isfinite(total) & ~member
    if not others.any():
        return None
    least = float(total[others].min())
    middle = (float(total[member].max()) + least) / 2 if member.any() else min(least, 0.0)
    return min(middle, 0.0) if ranking.optional else middle


def history(named: Sequence[tuple[int, str, list[dict[str, Any]]]], column: str, rounds: int, shown: int) -> Options:
    """A column of one device by round, a curve for each lane, as (index, label, `Lane.past`); dots: its turns.

    Energy comes with what the budget granted in the same rounds, dashed.
    """
    scale = QUANTITIES["queue_j"].scale if column.endswith("_j") else 1.0
    series: list[Options] = []
    for index, label, past in named:
        rows = past[: bisect_right(past, shown, key=itemgetter("round"))]
        turns = points([row for row in rows if row["scheduled"]][-200:], column, scale)
        dots = {"type": "scatter", "symbolSize": 6, "silent": True, "itemStyle": {"color": colour(index)}}
        series += [curve(label, points(rows, column, scale), index), {"name": label, "data": turns, **dots}]
        if column == "spent_j" and index == named[0][0]:
            style = {"type": "dashed", "width": 1.2, "color": "--ink"}
            series.append({**curve("granted", points(rows, "granted_j", scale), 0), "lineStyle": style})
    return frame(round_axis(rounds), axis(type="value", min=0, splitNumber=3), series)
