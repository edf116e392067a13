"""Devices that come and go, and devices that fail.

One that is away cannot be scheduled; its data keeps arriving. One that fails is scheduled and trains, and its update
never arrives, for a reason other than the channel: a crash, a lost connection, a full disk. The server only sees that
nothing came; in the trace such a turn has gain 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from feelstream.environment.base import Process, ProcessContext, Recorded, State, Step, gives
from feelstream.guard import Array, Out
from feelstream.plugins import Fraction, Kind, Probability
from feelstream.tables import Wanted


def is_there(process: Availability, found: Step, *given: Any) -> str | None:
    return "says always_there, and a device is away" if process.always_there and not found[0].all() else None


class Availability(Process):
    """True for the devices that can be reached in a round."""

    plugin_field: ClassVar[str] = "world.availability"
    contract: ClassVar[Mapping[str, Out]] = gives(Array(kind="b"), is_there)
    plugin_traits: ClassVar[tuple[str, ...]] = ("always_there",)

    always_there: ClassVar[bool] = False  # everyone can be reached in every round


class Always(Availability):
    """Everyone can be reached in every round: the paper's."""

    always_there: ClassVar[bool] = True

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        return np.ones(context.devices, bool), state


class ComesAndGoes(Availability):
    """A two-state Markov chain per device: P(there → away) = p_leave, P(away → there) = p_return.

    Round 1 is in the stationary law, P(there) = p_return / (p_leave + p_return).
    """

    p_leave: Probability = Field(default=0.1, description="probability per round to leave; above 0, at most 1")
    p_return: Probability = Field(default=0.3, description="probability per round to return; above 0, at most 1")

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        return {"there": rng.random(context.devices) < self.p_return / (self.p_leave + self.p_return)}

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        there = state["there"]
        flips = rng.random(context.devices) < np.where(there, self.p_leave, self.p_return)
        return there, {"there": there ^ flips}


class Diurnal(Availability):
    """Day and night: device k is there in round t with probability a(t) = ½ (1 + depth · cos 2π(t/day − φ_k)).

    Draws are independent over rounds; the phases φ_k ~ U(0, spread), in days, are fixed for a run. Over whole days a
    device is there half of the time.
    """

    day: int = Field(default=24, strict=True, ge=2, le=2**31 - 1, description="rounds of a day; at least 2")
    depth: Fraction = Field(default=1.0, description="0: no difference between day and night, 1: none at night; 0 to 1")
    spread: Fraction = Field(default=1.0, description="spread of the devices' time zones, in days; 0 to 1")

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        return {"phase": rng.uniform(0, self.spread, context.devices)}

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        chance = 0.5 * (1 + self.depth * np.cos(2 * np.pi * (round / self.day - state["phase"])))
        return rng.random(context.devices) < chance, state


class RecordedAvailability(Availability):
    """From a file with the columns round, device and available (0 or 1); it holds until the device's next row.

    Before its first row a device is there.
    """

    path: str = Field(min_length=1, description="a .csv or .parquet file with columns round, device, available")

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        self._recorded(context)  # read here, with all that the run starts from
        return {"there": np.ones(context.devices, bool)}

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        there = state["there"].copy()
        devices, values = self._recorded(context).of(round)
        there[devices] = values != 0
        return there, {"there": there}

    def _recorded(self, context: ProcessContext) -> Recorded:
        return context.recorded("world.availability.path", self.path, Wanted("available", 0, 1, whole=True))


def never_fails(process: Faults, found: Step, *given: Any) -> str | None:
    return "says never_fails, and a device fails" if process.never_fails and found[0].any() else None


class Faults(Process):
    """True for the devices whose update would not arrive in a round."""

    plugin_field: ClassVar[str] = "world.faults"
    contract: ClassVar[Mapping[str, Out]] = gives(Array(kind="b"), never_fails)
    plugin_traits: ClassVar[tuple[str, ...]] = ("never_fails",)

    never_fails: ClassVar[bool] = False  # every update arrives, if the channel lets it


class NoFaults(Faults):
    """Nothing fails: the paper's."""

    never_fails: ClassVar[bool] = True

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        return np.zeros(context.devices, bool), state


class RandomFaults(Faults):
    """A share of the devices, drawn once, fails with probability `rate` in each round, independently."""

    rate: Probability = Field(default=0.3, description="probability per round to fail; above 0, at most 1")
    share: Probability = Field(
        default=1.0, description="share of the devices that ever fail, at least one; above 0, at most 1"
    )

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        order = rng.permutation(context.devices)
        return {"prone": order < max(1, round(self.share * context.devices))}

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        return state["prone"] & (rng.random(context.devices) < self.rate), state


class Breakdowns(Faults):
    """A two-state Markov chain per device: P(works → broken) = p_break, P(broken → works) = p_repair.

    Round 1 is in the stationary law, P(broken) = p_break / (p_break + p_repair).
    """

    p_break: Probability = Field(default=0.02, description="probability per round to break down; above 0, at most 1")
    p_repair: Probability = Field(default=0.1, description="probability per round to be repaired; above 0, at most 1")

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        return {"broken": rng.random(context.devices) < self.p_break / (self.p_break + self.p_repair)}

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        broken = state["broken"]
        flips = rng.random(context.devices) < np.where(broken, self.p_repair, self.p_break)
        return broken, {"broken": broken ^ flips}


AVAILABILITIES = Kind(
    "availability",
    "availabilities",
    Availability,
    {"always": Always, "markov": ComesAndGoes, "diurnal": Diurnal, "trace": RecordedAvailability},
)
FAULTS = Kind("faults", "faults", Faults, {"none": NoFaults, "random": RandomFaults, "markov": Breakdowns})
