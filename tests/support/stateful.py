"""A policy with a memory, for runs that are killed: it takes those who waited longest, by what it remembers."""

from __future__ import annotations

import numpy as np

from feelstream.model.system import System
from feelstream.policies.base import Decision, Observation, Outcome, Policy, State
from feelstream.policies.ranking import lowest


class Patient(Policy):
    """Least last round of transmission."""

    def init(self, system: System) -> State:
        return {"last": np.zeros(system.devices)}

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        return Decision(lowest(state["last"], plan.feasible, plan.n, rng), plan, score=state["last"])

    def update(self, state: State, outcome: Outcome) -> State:
        last = state["last"].copy()
        last[outcome.schedule[outcome.transmitted]] = outcome.round
        return {"last": last}
