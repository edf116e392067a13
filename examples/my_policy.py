"""A policy of one's own: prefer devices with much fresh data, but let each rest for some rounds after its turn.

feelstream check examples/my_policy.py:Rested
feelstream run tiny --set policy.name=examples/my_policy.py:Rested --set policy.rest=3
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from feelstream import Decision, Observation, Outcome, Policy, System


class Rested(Policy):
    """The `size` feasible devices with the most fresh samples among those that have rested."""

    rest: int = Field(default=2, ge=0, description="rounds that a device rests after its turn; ≥ 0")

    def init(self, system: System) -> dict[str, np.ndarray]:
        return {"last": np.full(system.devices, -(10**9))}

    def select(self, state: dict[str, np.ndarray], observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        rested = np.flatnonzero(plan.feasible & (observation.round - state["last"] > self.rest))
        shuffled = rng.permutation(rested)  # ties are broken at random, never by device number
        most_fresh_first = shuffled[np.argsort(-observation.fresh[shuffled], kind="stable")]
        return Decision(np.sort(most_fresh_first[: self.size]), plan)

    def update(self, state: dict[str, np.ndarray], outcome: Outcome) -> dict[str, np.ndarray]:
        last = state["last"].copy()
        last[outcome.schedule] = outcome.round
        return {"last": last}
