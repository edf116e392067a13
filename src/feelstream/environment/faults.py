"""Faults: devices that are scheduled, train, and whose update never arrives, for a reason other than the channel.

A crash, a lost connection, a full disk: the server only sees that nothing came. In the trace such a turn has gain 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from feelstream.environment.base import Probability, Process, ProcessContext, State, Step, gives
from feelstream.guard import Array, Out


def never_fails(process: Faults, found: Step, *given: Any) -> str | None:
    return "says never_fails, and a device fails" if process.never_fails and found[0].any() else None


class Faults(Process):
    """True for the devices whose update would not arrive in a round."""

    plugin_field: ClassVar[str] = "world.faults"
    contract: ClassVar[Mapping[str, Out]] = gives(Array(kind="b"), never_fails)
    plugin_flags: ClassVar[tuple[str, ...]] = ("never_fails",)

    never_fails: ClassVar[bool] = False  # every update arrives, if the channel lets it


class NoFaults(Faults):
    """Nothing fails: the paper's."""

    tag: ClassVar[str] = "none"
    never_fails: ClassVar[bool] = True

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        return np.zeros(context.devices, bool), state


class RandomFaults(Faults):
    """A share of the devices, drawn once, fails with probability `rate` in each round, independently."""

    tag: ClassVar[str] = "random"

    rate: Annotated[Probability, Field(description="probability per round to fail; above 0, at most 1")] = 0.3
    share: Annotated[
        Probability, Field(description="share of the devices that ever fail, at least one; above 0, at most 1")
    ] = 1.0

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        order = rng.permutation(context.devices)
        return {"prone": order < max(1, round(self.share * context.devices))}

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        return state["prone"] & (rng.random(context.devices) < self.rate), state


class Breakdowns(Faults):
    """A two-state Markov chain per device: P(works → broken) = p_break, P(broken → works) = p_repair.

    Round 1 is in the stationary law, P(broken) = p_break / (p_break + p_repair).
    """

    tag: ClassVar[str] = "markov"

    p_break: Annotated[Probability, Field(description="probability per round to break down; above 0, at most 1")] = 0.02
    p_repair: Annotated[Probability, Field(description="probability per round to be repaired; above 0, at most 1")] = (
        0.1
    )

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        return {"broken": rng.random(context.devices) < self.p_break / (self.p_break + self.p_repair)}

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        broken = state["broken"]
        flips = rng.random(context.devices) < np.where(broken, self.p_repair, self.p_break)
        return broken, {"broken": broken ^ flips}
