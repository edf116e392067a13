"""Greedy in energy: the devices for which this round is cheapest.

    Π* = the n feasible devices with the least E~_k(n) = λ c f_k² + (P0/β_k) T~(n)

Needs: this round's CPU frequencies and the mean gains. Ignores: data, and what a device has spent before.

A standard baseline without a single source: no schedule of n devices has a lower planned energy in the round. It is
the limit V → 0 of the Lyapunov scheduler with equal queues.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from feelstream.policies.base import Decision, Observation, Policy, State
from feelstream.policies.ranking import Ranking, Term, lowest


class GreedyEnergy(Policy):
    """The `size` feasible devices with the least planned energy."""

    by_score: ClassVar[bool] = True

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        return Decision(lowest(plan.energy_j, plan.feasible, self.size, rng), plan, score=plan.energy_j)

    def ranking(self, state: State, observation: Observation, decision: Decision, device: int) -> Ranking:
        """E~_k."""
        plan = decision.plan
        return Ranking((Term("planned energy in mJ", np.where(plan.feasible, 1e3 * plan.energy_j, np.nan)),))
