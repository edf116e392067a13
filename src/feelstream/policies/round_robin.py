"""Round robin: the devices take turns in a fixed cyclic order, which is drawn at random before the first round.

    Π* = the first n feasible devices met when walking the places p, p+1, …, K−1, 0, …, p−1 of that order;
    p ← 1 + the last of them (mod K)

Needs: nothing but feasibility. Ignores: energy, channels, data.

Reference: H. H. Yang, Z. Liu, T. Q. S. Quek, H. V. Poor, "Scheduling Policies for Federated Learning in Wireless
Networks", IEEE Trans. Commun. 68(1), 2020, arXiv:1908.06287, where fixed groups of n follow one another.
Choice: groups would waste the slots of infeasible members, so we walk the circle; a device that is infeasible when
passed loses its turn. With all feasible and n | K these are the paper's groups.
"""

from __future__ import annotations

import numpy as np

from feelstream.model.system import System
from feelstream.policies.base import Decision, Observation, Outcome, Policy, State


class RoundRobin(Policy):
    """The next `size` feasible devices in cyclic order."""

    def start(self, system: System, rng: np.random.Generator) -> State:
        return {"next": np.array(0), "order": rng.permutation(system.devices)}

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        places = np.flatnonzero(plan.feasible[state["order"]])
        first = np.searchsorted(places, int(state["next"]))
        return Decision(np.sort(state["order"][np.roll(places, -first)[: self.size]]), plan)

    def update(self, state: State, outcome: Outcome) -> State:
        if len(outcome.schedule) == 0:
            return state
        start, devices = int(state["next"]), len(state["order"])
        places = np.flatnonzero(np.isin(state["order"], outcome.schedule))
        furthest = int(((places - start) % devices).max())
        return state | {"next": np.array((start + furthest + 1) % devices)}
