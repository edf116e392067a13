"""Options of the charts that show single devices: the map around the server, and who was scheduled when."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feelstream.display.quantities import QUANTITIES, short
from feelstream.run.explaining import number, shown_as
from feelstream.studio.charts import Options, axis, base, changes, colour, frame, ink, round_axis, tooltip
from feelstream.studio.lanes import Lane
from feelstream.studio.views import RoundView

MOST_MARKS = 1500  # of those who were scheduled, as sent to the page
GOLDEN_ANGLE = 137.50776
QUEUE_COLOURS = {
    False: ["#9CC9E3", "#F0D58C", "#E08A3C", "#B2341F"],
    True: ["#3E7FA6", "#D9B84F", "#E8873A", "#FF5A47"],
}
SENT, DROPPED = {False: "#00855F", True: "#35CFA0"}, {False: "#C8102E", True: "#FF6B6B"}


def places(devices: dict[str, NDArray]) -> tuple[NDArray, NDArray]:
    """(mean channel loss in dB, angle in degrees) of each device: where it is on a map."""
    return -10 * np.log10(devices["beta"]), devices["device"] * GOLDEN_ANGLE % 360


def device_map(view: RoundView, most_queue_j: float, most_stored: float, selected: int | None, dark: bool) -> Options:
    """The devices around the server, the farther the weaker their mean channel.

    Colour: queue; large disc: stored data; small disc: fresh data; ring: scheduled, and sent or dropped.
    """
    devices, queue = view.devices, QUANTITIES["queue_j"]
    assert devices is not None
    loss_db, angle = places(devices)

    def size(count: float) -> float:
        return round(5 + 27 * float(np.sqrt(max(count, 0) / max(most_stored, 1))), 1)

    def place(i: int) -> list[float]:
        backlog = short(float(devices["queue_j"][i]) * queue.scale, 4)
        return [round(float(loss_db[i]), 2), round(float(angle[i]), 1), backlog]

    def point(i: int, diameter: float, **more: Any) -> Options:
        name = f"device {devices['device'][i]}"
        return {"name": name, "value": place(i), "symbolSize": diameter, "tooltip": {"formatter": about(i)}, **more}

    def about(i: int) -> str:
        held = f"{devices['stored'][i]} stored, {devices['fresh'][i]} fresh samples"
        loss = f"mean channel loss {number(float(loss_db[i]))} dB"
        waiting = f"queue {shown_as('queue_j', float(devices['queue_j'][i]))}"
        return f"<b>device {devices['device'][i]}</b>, {view.status(i)}<br>{waiting}<br>{held}<br>{loss}"

    everyone = range(len(angle))
    stored = [
        point(i, size(devices["stored"][i]), itemStyle={"opacity": 0.45 if devices["feasible"][i] else 0.15})
        for i in everyone
    ]
    # Discs of fresh data let the mouse through to those of stored data, which have a name and a text.
    fresh = [
        {"value": place(i), "symbolSize": round(size(devices["fresh"][i]) * 0.6, 1)}
        for i in everyone
        if devices["fresh"][i]
    ]
    sent = [i for i in view.chosen if devices["transmitted"][i]]
    dropped = [i for i in view.chosen if not devices["transmitted"][i]]
    where = view.where(selected) if selected is not None else None

    def rings(name: str, members: Sequence[int], edge: str, line: str = "solid") -> Options:
        style = {"color": "transparent", "borderColor": edge, "borderWidth": 3, "borderType": line}
        number = {"show": True, "position": "right", "color": ink(dark), "fontSize": 11}
        data = [
            point(i, size(devices["stored"][i]) + 7, label={**number, "formatter": str(devices["device"][i])})
            for i in members
        ]
        return {"name": name, "type": "scatter", "coordinateSystem": "polar", "data": data, "itemStyle": style, "z": 5}

    def frame(i: int) -> Options:
        """The selected device has a square around it, which no ring is mistaken for."""
        style = {"color": "transparent", "borderColor": ink(dark), "borderWidth": 1.5}
        return point(i, size(devices["stored"][i]) + 16, symbol="rect", itemStyle=style)

    most = max(short(most_queue_j * queue.scale, 3), 1.0)
    # Circles at even numbers, and room for the server in the middle.
    low, high = 2 * float(np.floor(loss_db.min() / 2)) - 2, 2 * float(np.ceil(loss_db.max() / 2))
    cloud: Options = {"type": "scatter", "coordinateSystem": "polar"}
    server = {"value": [low, 0, 0], "symbol": "triangle", "symbolSize": 12, "itemStyle": {"color": ink(dark)}}
    return {
        **base(dark),
        "polar": {"radius": "84%", "center": ["50%", "46%"]},
        "angleAxis": {"type": "value", "min": 0, "max": 360, "show": False},
        "radiusAxis": axis(
            dark, type="value", min=low, max=high, interval=2 if high - low <= 12 else 4, axisLine={"show": False},
            axisLabel={
                "color": ink(dark), "fontSize": 9, "opacity": 0.6, "formatter": "{value} dB", "showMinLabel": False,
            },
        ),
        "visualMap": {
            "type": "continuous", "seriesIndex": [0, 1], "dimension": 2,
            "min": 0, "max": most,
            "inRange": {"color": QUEUE_COLOURS[dark]}, "orient": "horizontal", "left": "center", "bottom": 0,
            "itemWidth": 10, "itemHeight": 120, "text": [f"{most:g} {queue.unit}", f"{queue.heading} 0"],
            "textStyle": {"color": ink(dark), "fontSize": 11},
            "calculable": False,
        },
        "tooltip": tooltip(dark, "item"),
        "series": [
            {**cloud, "name": "stored", "data": stored, "z": 2},
            {**cloud, "name": "fresh", "data": fresh, "z": 3, "silent": True},
            rings("sent", sent, SENT[dark]),
            rings("dropped", dropped, DROPPED[dark], "dashed"),
            {**cloud, "name": "selected", "data": [] if where is None else [frame(where)], "z": 6, "silent": True},
            {**cloud, "name": "server", "data": [server], "z": 1, "silent": True},
        ],
    }  # fmt: skip


def timeline(lane: Lane, index: int, shown: int, selected: int | None, dark: bool) -> Options:
    """Who was scheduled when: a mark per round and device, hollow where the device was dropped."""
    rounds, devices = lane.scenario.system.rounds, lane.scenario.system.devices
    upto = bisect_right(lane.schedule, shown, key=itemgetter(0))
    recent = lane.schedule[max(upto - MOST_MARKS, 0) : upto]
    width = max(2.0, min(9.0, 420 / rounds))
    mark = {"type": "scatter", "symbol": "rect", "symbolSize": [width, max(3.0, min(7.0, 240 / devices))]}
    line: Options = {"silent": True, "symbol": "none", "animation": False, "label": {"show": False}}
    line["data"] = changes([lane], dark)
    if selected is not None:
        style = {"color": ink(dark), "type": "dotted", "width": 1}
        line["data"] = [{"yAxis": selected, "lineStyle": style}, *line["data"]]

    def mark_of(round: int, device: int) -> Options:
        return {"name": f"device {device} in round {round}", "value": [round, device]}

    y = axis(dark, type="value", min=0, max=max(devices - 1, 1), minInterval=1, splitNumber=4, inverse=True)
    series: list[Options] = [
        {
            **mark, "name": "sent", "data": [mark_of(t, device) for t, device, went in recent if went],
            "itemStyle": {"color": colour(index, dark)}, "markLine": line,
        },
        {
            **mark, "name": "dropped", "data": [mark_of(t, device) for t, device, went in recent if not went],
            "itemStyle": {"color": "transparent", "borderColor": DROPPED[dark], "borderWidth": 1.5},
        },
    ]  # fmt: skip
    tip = {**tooltip(dark, "item"), "formatter": "{b}"}
    return {**frame(dark, round_axis(dark, rounds), y, series, top=16), "tooltip": tip}
