"""The band shared out: the price at which the devices of a set ask for all of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Ids, Reals
from feelstream.policies.solvers.joint.devices import (
    Devices,
    compute_w,
    energy_j,
    least_power_w,
    log_marginal,
    marginal,
    rest,
    saving,
)
from feelstream.policies.solvers.joint.response import Response, respond
from feelstream.policies.solvers.joint.roots import falling_root


@dataclass(frozen=True)
class Allocation:
    """The least Σ w e of a set with Σ ρ = 1 (of many sets, where the arrays have a first axis)."""

    sending_s: Reals  # (n,) or (sets, n): τ
    share: Reals  # ρ
    energy_j: Reals  # e(τ, ρ)
    power_w: Reals
    log_price: Reals  # () or (sets,): log μ, in weight·J per band
    feasible: NDArray[np.bool_]  # () or (sets,): where not, the rest is NaN
    mode: Ids | None = None  # like τ: in which of its modes each device computes, where it has several


def allocate(devices: Devices) -> Allocation:
    """Minimise Σ w e(τ, ρ) subject to Σ ρ ≤ 1, f and P within their limits; the last axis is the set.

    Feasible if and only if the least shares add up to at most 1. The band is used up, as e falls in ρ. The price
    is bracketed without any search: for shares r that add up to 1, it lies between the least and the greatest
    marginal worth of band at r.
    """
    least = devices.share_min.sum(axis=-1)
    feasible = least <= 1
    if not feasible.all():
        return _some(devices, feasible)
    n = devices.weight.shape[-1]
    low, high = band_worth(devices, devices.share_min + ((1 - least) / n)[..., None])

    answer: Response | None = None

    def excess(log_price: Reals) -> tuple[Reals, Reals]:
        nonlocal answer
        answer = respond(devices, log_price[..., None], answer)
        total = answer.share.sum(axis=-1)
        return np.log(total), (answer.share * answer.elasticity).sum(axis=-1) / total

    log_price = falling_root(excess, low.min(axis=-1), high.max(axis=-1))
    assert answer is not None  # to the last price
    # The price is right to rounding and so is the sum; where no one may have less, it stays as it is.
    share = np.maximum(answer.share / answer.share.sum(axis=-1, keepdims=True), devices.share_min)
    power = np.minimum(least_power_w(devices, answer.sending_s, share), devices.power_w)
    return Allocation(answer.sending_s, share, energy_j(devices, answer.sending_s, share), power, log_price, feasible)


def band_worth(d: Devices, share: Reals) -> tuple[Reals, Reals]:
    """Bounds on log(−w dφ/dρ), φ(ρ) = the least e at share ρ ≥ share_min: at the longest and the shortest τ.

    At the shortest, full power, more band also frees computing time; the greater of the two forms is a bound.
    """

    def at(sending_s: Reals) -> Reals:
        x = d.airtime_s / (share * sending_s)
        return np.log(d.weight) + np.log(d.kappa_w) + np.log(sending_s) + log_marginal(x)

    x = np.log1p(d.power_w / (d.kappa_w * share))
    shortest = np.minimum(d.airtime_s / (share * x), d.sending_s)
    watts = compute_w(d, shortest)[0] + d.power_w
    at_full_power = np.log(d.weight) + np.log(watts) + np.log(d.airtime_s) + np.log(rest(x)) - 2 * np.log(share * x)
    # A rounding wider, or a set of one device may miss its own price.
    return at(d.sending_s) - 1e-9, np.maximum(at(shortest), at_full_power) + 1e-9


def alone_j(d: Devices) -> Reals:
    """The least e of every device with the whole band to itself, J; NaN where not even that would do.

    With ρ = 1 one equation is left, 2q/(T−τ)³ = κ m(a/τ), whose right side falls in τ from above the left one: between
    the sending time at full power, or at the lowest frequency, and the longest.
    """
    able = d.share_min <= 1
    longest = np.where(able, d.sending_s, 0.5 * d.round_s)
    shortest = np.maximum(d.airtime_s / np.log1p(d.power_w / d.kappa_w), d.shortest_s)
    low, high = np.log(np.minimum(shortest, longest)), np.log(longest)
    u = high
    if d.computes:

        def missing(u: Reals) -> tuple[Reals, Reals]:
            tau = np.exp(u)
            x, left = d.airtime_s / tau, d.round_s - tau
            q, steepness = saving(d, tau)
            level = np.log(2 * q) - np.log(d.kappa_w)
            log_worth, steep = marginal(x)
            return log_worth + 3 * np.log(left) - level, -steep - steepness * tau / left

        u = np.where(d.falls, falling_root(missing, low, high), high)
    return np.where(able, energy_j(d, np.exp(u), np.ones_like(u)), np.nan)


def _some(devices: Devices, feasible: NDArray[np.bool_]) -> Allocation:
    """The same for the feasible sets of many, NaN for the others."""
    sending_s, share, energy, power_w = (np.full(devices.weight.shape, np.nan) for _ in range(4))
    log_price = np.full(devices.weight.shape[:-1], np.nan)
    if feasible.any():
        part = allocate(devices.take(np.flatnonzero(feasible)))  # sets are rows here: of one set there is no part
        sending_s[feasible], share[feasible], energy[feasible] = part.sending_s, part.share, part.energy_j
        power_w[feasible], log_price[feasible] = part.power_w, part.log_price
    return Allocation(sending_s, share, energy, power_w, log_price, feasible)
