"""Drift-plus-penalty scheduling that also chooses CPU frequencies, band shares and powers.

    min over Π, τ, ρ of  Σ_{k∈Π} w_k e_k(τ_k, ρ_k) − V I_k
                         Σ ρ ≤ 1,    f_min ≤ f_k = c/(T_rd − τ_k) ≤ f_k(t),    P_k ≤ P_max

    e_k(τ, ρ) = E_cmp(f_k) + τ ρ (B N0/h_k) (2^{S/(ρBτ)} − 1),     w_k = max(Q_k, 10⁻³ max(max Q, max E^avg))

E_cmp is the energy law of the scenario, λ c³/(T_rd−τ)² in the cubic one; any law that states its pieces will do.
The frequency that a device has is its ceiling, and the lowest that cpu.frequency_hz allows its floor. When scheduling
h_k = γ β_k; after training h_k = |g_k|², and band and power are allocated again over the time that is left.
docs/joint.md derives the solution and states the choices.

Reference: C.-H. Hu, Z. Chen, E. G. Larsson, "Energy-Efficient Federated Edge Learning with Streaming Data: A Lyapunov
Optimization Approach", arXiv:2405.12046, poses such a problem; the solution here is our own.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from feelstream.arrays import Ids, Reals
from feelstream.model.importance import MetricName
from feelstream.model.system import System
from feelstream.model.transmission import Transmission
from feelstream.plugins import Magnitude, Positive
from feelstream.policies.base import QUEUES_FROM_ZERO, Decision, Observation, Policy, State
from feelstream.policies.ranking import Ranking, Term, importance_terms
from feelstream.policies.solvers import joint
from feelstream.policies.solvers.allocation import Allocation
from feelstream.policies.solvers.modes import Problem, allocate, alone_j
from feelstream.policies.solvers.search import choose, scores


class LyapunovJoint(Policy):
    """Least Σ (Q_k e_k − V I_k) over devices, CPU frequencies, band shares and powers together."""

    fills_round: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({QUEUES_FROM_ZERO})

    V: Annotated[float, Field(strict=True, gt=0), Magnitude] = Field(
        default=0.05,
        description="weight of importance against energy, J²; > 0, inf ignores energy when choosing devices",
    )
    cardinality: Literal["exact", "cap", "free"] = Field(
        default="exact",
        description="exact: `size` devices; cap: at most `size`, as many as pay; free: 0..`size`, planned for each",
    )
    metric: MetricName = "combined"
    power_max_w: Positive | None = Field(
        default=None,
        description="greatest transmit power, W; > 0; unset: P0/min β, the greatest that equal powers would need",
    )
    fade_reserve: Annotated[float, Field(strict=True, ge=1, allow_inf_nan=False), Magnitude] = Field(
        default=3.0,
        description="frequencies leave time to meet the deadline at a gain this many times below the planned one; ≥ 1",
    )

    @property
    def smallest_plan(self) -> int:
        return 1 if self.cardinality == "free" else self.size

    def init(self, system: System) -> State:
        joint.check_plannable(system, self.tag)
        return {}

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        best, least = None, np.inf
        order = rng.permutation(len(observation.beta))  # ties broken at random
        for n in range(self.size + 1) if self.cardinality == "free" else [self.size]:
            plan = observation.plan(n)
            importance = observation.importance(self.metric, plan)
            devices = self.planned_devices(observation, max(n, 1))
            candidates = plan.feasible & (devices.share_min <= 1 / max(n, 1))
            if self.cardinality == "free" and np.count_nonzero(candidates) < n:
                continue  # no subset of this size exists
            schedule, total = self._choose(devices, importance, n, candidates, order)
            if total < least:  # of equal totals the smallest size is kept
                best, least = (plan, importance, devices, candidates, schedule), total
        assert best is not None  # n = 0 always exists
        plan, importance, devices, candidates, schedule = best
        score, f_hz = np.full(len(importance), np.nan), np.zeros(0)
        allocation = None
        if len(schedule):
            allocation = allocate(devices.take(schedule))
            f_hz = joint.frequencies(observation, devices.take(schedule), schedule, allocation)
        ids = np.flatnonzero(candidates)
        score[ids] = self._scores(devices.take(ids), importance[ids], allocation)
        return Decision(schedule, plan, importance, score, f_hz)

    def _choose(
        self, devices: Problem, importance: Reals, n: int, candidates: NDArray[np.bool_], order: Ids
    ) -> tuple[Ids, float]:
        """The set and its total. Every n candidates fit the band together, since each fits an n-th of it."""
        order = order[candidates[order]]
        if np.isinf(self.V):
            if self.cardinality == "cap":
                order = order[importance[order] > 0]
            chosen = order[np.argsort(-importance[order], kind="stable")[:n]]
            return np.sort(chosen), float(-importance[chosen].sum())
        found = choose(devices, self.V * importance, n, self.cardinality != "cap", order)
        return found.members, found.total

    def _scores(self, devices: Problem, importance: Reals, allocation: Allocation | None) -> Reals:
        """Every candidate's score at the price of the schedule's band.

        score_k = min over (τ, ρ) of w_k e_k + μ ρ − V I_k; with nobody scheduled w_k e_k − V I_k, alone on the band;
        −I_k for infinite V.
        """
        if np.isinf(self.V):
            return -importance
        if allocation is not None:
            return scores(devices, self.V * importance, float(allocation.log_price))[0]
        return devices.weight * alone_j(devices) - self.V * importance

    def ranking(self, state: State, observation: Observation, decision: Decision, device: int) -> Ranking | None:
        """w·e + μ·ρ − V·amount − V·dissimilarity at the price of the schedule's band; for infinite V as `lyapunov`."""
        score = decision.score
        if score is None or decision.importance is None:
            return None
        terms = importance_terms(observation, self.metric, decision.plan, np.isfinite(score), self.V)
        if not np.isinf(self.V):
            terms = (Term("energy and band", score + self.V * decision.importance), *terms)
        return Ranking(terms, optional=self.cardinality != "exact")

    def planned_devices(self, observation: Observation, n: int) -> Problem:
        """The problem of all devices as it is known when scheduling n of them."""
        limit_w = self.most_power_w(observation.system, observation.beta)
        return joint.planned_devices(observation, n, joint.weights(observation), limit_w, self.fade_reserve)

    def most_power_w(self, system: System, beta: Reals) -> Reals:
        return joint.most_power_w(system, beta, self.power_max_w)

    def transmit(self, observation: Observation, decision: Decision, gain: Reals) -> Transmission:
        assert decision.f_hz is not None
        limit_w = self.most_power_w(observation.system, observation.beta)
        return joint.send(observation, decision.schedule, decision.f_hz, limit_w, gain)
