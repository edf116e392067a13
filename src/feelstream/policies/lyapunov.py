"""The drift-plus-penalty scheduler of Hu, Chen and Larsson.

    score_k = Q_k E~_k(n) − V I_k,        Π* = argmin over Π ⊆ Π_f(n) of Σ_{k∈Π} score_k

Q_k is the virtual energy queue: how far a device is ahead of its budget. I_k is the importance of its fresh
data. V says how much energy importance may cost; V = ∞ is blind to energy.

Reference: C.-H. Hu, Z. Chen, E. G. Larsson, "Dynamic Scheduling for Federated Edge Learning with Streaming Data",
ICASSP 2023, arXiv:2305.01238, Algorithm 1.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from feelstream.arrays import Reals
from feelstream.model.importance import MetricName, importance_of
from feelstream.plugins import Magnitude
from feelstream.policies.base import Decision, Observation, Policy, RoundPlan, State, lowest


class Lyapunov(Policy):
    """Least Σ (Q_k E~_k − V I_k): energy against data importance, with queues that keep the budget."""

    tag: ClassVar[str] = "lyapunov"

    V: Annotated[float, Field(strict=True, gt=0), Magnitude] = Field(
        default=0.05, description="weight of importance against energy, J²; > 0, inf ignores energy"
    )
    cardinality: Literal["exact", "cap", "free"] = Field(
        default="exact",
        description="exact: `size` devices; cap: at most `size`, negative scores only; free: 0..`size`, optimised",
    )
    metric: MetricName = "combined"

    @property
    def smallest_plan(self) -> int:
        return 1 if self.cardinality == "free" else self.size

    def score(self, observation: Observation, plan: RoundPlan) -> tuple[Reals, Reals]:
        """(importance, score) of every device when plan.n devices share the band."""
        importance = importance_of(self.metric, plan.amount, observation.dissimilarity)
        if np.isinf(self.V):
            return importance, -importance
        return importance, observation.queue_j * plan.energy_j - self.V * importance

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        sizes = range(self.size + 1) if self.cardinality == "free" else [self.size]
        best, least = None, np.inf
        for n in sizes:
            plan = observation.plan(n)
            importance, score = self.score(observation, plan)
            candidates = plan.feasible & (score < 0) if self.cardinality == "cap" else plan.feasible
            if self.cardinality == "free":
                if np.count_nonzero(candidates) < n:
                    continue  # no subset of this size exists
                total = np.partition(score[candidates], n - 1)[:n].sum() if n else 0.0
                if total >= least:
                    continue  # of equal totals the smallest size is kept
                least = total
            best = (plan, importance, score, candidates)
        assert best is not None  # n = 0 always exists
        plan, importance, score, candidates = best
        return Decision(lowest(score, candidates, plan.n, rng), plan, importance, score)
