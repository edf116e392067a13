"""Plug-ins that are odd and lawful: each does something that none of ours does, and keeps the contract of its kind.

`ODD` are the settings of a scenario in which nearly everything is odd.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from feelstream.arrays import Ints, Nested
from feelstream.data.streaming.arrivals import Arrivals, ArrivalSchedule, EndlessArrivals, FiniteArrivals
from feelstream.data.streaming.buffers import Buffer, Items, Store, UseOnce, ranges
from feelstream.data.streaming.order import Shards
from feelstream.data.streaming.partition import Partition
from feelstream.environment.availability import Availability
from feelstream.environment.channel import Channel
from feelstream.environment.faults import Faults
from feelstream.environment.frequency import Frequency
from feelstream.environment.harvest import Harvest
from feelstream.environment.paper import Mobility, Static
from feelstream.learning.contract import Learner, Training
from feelstream.learning.local import Cohort, LocalTraining
from feelstream.learning.server import ServerUpdate, UpdateContext

FILE = Path(__file__).resolve()


class ListStore(Store):
    """Holds what it likes, as one list per device: its state is of any length, and nested."""

    def __init__(self, devices: int) -> None:
        super().__init__(devices)
        self.lists: list[list[int]] = [[] for _ in range(devices)]

    def join(self, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        device, position = ranges(devices, self.hi[devices], counts)
        self.hi[devices] += counts
        wanted = self.wanted(position)
        came = Items(device[wanted], position[wanted])
        for k, place in zip(*came, strict=True):
            self.lists[k].append(int(place))
        gone = [(k, place) for k, mine in enumerate(self.lists) for place in self.forget(k, mine)]
        for k, place in gone:
            self.lists[k].remove(place)
        left = np.array(gone, np.int64).reshape(-1, 2)
        return came, Items(left[:, 0], left[:, 1])

    def wanted(self, position: Ints) -> np.ndarray:
        return np.ones(len(position), bool)

    def forget(self, device: int, mine: list[int]) -> list[int]:
        return []

    def draw(self, device: int, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
        return np.array(self.lists[device])[rng.integers(len(self.lists[device]), size=shape)]

    def held(self, device: int) -> Ints:
        return np.array(self.lists[device], np.int64)

    def snapshot(self) -> Nested:
        flat = np.array([place for mine in self.lists for place in mine], np.int64)
        return super().snapshot() | {"lists": {"lengths": np.array([len(m) for m in self.lists]), "positions": flat}}

    def restore(self, saved: Nested) -> None:
        super().restore(saved)
        cuts = np.cumsum(saved["lists"]["lengths"])[:-1]
        self.lists = [part.tolist() for part in np.split(saved["lists"]["positions"], cuts)]


class SecondStore(ListStore):
    def wanted(self, position: Ints) -> np.ndarray:
        return position % 2 == 0


class EverySecond(Buffer):
    """Keeps every second sample that arrives, and these for ever: `keeps`, but not `admits_all`."""

    keeps: ClassVar[bool] = True

    def store(self, devices: int, longest: int | None) -> Store:
        return SecondStore(devices)


class DiaryStore(ListStore):
    """Remembers in which round it was used how often, since the first: `use` leaves a mark that later uses deepen."""

    def __init__(self, devices: int) -> None:
        super().__init__(devices)
        self.diary = np.zeros((0, devices), np.int64)

    def forget(self, device: int, mine: list[int]) -> list[int]:
        allowed = max(2, 12 - 2 * int(self.diary[:, device].sum()))
        return mine[: max(0, len(mine) - allowed)]

    def use(self, devices: Ints) -> bool:
        entry = np.zeros((1, len(self.hi)), np.int64)
        entry[0, devices] = 1
        self.diary = np.vstack([self.diary, entry])  # a line more with every use, for ever
        return False

    def snapshot(self) -> Nested:
        return super().snapshot() | {"diary": self.diary.copy()}

    def restore(self, saved: Nested) -> None:
        super().restore(saved)
        self.diary = saved["diary"].copy()


class Diary(Buffer):
    """Holds the last 12 samples, two fewer after every use of the device, and at least 2; its state grows for ever."""

    @property
    def most_held(self) -> int | None:
        return 12

    def store(self, devices: int, longest: int | None) -> Store:
        return DiaryStore(devices)


class Once(UseOnce):
    """use_once by another name."""


class OnceStore(ListStore):
    def __init__(self, devices: int, most: int) -> None:
        super().__init__(devices)
        self.most = most

    def forget(self, device: int, mine: list[int]) -> list[int]:
        return mine[: max(0, len(mine) - self.most)]

    def use(self, devices: Ints) -> bool:
        for k in devices:
            self.lists[k] = []
        return True


class OnceOfFew(UseOnce):
    """use_once that holds the last few only: what its parent promises of keeping everything, it takes back."""

    admits_all: ClassVar[bool] = False
    keeps: ClassVar[bool] = False
    few: int = Field(default=6, ge=1, description="most samples that a device holds; ≥ 1")

    @property
    def most_held(self) -> int | None:
        return self.few

    def store(self, devices: int, longest: int | None) -> Store:
        return OnceStore(devices, self.few)


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


class Lumps(FiniteArrivals):
    """Finite: a third comes at the very start, a third at the very end, and the rest never."""

    def times(self, sizes: Ints, run_s: float, rng: np.random.Generator) -> np.ndarray:
        return np.array([0.0, run_s, run_s * 1.5])[np.arange(int(sizes.sum())) % 3]


class Lonely(Partition):
    """Device 0 has half of all samples, the last device the other half but one, and one sample nobody."""

    def split(self, labels: Any, devices: int, classes: int, rng: np.random.Generator) -> Any:
        owner = np.where(np.arange(len(labels)) % 2, devices - 1, 0).astype(np.int32)
        owner[rng.integers(len(labels))] = -1
        return owner


class Echo(Channel):
    """The mean of the last three draws: a channel with a memory, which is empty at first and then grows to two."""

    def init(self, context: Any, rng: np.random.Generator) -> Nested:
        return {"last": np.empty((0, context.devices))}

    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> tuple[Any, Nested]:
        drawn = np.vstack([state["last"], rng.standard_exponential((1, context.devices))])
        return drawn.mean(axis=0), {"last": drawn[-2:]}


class Tiring(Frequency):
    """From the highest frequency down to the lowest in steps of a tenth, and up again at once."""

    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> tuple[Any, Nested]:
        tired = (round - 1) % 11 / 10
        return context.frequency_high_hz * (1 - tired) + context.frequency_low_hz * tired, state


class Lift(Mobility):
    """Everyone goes up and down together between 0 and 4 dB."""

    def gain_range_db(self, low_db: float, high_db: float) -> tuple[float, float]:
        return 0.0, 4.0

    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> tuple[Any, Nested]:
        return np.full(context.devices, 10 ** (round % 5 / 10)), state


class Pinned(Static):
    """static by another name."""


class Shifts(Availability):
    """Even devices in even rounds, odd ones in odd rounds."""

    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> tuple[Any, Nested]:
        return np.arange(context.devices) % 2 == round % 2, state


class Mondays(Faults):
    """Every seventh round nothing works, and device 0 never does."""

    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> tuple[Any, Nested]:
        return (np.arange(context.devices) == 0) | (round % 7 == 0), state


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
ARRIVALS: tuple[Arrivals, ...] = (Chronicle(), Bare(), Lumps())


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


OTHERS = (Lonely(), Echo(), Tiring(), Lift(), Pinned(), Shifts(), Mondays(), Lamp(), Sleepy(), Duel())

ODD = [
    f"data.partition.kind={FILE}:Lonely",
    f"data.buffer.kind={FILE}:Diary",
    f"data.arrivals.kind={FILE}:Chronicle",
    f"world.channel.kind={FILE}:Echo",
    f"world.frequency.kind={FILE}:Tiring",
    f"world.mobility.kind={FILE}:Lift",
    f"world.availability.kind={FILE}:Shifts",
    f"world.harvest.kind={FILE}:Lamp",
    f"world.faults.kind={FILE}:Mondays",
    f"learning.local.kind={FILE}:Sleepy",
    f"learning.server.kind={FILE}:Duel",
]
