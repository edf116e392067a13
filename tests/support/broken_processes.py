"""Processes of the world that break one promise each."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from feelstream.arrays import Nested
from feelstream.environment.availability import Always, NoFaults
from feelstream.environment.channel import IndependentChannel
from feelstream.environment.frequency import UniformFrequency
from feelstream.environment.harvest import NoHarvest, PacketHarvest
from feelstream.environment.mobility import Static


class Overclocked(UniformFrequency):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return context.frequency_high_hz * 2, state


class Short1(UniformFrequency):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return context.frequency_high_hz[:-1], state


class Loud(IndependentChannel):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return 5 * rng.standard_exponential(context.devices), state


class Minus(IndependentChannel):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return rng.standard_normal(context.devices), state


class WritesState(IndependentChannel):
    def init(self, context: Any, rng: np.random.Generator) -> Nested:
        return {"sum": np.zeros(context.devices)}

    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        state["sum"] += 1
        return rng.standard_exponential(context.devices), state


class Drifts(Static):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return state["beta"] * 1.0001**round, state


class Outside(Static):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return np.full(context.devices, 1e9), state


class Away(Always):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return np.zeros(context.devices, bool), state


class Numbers(Always):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return np.ones(context.devices), state


class Fails(NoFaults):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return np.ones(context.devices, bool), state


class Takes(NoHarvest):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return np.full(context.devices, -1.0), state


class Overfull(PacketHarvest):
    @property
    def charge_j(self) -> float:
        return 100 * self.capacity_j


class Objects2(IndependentChannel):
    def init(self, context: Any, rng: np.random.Generator) -> Nested:
        return {"names": ["a"]}


class Known(IndependentChannel):
    """As ByHeart."""

    known: ClassVar[list[Any]] = []

    def init(self, context: Any, rng: np.random.Generator) -> Nested:
        return {"last": np.zeros(1)}

    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        same = round == 1 or any(state["last"] is each for each in self.known)
        after = state["last"].copy()
        self.known.append(after)
        return np.full(context.devices, 1.0 if same else 0.9), {"last": after}


class Stateless(IndependentChannel):
    """Remembers in an attribute of its class what belongs into its state."""

    last: ClassVar[list[float]] = [1.0]

    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        self.last.append(self.last[-1] * 0.999)
        return np.full(context.devices, self.last[-1]), state


BROKEN_PROCESSES = [
    (Overclocked(), "contract"),
    (Short1(), "contract"),
    (Loud(), "mean"),
    (Minus(), "contract"),
    (WritesState(), "runs"),
    (Drifts(), "flags"),
    (Outside(), "contract"),
    (Away(), "flags"),
    (Numbers(), "flags"),
    (Fails(), "flags"),
    (Takes(), "flags"),
    (Overfull(), "flags"),
    (Stateless(), "repeatable"),
    (Objects2(), "contract"),
    (Known(), "checkpoint"),
]
