"""Processes of the world that break one promise each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from feelstream.arrays import Nested
from feelstream.environment.availability import Always, NoFaults
from feelstream.environment.channel import IndependentChannel
from feelstream.environment.frequency import UniformFrequency
from feelstream.environment.harvest import NoHarvest, PacketHarvest
from feelstream.environment.mobility import Static


def stepping(base: Any, value: Callable[[int, Nested, Any, np.random.Generator], Any]) -> Any:
    """A process of this kind, whose every step comes to this value and leaves the state alone."""

    class Steps(base):
        def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
            return value(round, state, context, rng), state

    return Steps()


class WritesState(IndependentChannel):
    def init(self, context: Any, rng: np.random.Generator) -> Nested:
        return {"sum": np.zeros(context.devices)}

    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        state["sum"] += 1
        return rng.standard_exponential(context.devices), state


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
    (stepping(UniformFrequency, lambda round, state, context, rng: context.frequency_high_hz * 2), "contract"),
    (stepping(UniformFrequency, lambda round, state, context, rng: context.frequency_high_hz[:-1]), "contract"),
    (
        stepping(IndependentChannel, lambda round, state, context, rng: 5 * rng.standard_exponential(context.devices)),
        "mean",
    ),
    (stepping(IndependentChannel, lambda round, state, context, rng: rng.standard_normal(context.devices)), "contract"),
    (WritesState(), "runs"),
    (stepping(Static, lambda round, state, context, rng: state["beta"] * 1.0001**round), "flags"),
    (stepping(Static, lambda round, state, context, rng: np.full(context.devices, 1e9)), "contract"),
    (stepping(Always, lambda round, state, context, rng: np.zeros(context.devices, bool)), "flags"),
    (stepping(Always, lambda round, state, context, rng: np.ones(context.devices)), "flags"),
    (stepping(NoFaults, lambda round, state, context, rng: np.ones(context.devices, bool)), "flags"),
    (stepping(NoHarvest, lambda round, state, context, rng: np.full(context.devices, -1.0)), "flags"),
    (Overfull(), "flags"),
    (Stateless(), "repeatable"),
    (Objects2(), "contract"),
    (Known(), "checkpoint"),
]
