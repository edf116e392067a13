"""Options of bars and of small curves: data by label, the scores of a round, the history of one device."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Ids
from feelstream.display.quantities import QUANTITIES, short
from feelstream.policies.ranking import Ranking
from feelstream.studio.charts import Options, axis, colour, curve, faint, frame, ink, round_axis, thinned, tooltip
from feelstream.studio.lanes import History
from feelstream.studio.maps import SENT

MOST_RANKED = 10
TERM_COLOURS = {False: ["#C76B1E", "#2F7FB8", "#7FBBDD", "#8A8F96"], True: ["#E58E4A", "#4FA3DB", "#9CD0EE", "#A9B0B8"]}


def by_label(named: Sequence[tuple[str, NDArray]], dark: bool, unit: str = "") -> Options:
    """Counts by label as groups of bars: (name of the lane, counts) each."""
    classes = max((len(counts) for _, counts in named), default=0)
    x = axis(dark, type="category", data=[str(label) for label in range(classes)], splitLine={"show": False})
    y = axis(dark, type="value", name=unit, splitNumber=3, minInterval=1, nameTextStyle={"align": "left"})
    series: list[Options] = [
        {
            "name": name, "type": "bar", "data": [float(count) for count in counts], "barMaxWidth": 16,
            "itemStyle": {"color": colour(index, dark), "borderRadius": [2, 2, 0, 0]},
        }
        for index, (name, counts) in enumerate(named)
    ]  # fmt: skip
    return {**frame(dark, x, y, series, top=26), "tooltip": shaded(dark)}


def shaded(dark: bool) -> Options:
    """A tooltip of bars, with a shadow behind them."""
    return {**tooltip(dark, "axis"), "axisPointer": {"type": "shadow"}}


def scores(ranking: Ranking, schedule: Ids, dark: bool) -> Options:
    """The best candidates, a bar for each term of what they are ranked by, its sum as a mark, and the cut-off line."""
    total = ranking.total
    ids = np.argsort(total, kind="stable")[: min(MOST_RANKED, int(np.isfinite(total).sum()))]
    taken = np.isin(ids, schedule)
    bold = {"fontWeight": "bold", "color": SENT[dark]}
    names = [
        {"value": f"device {k}", "textStyle": bold if went else {}} for k, went in zip(ids.tolist(), taken, strict=True)
    ]
    series: list[Options] = [
        {
            "name": term.name, "type": "bar", "stack": "terms", "barMaxWidth": 12,
            "data": [short(float(term.values[k]), 4) for k in ids],
            "itemStyle": {"color": TERM_COLOURS[dark][index % 4]},
        }
        for index, term in enumerate(ranking.terms)
    ]  # fmt: skip
    sums = [[short(float(total[k]), 4), f"device {k}"] for k in ids]
    mark: Options = {
        "name": "sum", "type": "scatter", "symbol": "diamond", "symbolSize": 8, "data": sums, "z": 5,
        "itemStyle": {"color": ink(dark), "borderColor": faint(dark), "borderWidth": 1},
    }  # fmt: skip
    cut = cut_off(ranking, schedule)
    if cut is not None:
        mark["markLine"] = {
            "silent": True, "symbol": "none", "animation": False,
            "label": {"show": True, "formatter": "cut-off", "color": ink(dark), "fontSize": 10, "position": "start"},
            "lineStyle": {"color": ink(dark), "type": "dashed", "width": 1.2}, "data": [{"xAxis": short(cut, 4)}],
        }  # fmt: skip
    x = axis(dark, type="value", splitNumber=3)
    y = axis(dark, type="category", data=names, inverse=True, splitLine={"show": False})
    return {
        **frame(dark, x, y, [*series, mark], top=34),
        "legend": {
            "top": 0, "left": 0, "itemWidth": 12, "itemHeight": 8, "itemGap": 8,
            "data": [each["name"] for each in series],
            "textStyle": {"color": ink(dark), "fontSize": 10},
        },
        "tooltip": shaded(dark),
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


def history(named: Sequence[tuple[int, str, History]], what: str, rounds: int, shown: int, dark: bool) -> Options:
    """Queue, energy spent or data stored of one device by round, a curve for each lane; dots: its turns.

    Energy comes with what the budget granted in the same rounds, dashed.
    """
    scale = QUANTITIES["queue_j"].scale if what.endswith("_j") else 1.0
    series: list[Options] = []
    for index, label, past in named:
        values, upto = getattr(past, what), bisect_right(past.rounds, shown)

        def points(at: Sequence[int], past: History = past, values: Sequence[float] = values) -> list[list[float]]:
            return [[past.rounds[each], short(values[each] * scale, 4)] for each in at]

        series.append(curve(label, points(thinned(range(upto))), index, dark))
        turns = [at for at in range(upto) if past.turns[at]][-200:]
        series.append({
            "name": label, "type": "scatter", "data": points(turns), "symbolSize": 6, "silent": True,
            "itemStyle": {"color": colour(index, dark)},
        })  # fmt: skip
    if what == "spent_j" and named:
        past = named[0][2]
        at = thinned(range(bisect_right(past.rounds, shown)))
        budget = curve("granted", [[past.rounds[t], short(past.granted_j[t] * scale, 4)] for t in at], 0, dark)
        series.append({**budget, "lineStyle": {"type": "dashed", "width": 1.2, "color": ink(dark)}})
    return frame(dark, round_axis(dark, rounds), axis(dark, type="value", min=0, splitNumber=3), series)
