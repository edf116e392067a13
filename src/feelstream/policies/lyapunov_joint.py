"""Drift-plus-penalty scheduling that also chooses CPU frequencies, band shares and powers.

    min over Π, τ, ρ of  Σ_{k∈Π} w_k e_k(τ_k, ρ_k) − V I_k,       Σ ρ ≤ 1,  f_k = c/(T_rd − τ_k) ≤ f_k(t),  P_k ≤ P_max

    e_k(τ, ρ) = λ c³/(T_rd−τ)² + τ ρ (B N0/h_k) (2^{S/(ρBτ)} − 1),     w_k = max(Q_k, 10⁻³ max(max Q, max E^avg))

The frequency that a device has is its ceiling. When scheduling h_k = γ β_k; after training h_k = |g_k|², and band and
power are shared out anew over the time that is left. docs/joint.md derives the solution and states the choices.

Reference: C.-H. Hu, Z. Chen, E. G. Larsson, "Energy-Efficient Federated Edge Learning with Streaming Data: A Lyapunov
Optimization Approach", arXiv:2405.12046, poses such a problem; the solution here is our own.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from feelstream.arrays import Ids, Reals
from feelstream.model import physics
from feelstream.model.admission import Transmission
from feelstream.model.importance import MetricName, importance_of
from feelstream.plugins import Positive
from feelstream.policies.base import Decision, Observation, Policy, State
from feelstream.policies.solvers import joint
from feelstream.policies.solvers.joint.search import scores

WEIGHT_FLOOR = 1e-3  # of the largest queue or budget: devices with an empty queue still save energy where it is free


class LyapunovJoint(Policy):
    """Least Σ (Q_k e_k − V I_k) over devices, CPU frequencies, band shares and powers together."""

    tag: ClassVar[str] = "lyapunov_joint"

    V: Annotated[float, Field(strict=True, gt=0)] = Field(
        0.05, description="weight of importance against energy, J²; > 0, inf ignores energy when choosing devices"
    )
    cardinality: Literal["exact", "cap", "free"] = Field(
        "exact",
        description="exact: `size` devices; cap: at most `size`, as many as pay; free: 0..`size`, planned for each",
    )
    metric: MetricName = "combined"
    power_max_w: Positive | None = Field(
        None, description="greatest transmit power, W; > 0; unset: P0/min β, the greatest that equal powers would need"
    )
    fade_reserve: Annotated[float, Field(strict=True, ge=1, allow_inf_nan=False)] = Field(
        3.0,
        description="frequencies leave time to meet the deadline at a gain this many times below the planned one; ≥ 1",
    )

    @property
    def smallest_plan(self) -> int:
        return 1 if self.cardinality == "free" else self.size

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        best, least = None, np.inf
        order = rng.permutation(len(observation.beta))  # equals by lot
        for n in range(self.size + 1) if self.cardinality == "free" else [self.size]:
            plan = observation.plan(n)
            importance = importance_of(self.metric, plan.amount, observation.dissimilarity)
            devices = self.planned_devices(observation, max(n, 1))
            candidates = plan.feasible & (devices.share_min <= 1 / max(n, 1))
            if self.cardinality == "free" and np.count_nonzero(candidates) < n:
                continue  # no subset of this size exists
            schedule, total = self._choose(devices, importance, n, candidates, order)
            if total < least:  # of equal totals the smallest size is kept
                best, least = (plan, importance, devices, candidates, schedule), total
        assert best is not None  # n = 0 always exists
        plan, importance, devices, candidates, schedule = best
        score, f_hz = self._explain(observation, devices, importance, schedule)
        return Decision(schedule, plan, importance, np.where(candidates, score, np.nan), f_hz)

    def _choose(
        self, devices: joint.Devices, importance: Reals, n: int, candidates: NDArray[np.bool_], order: Ids
    ) -> tuple[Ids, float]:
        """The set and its total. Every n candidates fit the band together, since each fits an n-th of it."""
        order = order[candidates[order]]
        if np.isinf(self.V):
            if self.cardinality == "cap":
                order = order[importance[order] > 0]
            chosen = order[np.argsort(-importance[order], kind="stable")[:n]]
            return np.sort(chosen), float(-importance[chosen].sum())
        found = joint.choose(devices, self.V * importance, n, self.cardinality != "cap", order)
        return found.members, found.total

    def _explain(
        self, observation: Observation, devices: joint.Devices, importance: Reals, schedule: Ids
    ) -> tuple[Reals, Reals]:
        """Every device's score at the price of the schedule's band, and the frequencies of the scheduled.

        score_k = min over (τ, ρ) of w_k e_k + μ ρ − V I_k; with nobody scheduled w_k e_k − V I_k, alone on the band;
        −I_k for infinite V.
        """
        system = observation.system
        allocation = None
        f_hz = np.zeros(0)
        if len(schedule):
            allocation = joint.allocate(devices.take(schedule))
            # Rounding must not ask for more than the device has.
            f_hz = np.minimum(system.cycles / (system.round_s - allocation.sending_s), observation.f_hz[schedule])
        if np.isinf(self.V):
            return -importance, f_hz
        if allocation is not None:
            return scores(devices, self.V * importance, float(allocation.log_price))[0], f_hz
        alone = joint.allocate(devices.take(np.arange(len(importance))[:, None]))
        return devices.weight * alone.energy_j[:, 0] - self.V * importance, f_hz

    def planned_devices(self, observation: Observation, n: int) -> joint.Devices:
        """The problem of all devices as it is known when scheduling n of them.

        The planned power stays `fade_reserve`·link_margin times below P_max, unless a device at full frequency needs
        more for an n-th of the band: then that, so that all of Π_f(n) can be planned.
        """
        system = observation.system
        sending_s = system.round_s - observation.compute_time_s
        weight = weights(observation)
        kappa_w = system.bandwidth_hz * system.noise_w_per_hz / (system.rate_discount * observation.beta)
        limit_w = self.power_limit_w(observation)
        airtime_s = system.update_bits * np.log(2) / system.bandwidth_hz
        with np.errstate(over="ignore", divide="ignore"):
            equal_w = kappa_w / n * np.expm1(airtime_s * n / np.maximum(sending_s, 0.0))
        # A rounding more, so that the share of such a device is an n-th and not a hair above it.
        power_w = np.clip(equal_w * (1 + 1e-12), limit_w / (self.fade_reserve * system.link_margin), limit_w)
        work = system.power_coefficient * system.cycles**3
        return joint.Devices.of(weight, kappa_w, sending_s, power_w, system.round_s, work, airtime_s)

    def power_limit_w(self, observation: Observation) -> float:
        if self.power_max_w is not None:
            return self.power_max_w
        return observation.system.received_power_w / float(observation.beta.min())

    def transmit(self, observation: Observation, decision: Decision, gain: Reals) -> Transmission:
        """Band and power shared out anew at the true gains, over the time that each device's computing left.

        A set can send if at |g|²/link_margin and full power the least shares add up to at most 1. Devices that not
        even the whole band would help are dropped; then `paper` drops the least |g|²/β until the rest can send, and
        `largest` keeps as many as possible, the least shares first. What is spent follows from the true |g|².
        """
        system, ids = observation.system, decision.schedule
        assert decision.f_hz is not None
        t_cmp_s = physics.compute_time_s(system.cycles, decision.f_hz)
        left_s = system.round_s - t_cmp_s
        airtime_s = system.update_bits * np.log(2) / system.bandwidth_hz
        noise_w, weight = system.bandwidth_hz * system.noise_w_per_hz, weights(observation)[ids]
        limit_w = np.full(len(ids), self.power_limit_w(observation))

        def problem(gain: Reals) -> joint.Devices:
            kappa_w = noise_w / np.maximum(gain, np.finfo(float).tiny)
            return joint.Devices.of(weight, kappa_w, left_s, limit_w, system.round_s, 0.0, airtime_s)

        sent = admit(problem(gain / system.link_margin).share_min, gain / observation.beta[ids], system.admission)
        share, power_w, t_tr_s = (np.zeros(len(ids)) for _ in range(3))
        if sent.any():
            allocation = joint.allocate(problem(gain).take(np.flatnonzero(sent)))
            share[sent], power_w[sent], t_tr_s[sent] = allocation.share, allocation.power_w, left_s[sent]
        return Transmission(
            sent=sent,
            bandwidth_share=share,
            power_w=power_w,
            t_cmp_s=t_cmp_s,
            t_tr_s=t_tr_s,
            e_cmp_j=physics.compute_energy_j(system.power_coefficient, system.cycles, decision.f_hz),
            e_tr_j=power_w * t_tr_s,
        )


def weights(observation: Observation) -> Reals:
    """w_k = Q_k, but at least a thousandth of the largest queue or budget: (K,), > 0."""
    largest = max(float(observation.queue_j.max()), float(observation.system.energy_budget_j.max()))
    return np.maximum(observation.queue_j, max(WEIGHT_FLOOR * largest, 1e-30))


def admit(share_min: Reals, ratio: Reals, rule: Literal["paper", "largest"]) -> NDArray[np.bool_]:
    """Who sends, given the least share of each and |g|²/β; no set whose least shares exceed the band together.

    paper: whoever not even the whole band would help is dropped, then the least |g|²/β until the rest fits;
    largest: the most devices that fit, so the least shares. Equals: the later one is dropped first.
    """
    order = np.argsort(share_min if rule == "largest" else -ratio, kind="stable")
    order = order[share_min[order] <= 1]
    sent = np.zeros(len(ratio), bool)
    sent[order[np.cumsum(share_min[order]) <= 1]] = True  # sums only grow, so this is the leading part that fits
    return sent
