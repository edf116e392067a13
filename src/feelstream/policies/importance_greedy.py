"""Greedy in importance: the devices with the most valuable fresh data, whatever it costs them.

    Π* = the n feasible devices with the largest I_k

Needs: sizes and label counts of fresh data. Ignores: energy, channels.

The ablation V = ∞ of the Lyapunov scheduler, as in figures 2 and 3 of C.-H. Hu, Z. Chen, E. G. Larsson, "Dynamic
Scheduling for Federated Edge Learning with Streaming Data", ICASSP 2023, arXiv:2305.01238.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from feelstream.model.importance import MetricName
from feelstream.policies.base import Decision, Observation, Policy, State
from feelstream.policies.ranking import Ranking, importance_terms, lowest


class ImportanceGreedy(Policy):
    """The `size` feasible devices with the largest importance."""

    by_score: ClassVar[bool] = True

    metric: MetricName = "combined"

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        importance = observation.importance(self.metric, plan)
        return Decision(lowest(-importance, plan.feasible, self.size, rng), plan, importance, -importance)

    def ranking(self, state: State, observation: Observation, decision: Decision, device: int) -> Ranking:
        """−amount − dissimilarity."""
        plan = decision.plan
        return Ranking(importance_terms(observation, self.metric, plan, plan.feasible, np.inf))
