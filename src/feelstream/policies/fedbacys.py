"""FedBacys: groups by what is left of the budget, taking turns in a circle.

    c_k(t) = t E_k^avg − Σ_{s<t} E_k(s)                 what is left of the budget, J
    every G rounds: devices sorted by c_k into G groups of equal size, richest first
    Π*     = the n feasible devices with data of the group whose turn it is, those with the most left

A device saves while other groups have their turns, and trains only just before it sends.

Needs: each device's spending. Ignores: channels, what the data is.

Reference: E. Jeong, N. Pappas, "Battery-aware Cyclic Scheduling in Energy-harvesting Federated Learning",
arXiv:2504.12181. At hand were its abstract and summaries of the rule: clusters by battery level, cyclic turns, training
just before one's own transmission. Choices: devices here have budgets rather than batteries, so the level is the budget
so far less what was spent (it may be negative); a device without enough left may take part, or with the paper's budgets
nobody ever would; before the first round groups are drawn at random.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from feelstream.arrays import Ids
from feelstream.model.system import System
from feelstream.plugins import Count
from feelstream.policies.base import Decision, Observation, Outcome, Policy, State
from feelstream.policies.ranking import left_j, lowest


class FedBacys(Policy):
    """At most `size` feasible devices with data of one group at a time; groups by what is left of the budget."""

    groups: Count = Field(default=5, description="G, groups that take turns, at most one a device; ≥ 1")

    def start(self, system: System, rng: np.random.Generator) -> State:
        return {"spent_j": np.zeros(system.devices), "group": self._grouped(rng.permutation(system.devices))}

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan, turn = observation.plan(self.size), (observation.round - 1) % self._turns(observation.system.devices)
        candidates = plan.feasible & (state["group"] == turn) & (observation.stored > 0)
        left = left_j(observation.system, observation.round, state["spent_j"])
        return Decision(lowest(-left, candidates, self.size, rng), plan)

    def update(self, state: State, outcome: Outcome) -> State:
        spent_j, system = outcome.added_to(state["spent_j"]), outcome.observation.system
        if outcome.round % self._turns(system.devices):
            return {**state, "spent_j": spent_j}
        richest_first = np.argsort(-left_j(system, outcome.round, spent_j), kind="stable")
        return {"spent_j": spent_j, "group": self._grouped(richest_first)}

    def _turns(self, devices: int) -> int:
        return min(self.groups, devices)

    def _grouped(self, order: Ids) -> Ids:
        """The group of each device, from all devices in order."""
        group = np.empty(len(order), np.int64)
        group[order] = np.arange(len(order)) * self._turns(len(order)) // max(len(order), 1)
        return group
