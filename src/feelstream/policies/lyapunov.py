"""The drift-plus-penalty scheduler of Hu, Chen and Larsson.

    score_k = Q_k E~_k(n) − V I_k,        Π* = argmin over Π ⊆ Π_f(n) of Σ_{k∈Π} score_k

Q_k is the virtual energy queue: how far a device is ahead of its budget. I_k is the importance of its fresh
data. V says how much energy importance may cost; V = ∞ is blind to energy.

V = "auto" follows from the budget alone, with a queue for the whole fleet that starts where it would settle:

    E_slot = Σ_k E_k^avg / n              what the budgets grant one of the n places in a round
    q0     = 1 / E_slot                   a guess of the price of energy: average importance, 1, is worth one place
    V      = C E_slot²,   C = 20          so that the backlog V q0 is the energy of C places
    Z(1)   = V q0,   Z(t+1) = max(Z(t) + Σ_k E_k(t) − Σ_k E_k^avg, 0)
    score  = (Q_k + Z) E~_k − V I_k       Q_k, the devices' own queues, start at 0 as ever

That the fleet as a whole keeps its budget follows from every device keeping its own, so Z is the queue of a redundant
constraint. It starts above 0, so energy has a price at once, and learns K times as fast as a device's queue. On every
path (docs/derivation.md, "V that sets itself")

    (1/T) Σ_t Σ_k E_k(t)  ≤  Σ_k E_k^avg + (Z(T+1) − Z(1))/T,

so if Z has not doubled, the fleet exceeds its budget by a share of C/(nT) at most. Nothing keeps Z from doubling where
one turn costs many rounds of the fleet's budget: balanced_joint is the policy that never exceeds one.

Reference: C.-H. Hu, Z. Chen, E. G. Larsson, "Dynamic Scheduling for Federated Edge Learning with Streaming Data",
ICASSP 2023, arXiv:2305.01238, Algorithm 1.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from feelstream.arrays import Reals
from feelstream.errors import ScenarioError
from feelstream.model.importance import MetricName
from feelstream.model.system import System
from feelstream.plugins import Magnitude
from feelstream.policies.base import Decision, Observation, Outcome, Policy, RoundPlan, State
from feelstream.policies.ranking import Ranking, Term, importance_terms, lowest

PLACES = 20.0  # C

# A policy's field `V`.
Weight = Annotated[float, Field(strict=True, gt=0), Magnitude] | Literal["auto"]


def weight_j2(system: System, size: int) -> float:
    """V = C E_slot², J²."""
    return PLACES * _place_j(system, size) ** 2


def first_backlog_j(system: System, size: int) -> float:
    """Z(1) = V q0 = C E_slot, J."""
    return PLACES * _place_j(system, size)


def _place_j(system: System, size: int) -> float:
    total = float(np.sum(system.energy_budget_j))
    if total <= 0:
        raise ScenarioError(
            "policy.V: auto needs an energy budget above 0 (system.energy_budget_j); without one, set a number"
        )
    return total / size


class Lyapunov(Policy):
    """Least Σ (Q_k E~_k − V I_k): energy against data importance, with queues that keep the budget."""

    V: Weight = Field(
        default=0.05, description="weight of importance against energy, J²; > 0; inf ignores energy; auto: by budget"
    )
    cardinality: Literal["exact", "cap", "free"] = Field(
        default="exact",
        description="exact: `size` devices; cap: at most `size`, negative scores only; free: 0..`size`, optimised",
    )
    metric: MetricName = "combined"

    @property
    def smallest_plan(self) -> int:
        return 1 if self.cardinality == "free" else self.size

    @property
    def by_score(self) -> bool:  # type: ignore[override]
        return self.cardinality == "exact"

    def score(self, observation: Observation, plan: RoundPlan, state: State | None = None) -> tuple[Reals, Reals]:
        """(importance, score) of every device when plan.n devices share the band; the state matters to auto only."""
        importance = observation.importance(self.metric, plan)
        queue_j, V = self._queues_and_weight(observation, state or {})
        if np.isinf(V):
            return importance, -importance
        score = queue_j * plan.energy_j
        score -= V * importance
        return importance, score

    def _queues_and_weight(self, observation: Observation, state: State) -> tuple[Reals, float]:
        """(Q_k, V), or (Q_k + Z, V of the budget) where V is auto."""
        if self.V != "auto":
            return observation.queue_j, self.V
        system = observation.system
        return observation.queue_j + self._backlog_j(state, system), weight_j2(system, self.size)

    def _backlog_j(self, state: State, system: System) -> float:
        """Z of this round; at its start where the state has none yet, since V may become "auto" during a run."""
        return float(state["backlog_j"]) if "backlog_j" in state else first_backlog_j(system, self.size)

    def ranking(self, state: State, observation: Observation, decision: Decision, device: int) -> Ranking:
        """Q·E − V·amount − V·dissimilarity; for infinite V without the energy and without the factor."""
        plan = decision.plan
        queue_j, V = self._queues_and_weight(observation, state)
        energy = Term("energy Q·E", np.where(plan.feasible, queue_j * plan.energy_j, np.nan))
        worth = importance_terms(observation, self.metric, plan, plan.feasible, V)
        return Ranking(worth if np.isinf(V) else (energy, *worth), optional=self.cardinality != "exact")

    def init(self, system: System) -> State:
        return {"backlog_j": np.array(first_backlog_j(system, self.size))} if self.V == "auto" else {}

    def update(self, state: State, outcome: Outcome) -> State:
        if self.V != "auto":
            return state
        system = outcome.observation.system
        granted_j = float(system.energy_budget_j.sum())
        return {"backlog_j": np.array(max(self._backlog_j(state, system) + outcome.total_j - granted_j, 0.0))}

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        sizes = range(self.size + 1) if self.cardinality == "free" else [self.size]
        best, least = None, np.inf
        for n in sizes:
            plan = observation.plan(n)
            importance, score = self.score(observation, plan, state)
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
