"""OCEAN: as many participants as the energy queues allow, later rounds weighing more, with its own split of the band.

    choose Π ⊆ Π_f and shares b to maximise   V η_t |Π| − Σ_{k∈Π} Q_k (E_cmp,k + E_tr,k(b_k)),    Σ b_k = 1
    order    devices by Q_k (E_cmp,k + E_tr,k(1/n)); test every prefix of at most n, each with its best split
    η_t      = 2t/(T+1) (ascending), 1 (uniform), 2(T+1−t)/(T+1) (descending): the mean is always 1
    power    "control": a device sends for all the time that its computing left, with the least power that this takes,
             E_tr = τ b (B N0/h) (2^{S/(bBτ)} − 1), τ = T_rd − c/f_k;   "fixed": with P0/β_k for as long as it takes

Once the gains are known, the split is made again, for the devices that are admitted.

Needs: queues, CPU frequencies, mean gains; the gains of scheduled devices when it splits the band. Ignores: data.

Reference: J. Xu, H. Wang, "Client Selection and Bandwidth Allocation in Wireless Federated Learning Networks: A
Long-Term Perspective", IEEE Trans. Wireless Commun. 20(2), 2021, arXiv:2004.04314.
Choices: theirs is a system with power control and no computing energy, where devices are ordered by Q_k/h_k². Here the
order is by weighted energy at an equal share; without computing energy and with equal sending times it is theirs, with
it the prefixes are no longer certain to contain the best set. They know this round's gains; here they are planned at
their means. One frame: queues are never reset. A queue of 0 puts no price on energy at all, so under power control it
counts as a thousandth of the largest queue or budget, and with fixed power every device keeps a least share,
b_k ≥ least_share/|Π|, and one that is large enough for the deadline. Admission with fixed power tests the deadline at
equal shares, like every policy's; with power control it drops devices until the rest can send at P0/min β at most.

The split with fixed power: a device with the share b of the band needs the time T(b) = a / (b ln(1 + c/b)) to send,
with a = S ln 2 / B and c = P|g|²/(B N0), its SNR over the whole band. b ln(1 + c/b) is concave in b, so T is convex,
and

    minimise Σ w_k T_k(b_k)    subject to Σ b_k = 1, b_k ≥ least_k

is solved by one price λ on band: every device takes b_k = max(least_k, the b with −w_k T_k'(b) = λ). In the SNR on
the own share, s = c/b, that condition reads (w a / c²) φ(s) = λ with one increasing function

    φ(s) = s² (ln(1+s) − s/(1+s)) / ln²(1+s)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from feelstream.arrays import Ids, Reals
from feelstream.model import transmission
from feelstream.model.system import System
from feelstream.model.transmission import Transmission
from feelstream.plugins import Magnitude
from feelstream.policies.base import EQUAL_UPDATES, QUEUES_FROM_ZERO, Decision, Observation, Policy, State
from feelstream.policies.solvers import joint
from feelstream.policies.solvers.allocation import allocate
from feelstream.policies.solvers.devices import Devices, energy_j


class Ocean(Policy):
    """Most participants for their queue-weighted energy, at most `size`, with the cheapest split of the band."""

    needs: ClassVar[frozenset[str]] = frozenset({EQUAL_UPDATES, QUEUES_FROM_ZERO})

    V: Annotated[float, Field(strict=True, gt=0), Magnitude] = Field(
        default=0.05, description="weight of a participant against energy, J²; > 0, inf takes as many as `size`"
    )
    eta: Literal["ascending", "uniform", "descending"] = Field(
        default="ascending", description="weight of a participant over the run: ascending, uniform or descending"
    )
    power: Literal["control", "fixed"] = Field(
        default="control",
        description="control: as little as sends in the time that is left; fixed: P0/β, like other policies",
    )
    least_share: Annotated[float, Field(strict=True, ge=1e-6, le=1)] = Field(
        default=0.5,
        description="fixed power: a device's least share of the band, as a part of the equal share; 1e-6 to 1",
    )

    def weight(self, round: int, rounds: int) -> float:
        """V η_t."""
        ascending = 2 * round / (rounds + 1)
        return self.V * {"ascending": ascending, "uniform": 1.0, "descending": 2 - ascending}[self.eta]

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan, system = observation.plan(self.size), observation.system
        ids = rng.permutation(np.flatnonzero(plan.feasible))  # so that equal costs are in random order
        if self.power == "control":
            ids, cost, least_j, total = self._controlled(observation, ids)
        else:
            cost, least_j = (observation.queue_j * plan.energy_j)[ids], observation.plan(1).energy_j[ids]
            total = partial(self._cost, observation)
        first = np.argsort(cost, kind="stable")[: self.size]
        ids, least_j = ids[first], least_j[first]
        if np.isinf(self.V):
            return Decision(np.sort(ids), plan)
        value = self.weight(observation.round, system.rounds)
        # Nobody spends less than with the whole band, so no prefix brings more than this.
        bounds = value * np.arange(1, len(ids) + 1) - np.cumsum(observation.queue_j[ids] * least_j)
        best, most = ids[:0], 0.0
        for j, bound in enumerate(bounds, start=1):
            if bound > most and (found := value * j - total(ids[:j])) > most:
                best, most = ids[:j], found
        return Decision(np.sort(best), plan)

    def _controlled(self, observation: Observation, ids: Ids) -> tuple[Ids, Reals, Reals, Callable[[Ids], float]]:
        """Who fits an n-th of the band, their weighted energy there, their least energy, and the cost of a prefix."""
        system, n = observation.system, self.size
        kappa_w = system.noise_w / (system.rate_discount * observation.beta)
        sending_s = system.time_s - observation.compute_time_s
        limit_w = self.most_power_w(system, observation.beta)
        weight, airtime_s = joint.weights(observation), system.airtime_s
        devices = Devices.of(weight, kappa_w, sending_s, limit_w, float(system.time_s[0]), 0.0, airtime_s)
        ids = ids[devices.share_min[ids] <= (1 + 1e-9) / n]
        equal = energy_j(devices.take(ids), sending_s[ids], np.full(len(ids), 1.0 / n))
        computing_j = observation.compute_energy_j

        def total(chosen: Ids) -> float:
            sent = allocate(devices.take(chosen))
            return float((observation.queue_j[chosen] * (computing_j[chosen] + sent.energy_j)).sum())

        return ids, weight[ids] * (computing_j[ids] + equal), computing_j[ids] + kappa_w[ids] * airtime_s, total

    def _cost(self, observation: Observation, ids: Ids) -> float:
        """Σ Q_k (E_cmp,k + P_k T~(b_k)) at the best split, planned at the mean gains and the discounted rate."""
        system = observation.system
        queue, beta, unit_s = observation.queue_j[ids], observation.beta[ids], system.airtime_s / system.rate_discount
        left_s = system.time_s[ids] - observation.compute_time_s[ids]
        snr = _snr(system, np.ones(len(ids)))
        sending_s = sending_time_s(self._shares(queue / beta, snr, snr, left_s, unit_s), snr, unit_s)
        energy_j = observation.compute_energy_j[ids] + system.received_power_w / beta * sending_s
        energy_j += system.download_j[ids]
        return float((queue * energy_j).sum())

    def _shares(self, weight: Reals, snr: Reals, tested_snr: Reals, left_s: Reals, unit_s: float) -> Reals:
        """The cheapest split among devices that are all on time, at the tested SNR, with equal shares."""
        equal = 1.0 / len(weight)
        least = least_share(tested_snr, left_s, unit_s, self.least_share * equal, equal)
        return split(weight, snr, least, unit_s)

    def most_power_w(self, system: System, beta: Reals) -> Reals:
        if self.power == "fixed":
            return super().most_power_w(system, beta)
        return joint.most_power_w(system, beta)

    @property
    def fills_round(self) -> bool:  # type: ignore[override]
        return self.power == "control"

    def transmit(self, observation: Observation, decision: Decision, gain: Reals) -> Transmission:
        ids, system = decision.schedule, observation.system
        if self.power == "control":
            limit_w = joint.most_power_w(system, observation.beta)
            return joint.send(observation, ids, observation.f_hz[ids], limit_w, gain)
        equal = transmission.transmit(system, ids, observation.f_hz[ids], observation.beta[ids], gain)
        sent = equal.sent
        if not sent.any():
            return equal
        ratio, weight = (gain / observation.beta[ids])[sent], (observation.queue_j[ids] / observation.beta[ids])[sent]
        snr, left_s, unit_s = _snr(system, ratio), (system.time_s[ids] - equal.t_cmp_s)[sent], system.airtime_s
        shares, t_tr_s = np.zeros(len(ids)), np.zeros(len(ids))
        shares[sent] = self._shares(weight, snr, snr / system.link_margin, left_s, unit_s)
        t_tr_s[sent] = sending_time_s(shares[sent], snr, unit_s)
        return replace(equal, bandwidth_share=shares, t_tr_s=t_tr_s, e_tr_j=equal.power_w * t_tr_s)


def _snr(system: System, ratio: Reals) -> Reals:
    """c = P0 (|g|²/β) / (B N0): the SNR with the whole band."""
    return system.received_power_w * ratio / system.noise_w


def sending_time_s(share: Reals, snr: Reals, unit_s: float) -> Reals:
    """T(b) = a / (b ln(1 + c/b)); share b > 0, snr c > 0 over the whole band, unit_s: a = S ln 2 / B."""
    return unit_s / (share * np.log1p(snr / share))


def least_share(snr: Reals, limit_s: Reals, unit_s: float, low: float, high: float) -> Reals:
    """The smallest share between low and high at which T(b) ≤ limit; `high` where that takes even more."""
    below, above = np.full(len(snr), low), np.full(len(snr), high)
    at_once = sending_time_s(below, snr, unit_s) <= limit_s
    for _ in range(50):
        middle = (below + above) / 2
        enough = sending_time_s(middle, snr, unit_s) <= limit_s
        below, above = np.where(enough, below, middle), np.where(enough, middle, above)
    return np.where(at_once, low, above)


def split(weight: Reals, snr: Reals, least: Reals, unit_s: float) -> Reals:
    """Shares (n,) with the least Σ w_k T_k(b_k); Σ least ≤ 1.

    Where no weight is positive the shares are equal; a weight of 0 among positive ones gets its least share.
    """
    n = len(weight)
    if n == 0 or not (weight > 0).any():
        return np.full(n, 1.0 / max(n, 1))
    if n == 1:
        return np.ones(1)
    paying = weight > 0
    unit_price = weight[paying] * unit_s / np.square(snr[paying])
    scale = unit_price.max()
    unit_price, c, floor = unit_price / scale, snr[paying], least[paying]
    available = 1.0 - least[~paying].sum()

    def shares(log_price: float) -> Reals:
        return np.maximum(floor, c / _inverse_phi(np.exp(log_price) / unit_price))

    # At the highest marginal cost of an equal split nobody takes more than that; at the lowest nobody takes less.
    marginal = np.log(unit_price * _phi(c * len(c) / available))
    low, high = float(marginal.min()), float(marginal.max())
    result = least.copy()
    if low < high and shares(high).sum() < available:
        from scipy.optimize import root_scalar  # here: 30 MB in every worker, for the one policy that needs it

        price = root_scalar(
            lambda log_price: float(shares(log_price).sum()) - available, bracket=(low - 1e-9, high), xtol=1e-14
        )
        found = shares(price.root)
    else:
        found = shares(high)
    free = found > floor
    found[free] *= (available - found[~free].sum()) / found[free].sum() if free.any() else 1.0
    result[paying] = found
    return result


def _phi(s: Reals) -> Reals:
    log = np.log1p(s)
    return np.where(s < 1e-4, s * s / 2 * (1 - s / 3), np.square(s / log) * (log - s / (1 + s)))


def _inverse_phi(y: Reals) -> Reals:
    """s with φ(s) = y, by Newton's method on ln φ over ln s, which is nearly a straight line of slope 1 to 2."""
    s = np.sqrt(2 * y)
    for _ in range(40):
        log = np.log1p(s)
        rest = np.where(s < 1e-4, s * s / 2, log - s / (1 + s))
        slope = 2 + np.square(s / (1 + s)) / rest - 2 * s / ((1 + s) * log)
        step = (np.log(_phi(s)) - np.log(y)) / slope
        s = s * np.exp(-step)
        if np.abs(step).max() < 1e-13:
            break
    return s
