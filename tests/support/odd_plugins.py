"""Plug-ins that are odd and lawful: each does something that none of ours does, and keeps the contract of its kind.

`ODD` are the settings of a scenario that has many of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from feelstream.arrays import Ints, Nested
from feelstream.data.streaming.arrivals import Arrivals, ArrivalSchedule, EndlessArrivals
from feelstream.data.streaming.buffers import Buffer, Items, UseOnce, ranges
from feelstream.data.streaming.order import Shards
from feelstream.environment.channel import Channel
from feelstream.environment.harvest import Harvest
from feelstream.environment.mobility import Mobility
from feelstream.learning.contract import Learner, Training
from feelstream.learning.local import Cohort, LocalTraining
from feelstream.learning.server import ServerUpdate, UpdateContext

FILE = Path(__file__).resolve()


class Lists(Buffer):
    """Holds what it likes, as one list per device: its state is of any length, and nested."""

    def init(self, devices: int) -> Nested:
        return super().init(devices) | {"lists": {str(k): np.empty(0, np.int64) for k in range(devices)}}

    def join(self, state: Nested, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        device, position = ranges(devices, state["hi"][devices], counts)
        state["hi"][devices] += counts
        wanted = self.wanted(position)
        came, gone = Items(device[wanted], position[wanted]), []
        for k, mine in enumerate(list(state["lists"].values())):
            mine = np.concatenate([mine, came.positions[came.devices == k]])
            forgotten = max(0, len(mine) - self.allowed(state, k))
            gone += [(k, place) for place in mine[:forgotten].tolist()]
            state["lists"][str(k)] = mine[forgotten:]
        left = np.array(gone, np.int64).reshape(-1, 2)
        return came, Items(left[:, 0], left[:, 1])

    def wanted(self, position: Ints) -> np.ndarray:
        return np.ones(len(position), bool)

    def allowed(self, state: Nested, device: int) -> int:
        return 2**31

    def draw(self, state: Nested, device: int, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
        return rng.choice(state["lists"][str(device)], shape)

    def held(self, state: Nested, device: int) -> Ints:
        return state["lists"][str(device)].copy()


class EverySecond(Lists):
    """Keeps every second sample that arrives, and these for ever: `keeps`, but not `admits_all`."""

    keeps: ClassVar[bool] = True

    def wanted(self, position: Ints) -> np.ndarray:
        return position % 2 == 0


class Diary(Lists):
    """Holds the last 12 samples, two fewer after every use of the device, and at least 2; its state grows for ever."""

    @property
    def most_held(self) -> int | None:
        return 12

    def init(self, devices: int) -> Nested:
        return super().init(devices) | {"diary": np.zeros((0, devices), np.int64)}

    def allowed(self, state: Nested, device: int) -> int:
        return max(2, 12 - 2 * int(state["diary"][:, device].sum()))

    def use(self, state: Nested, devices: Ints) -> None:
        entry = np.isin(np.arange(len(state["hi"])), devices).astype(np.int64)
        state["diary"] = np.vstack([state["diary"], entry])  # a line more with every use, for ever


class Once(UseOnce):
    """use_once by another name."""


class OnceOfFew(Lists):
    """use_once that holds the last few only, so that it does not promise to keep everything."""

    empties_on_use: ClassVar[bool] = True
    few: int = Field(default=6, ge=1, description="most samples that a device holds; ≥ 1")

    @property
    def most_held(self) -> int | None:
        return self.few

    def allowed(self, state: Nested, device: int) -> int:
        return self.few

    def use(self, state: Nested, devices: Ints) -> None:
        state["lists"] |= {str(k): np.empty(0, np.int64) for k in devices}


class Chronicle(EndlessArrivals):
    """Endless, with a state that grows: every round it remembers what came, and brings fewer where much came lately."""

    def init(self, devices: int, rng: np.random.Generator) -> np.ndarray:
        return rng.integers(0, 3, (1, devices))

    def counts(self, round: int, state: np.ndarray, devices: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        lately = state[-3:].sum(axis=0)
        came = np.where(lately > 6, 0, rng.integers(0, 5, devices))
        return came, np.vstack([state, came[None]])


class Bare(Arrivals):
    """Endless without deriving from EndlessArrivals: device k has the samples k, k + K, …, and receives one a round."""

    def plan(self, context: Any) -> ArrivalSchedule:
        mine = [np.arange(k, len(context.labels), context.devices) for k in range(context.devices)]
        offsets = np.concatenate([[0], np.cumsum([len(each) for each in mine])])
        return ArrivalSchedule(Shards(offsets, np.concatenate(mine).astype(np.int32)), None)

    def counts(self, round: int, state: np.ndarray, devices: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
        return np.ones(devices, np.int64), state


class Echo(Channel):
    """The mean of the last three draws: a channel with a memory, which is empty at first and then grows to two."""

    def init(self, context: Any, rng: np.random.Generator) -> Nested:
        return {"last": np.empty((0, context.devices))}

    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> tuple[Any, Nested]:
        drawn = np.vstack([state["last"], rng.standard_exponential((1, context.devices))])
        return drawn.mean(axis=0), {"last": drawn[-2:]}


class Lift(Mobility):
    """Everyone goes up and down together between 0 and 4 dB."""

    def gain_range_db(self, low_db: float, high_db: float) -> tuple[float, float]:
        return 0.0, 4.0

    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> tuple[Any, Nested]:
        return np.full(context.devices, 10 ** (round % 5 / 10)), state


class Lamp(Harvest):
    """Half a joule in every round into batteries of two joules; its settings have no field for either."""

    @property
    def battery_j(self) -> float | None:
        return 2.0

    @property
    def charge_j(self) -> float:
        return 1.0

    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> tuple[Any, Nested]:
        return np.full(context.devices, 0.5), state


BUFFERS: tuple[Buffer, ...] = (EverySecond(), Diary(), Once(), OnceOfFew())
ARRIVALS: tuple[Arrivals, ...] = (Chronicle(), Bare())


class Sleepy(LocalTraining):
    """Takes one long step on all that a device holds, in every other of its turns, which it counts; nothing arrives."""

    stride: float = 0.05

    def train(self, learner: Learner, theta: Any, cohort: Cohort, state: Nested) -> tuple[Training, Nested]:
        turns = {str(k): 1 + state.get("turns", {}).get(str(k), np.array(0)) for k in cohort.ids.tolist()}
        updates = np.zeros((len(cohort.ids), len(theta)), np.float32)
        losses = np.full((len(cohort.ids), 1, 1), np.nan, np.float32)
        for row, k in enumerate(cohort.ids.tolist()):
            if turns[str(k)] % 2:
                found = learner.gradients(theta, cohort.held(k)[None])
                updates[row], losses[row] = -self.stride * found.values[0], found.losses.mean()
        return Training(updates, losses), {name: np.asarray(count) for name, count in turns.items()}

    def update(self, state: Nested, after: Nested, cohort: Cohort, sent: Any) -> Nested:
        return {"turns": {**state.get("turns", {}), **after}, "lost": np.asarray(state.get("lost", 0) + (~sent).sum())}


class Duel(ServerUpdate):
    """Only the longest update counts, and a device that won is skipped the next time; nothing but it: θ stays."""

    def init(self, parameters: int) -> Nested:
        return {"winner": np.array(-1)}

    def step(
        self, theta: Any, updates: Any, context: UpdateContext, state: Nested, rng: np.random.Generator
    ) -> tuple[Any, Nested]:
        lengths = np.where(context.ids == state["winner"], -1.0, np.linalg.norm(updates, axis=1))
        best = int(np.argmax(lengths))
        if lengths[best] < 0:
            return theta, {"winner": np.array(-1)}
        return theta + updates[best], {"winner": np.array(context.ids[best])}


OTHERS = (Echo(), Lift(), Lamp(), Sleepy(), Duel())

ODD = [
    f"data.buffer.kind={FILE}:Diary",
    f"data.arrivals.kind={FILE}:Chronicle",
    f"world.channel.kind={FILE}:Echo",
    f"world.mobility.kind={FILE}:Lift",
    f"world.harvest.kind={FILE}:Lamp",
    f"learning.local.kind={FILE}:Sleepy",
    f"learning.server.kind={FILE}:Duel",
]
