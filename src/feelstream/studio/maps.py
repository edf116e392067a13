"""Options of the charts that show single devices: the map around the server, and who was scheduled when."""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from feelstream.display.quantities import QUANTITIES, short
from feelstream.run.explaining import number, shown_as
from feelstream.studio.charts import Options, axis, base, changes, colour, frame, marks, round_axis, tooltip
from feelstream.studio.lanes import Lane
from feelstream.studio.views import RoundView

MOST_MARKS = 1500  # of those who were scheduled, as sent to the page
GOLDEN_ANGLE = 137.50776


def places(devices: dict[str, NDArray]) -> tuple[NDArray, NDArray]:
    """(mean channel loss in dB, angle in degrees) of each device: where it is on a map."""
    return -10 * np.log10(devices["beta"]), devices["device"] * GOLDEN_ANGLE % 360


def device_map(view: RoundView, most_queue_j: float, most_stored: float, selected: int | None) -> Options:
    """The devices around the server, the farther the weaker their mean channel.

    Colour: queue; large disc: stored data; small disc: fresh data; ring: scheduled, and sent or dropped.
    """
    devices, queue = view.devices, QUANTITIES["queue_j"]
    assert devices is not None
    loss_db, angle = places(devices)
    everyone = np.arange(len(angle))

    def place(i: int) -> list[float]:
        backlog = short(float(devices["queue_j"][i]) * queue.scale, 4)
        return [round(float(loss_db[i]), 2), round(float(angle[i]), 1), backlog]

    def about(i: int) -> str:
        held = f"{devices['stored'][i]} stored, {devices['fresh'][i]} fresh samples"
        loss = f"mean channel loss {number(float(loss_db[i]))} dB"
        waiting = f"queue {shown_as('queue_j', float(devices['queue_j'][i]))}"
        return f"<b>device {devices['device'][i]}</b>, {view.status(i)}<br>{waiting}<br>{held}<br>{loss}"

    def size(count: float) -> float:
        return 5 + 27 * float(np.sqrt(max(count, 0) / max(most_stored, 1)))

    def symbols(name: str, members: NDArray, of: str = "stored", share: float = 1, wider: int = 0, **more) -> Options:
        data = [
            {
                "name": f"device {devices['device'][i]}", "value": place(i), "tooltip": {"formatter": about(i)},
                "symbolSize": round(share * size(float(devices[of][i])) + wider, 1),
                "itemStyle": {"opacity": 1 if wider or share < 1 else 0.45 if devices["feasible"][i] else 0.15},
            }
            for i in members
        ]  # fmt: skip
        return {"name": name, "type": "scatter", "coordinateSystem": "polar", "data": data, **more}

    def rings(name: str, went: bool, edge: str, line: str) -> Options:
        style = {"color": "transparent", "borderColor": edge, "borderWidth": 3, "borderType": line}
        number = {"show": True, "position": "right", "color": "--ink", "fontSize": 11}
        drawn = symbols(name, view.chosen[devices["transmitted"][view.chosen] == went], wider=7, itemStyle=style, z=5)
        for each in drawn["data"]:
            each["label"] = {**number, "formatter": each["name"].removeprefix("device ")}
        return drawn

    # A square, which no ring is mistaken for.
    square = {"color": "transparent", "borderColor": "--ink", "borderWidth": 1.5}
    where = everyone[devices["device"] == selected]
    most = max(short(most_queue_j * queue.scale, 3), 1.0)
    # Circles at even numbers, and room for the server in the middle.
    low, high = 2 * float(np.floor(loss_db.min() / 2)) - 2, 2 * float(np.ceil(loss_db.max() / 2))
    server = {"value": [low, 0, 0], "symbol": "triangle", "symbolSize": 12}
    return {
        **base(),
        "polar": {"radius": "84%", "center": ["50%", "46%"]},
        "angleAxis": {"type": "value", "min": 0, "max": 360, "show": False},
        "radiusAxis": axis(
            type="value", min=low, max=high, interval=2 if high - low <= 12 else 4, axisLine={"show": False},
            axisLabel={
                "color": "--ink", "fontSize": 9, "opacity": 0.6, "formatter": "{value} dB", "showMinLabel": False,
            },
        ),
        "visualMap": {
            "type": "continuous", "seriesIndex": [0, 1], "dimension": 2, "min": 0, "max": most,
            "inRange": {"color": [f"--queue-{n}" for n in range(4)]},
            "orient": "horizontal", "left": "center", "bottom": 0, "itemWidth": 10, "itemHeight": 120,
            "text": [f"{most:g} {queue.unit}", f"{queue.heading} 0"], "textStyle": {"color": "--ink", "fontSize": 11},
            "calculable": False,
        },
        "tooltip": tooltip("item"),
        "series": [
            symbols("stored", everyone, z=2),
            # They let the mouse through to those of stored data, which have a name and a text.
            symbols("fresh", everyone[devices["fresh"] > 0], "fresh", 0.6, z=3, silent=True),
            rings("sent", True, "--scheduled", "solid"),
            rings("dropped", False, "--dropped", "dashed"),
            symbols("selected", where, wider=16, symbol="rect", itemStyle=square, z=6, silent=True),
            {
                "name": "server", "type": "scatter", "coordinateSystem": "polar", "data": [server], "z": 1,
                "itemStyle": {"color": "--ink"}, "silent": True,
            },
        ],
    }  # fmt: skip


def timeline(lane: Lane, index: int, shown: int, selected: int | None) -> Options:
    """Who was scheduled when: a mark per round and device, hollow where the device was dropped."""
    rounds, devices = lane.scenario.system.rounds, lane.scenario.system.devices
    upto = bisect_right(lane.schedule, shown, key=itemgetter(0))
    recent = lane.schedule[max(upto - MOST_MARKS, 0) : upto]
    width = max(2.0, min(9.0, 420 / rounds))
    mark = {"type": "scatter", "symbol": "rect", "symbolSize": [width, max(3.0, min(7.0, 240 / devices))]}
    style = {"color": "--ink", "type": "dotted", "width": 1}
    lines = [] if selected is None else [{"yAxis": selected, "lineStyle": style}]

    def mark_of(round: int, device: int) -> Options:
        return {"name": f"device {device} in round {round}", "value": [round, device]}

    y = axis(type="value", min=0, max=max(devices - 1, 1), minInterval=1, splitNumber=4, inverse=True)
    series: list[Options] = [
        {
            **mark, "name": "sent", "data": [mark_of(t, device) for t, device, went in recent if went],
            "itemStyle": {"color": colour(index)}, "markLine": marks([*lines, *changes([lane])]),
        },
        {
            **mark, "name": "dropped", "data": [mark_of(t, device) for t, device, went in recent if not went],
            "itemStyle": {"color": "transparent", "borderColor": "--dropped", "borderWidth": 1.5},
        },
    ]  # fmt: skip
    tip = {**tooltip("item"), "formatter": "{b}"}
    return {**frame(round_axis(rounds), y, series, top=16), "tooltip": tip}
