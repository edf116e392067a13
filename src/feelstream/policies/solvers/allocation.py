"""The band shared out: the price at which the devices of a set ask for all of it.

If the band had the price μ, each device would by itself take what makes w e(τ, ρ) + μ ρ least (`respond`). The least
Σ w e of a set is where these shares add up to 1 (`allocate`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Ids, Reals
from feelstream.policies.solvers.devices import (
    Devices,
    compute_w,
    energy_j,
    falling_root,
    full_power_x,
    growth,
    least_power_w,
    log_expm1,
    marginal,
    rest,
    saving,
)

HUGE = 600.0  # a logarithm whose exponential is still finite


@dataclass(frozen=True)
class Response:
    """The answer of every device to a price; all of one shape."""

    sending_s: Reals  # τ
    share: Reals  # ρ
    elasticity: Reals  # d log ρ / d log μ ≤ 0

    def put(self, where: NDArray[np.bool_], part: Response) -> None:
        """Write the answers of some devices in the place of these."""
        for name, values in vars(self).items():
            values[where] = getattr(part, name)

    def part(self, where: NDArray[np.bool_]) -> Response:
        """The answers of some devices."""
        return Response(self.sending_s[where], self.share[where], self.elasticity[where])


def respond(devices: Devices, log_price: Reals, near: Response | None = None) -> Response:
    """The minimiser of w e + μ ρ for every device, given log μ (broadcast against the devices).

    near: their answers to a price nearby, to start from.

    Without the power limit first, and where that breaks it, along the limit: the problem is convex, so if the
    unlimited optimum is forbidden, the best allowed point lies on the limit. Devices that no share would help
    (share_min infinite) get NaN.
    """
    shape = np.broadcast_shapes(devices.weight.shape, np.shape(log_price))
    able = np.broadcast_to(np.isfinite(devices.share_min), shape)
    price = np.broadcast_to(np.asarray(log_price, float), shape)
    if not able.all():
        answer = Response(*(np.full(shape, np.nan) for _ in range(3)))
        if able.any():
            answer.put(able, respond(_part(devices, able), price[able], near and near.part(able)))
        return answer
    free = _unlimited(devices, price, near)
    x = devices.airtime_s / (free.share * free.sending_s)
    too_strong = np.log(devices.kappa_w) + np.log(free.share) + log_expm1(x) > np.log(devices.power_w)
    if too_strong.any():
        some = _part(devices, too_strong)
        free.put(too_strong, _full_power(some, price[too_strong], near and near.part(too_strong)))
    return free


def _part(devices: Devices, where: NDArray[np.bool_]) -> Devices:
    return devices.picked(lambda column: np.broadcast_to(column, where.shape)[where])


def _unlimited(d: Devices, price: Reals, near: Response | None) -> Response:
    """P free. Stationary in τ and ρ:  ρ = 2 q w τ / (μ (T−τ)³)  and  log τ + marginal(x) = log(μ/(wκ)).

    With the first put into the second, the second falls in log τ with a slope of −3 or steeper; where its root lies
    beyond the longest or the shortest sending time, τ is that and x = marginal⁻¹(log(μ/(wκτ))). The unknown is
    u = log(τ/(T−τ)), and both sides go through `_bent`, which leaves an almost straight line for Newton.
    """
    target = price - np.log(d.weight) - np.log(d.kappa_w)
    log_a, log_t = np.log(d.airtime_s), np.log(d.round_s)
    tau, v = np.broadcast_to(d.sending_s, price.shape).copy(), np.zeros(price.shape)
    elasticity = np.zeros(price.shape)
    at_end = np.ones(price.shape, bool)
    if d.computes:
        aim = _bent(target)[0]

        def log_x(u: Reals) -> tuple[Reals, Reals, Reals | float]:
            """log x, τ/T, and how steeply the power that computing could save falls in T − τ."""
            part = 1 / (1 + np.exp(-u))
            q, steepness = saving(d, d.round_s * part)
            level = log_a - np.log(2 * q) - np.log(d.weight) + price
            # −2 log τ + 3 log(T−τ), with τ = T/(1+e^−u) and T − τ = T/(1+e^u)
            value = np.clip(level + log_t + 2 * np.logaddexp(0, -u) - 3 * np.logaddexp(0, u), -HUGE, HUGE)
            return value, part, steepness

        def excess(u: Reals) -> tuple[Reals, Reals]:
            log_of_x, part, steepness = log_x(u)
            log_worth, steep = marginal(np.exp(log_of_x))
            value, slope = _bent(log_t - np.logaddexp(0, -u) + log_worth)
            return value - aim, slope * (1 - part - steep * (2 + part * (steepness - 2)))

        last = np.broadcast_to(np.log(d.sending_s / (d.round_s - d.sending_s)), price.shape)
        first = np.minimum(last, log_a - log_t) - 100.0
        if (d.shortest_s > 0).any():
            with np.errstate(divide="ignore"):  # where the lowest frequency fills the round, it does not bind
                slowest = np.log(d.shortest_s) - np.log(d.round_s - d.shortest_s)
            first = np.maximum(first, np.minimum(slowest, last))
        # Who stays at an end is known beforehand: no bisection must get there.
        longest, shortest = (excess(last)[0] >= 0) | ~d.falls, (excess(first)[0] <= 0) & d.falls
        start = None if near is None else np.log(near.sending_s) - np.log(d.round_s - near.sending_s)
        u = falling_root(excess, np.where(longest, last, first), np.where(shortest & ~longest, first, last), start)
        at_end, u = longest | shortest, np.where(shortest, first, u)
        v, part, steepness = log_x(u)
        tau = np.where(longest, tau, np.minimum(d.round_s * part, tau))
        steep = marginal(np.exp(v))[1]
        elasticity = (steep - 1) * (1 + part * (steepness - 1)) / (
            steep * (2 + part * (steepness - 2)) - (1 - part)
        ) - 1
    if at_end.any():
        v[at_end] = _log_x_of_marginal((target - np.log(tau))[at_end])
        elasticity[at_end] = -1 / marginal(np.exp(v[at_end]))[1]
    return Response(tau, np.exp(log_a - v) / tau, elasticity)


def _bent(z: Reals) -> tuple[Reals, Reals]:
    """A rising function that is z far below 0 and log z far above, and its slope: log(log(1 + e^z))."""
    soft = np.logaddexp(0, np.maximum(z, -30.0))
    return np.where(z > -30, np.log(soft), z), np.where(z > -30, -np.expm1(-soft) / soft, 1.0)


def _log_x_of_marginal(target: Reals) -> Reals:
    """log x with marginal(x) = target: it is 2 log x − log 2 or more, x − 1 or more, and close to one of them."""
    highest = np.minimum((target + np.log(2)) / 2, np.log(np.maximum(target + 1, 1.0)))
    highest = np.where(target > 0, highest, (target + np.log(2)) / 2)

    def missing(v: Reals) -> tuple[Reals, Reals]:
        log_worth, steep = marginal(np.exp(v))
        return target - log_worth, -steep

    return falling_root(missing, highest - 2.0, highest)


def _full_power(d: Devices, price: Reals, near: Response | None) -> Response:
    """P = P_max:  ρ = (P_max/κ) / (e^x − 1), τ = a/(ρx), and the best x balances what band costs and saves:

    μ = w (2q/(T−τ)³ + P_max) a (x − 1 + e^−x) / (ρx)²,    x ≤ x_max, where τ is the longest possible;
    where the shortest sending time allows no smaller x, that one.
    """
    log_m, log_a = np.log(d.power_w) - np.log(d.kappa_w), np.log(d.airtime_s)
    fixed = price - np.log(d.weight) - log_a

    def sending(v: Reals, log_rise: Reals) -> Reals:
        # Never longer than allowed: rounding at x_max must not reach the end of the round.
        return np.minimum(np.exp(log_a - log_m + log_rise - v), d.sending_s)

    def missing(v: Reals) -> tuple[Reals, Reals]:
        x = np.exp(v)
        log_rise, rise, left = log_expm1(x), growth(x), rest(x)
        tau = sending(v, log_rise)
        saved_w, steepness = compute_w(d, tau)
        watts = saved_w + d.power_w
        value = np.log(watts) + np.log(left) - 2 * (log_m - log_rise + v)
        slope = steepness * saved_w * tau / (d.round_s - tau) / watts * (rise - 1)
        return fixed - value, -(slope + x * (x / left) - x + 2 * rise - 2)

    highest = np.log(d.x_max)
    lowest = highest - 100.0
    if (d.shortest_s > 0).any():
        with np.errstate(divide="ignore"):  # as above
            least = full_power_x(log_m + np.log(d.shortest_s) - log_a)
        lowest = np.where(least > 0, np.minimum(np.log(np.where(least > 0, least, 1.0)), highest), lowest)
    at_end = (missing(highest)[0] >= 0) | ~d.falls
    at_start = ~at_end & (missing(lowest)[0] <= 0)
    start = None if near is None else log_a - np.log(near.share * near.sending_s)
    v = falling_root(missing, np.where(at_end, highest, lowest), np.where(at_start, lowest, highest), start)
    x, fixed_x = np.exp(v), at_end | at_start
    elasticity = np.where(fixed_x, 0.0, growth(x) / missing(v)[1])
    share = np.where(at_end, d.share_min, np.exp(log_m - log_expm1(x)))
    return Response(np.where(at_end, d.sending_s, sending(v, log_expm1(x))), share, elasticity)


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
        part = allocate(devices.take(np.flatnonzero(feasible))) if feasible.any() else None  # sets are rows here
        return of_some(part, feasible, devices.weight.shape)
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
        return np.log(d.weight) + np.log(d.kappa_w) + np.log(sending_s) + marginal(x)[0]

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


def of_some(part: Allocation | None, feasible: NDArray[np.bool_], shape: tuple[int, ...]) -> Allocation:
    """The allocations of the feasible sets of many, (sets, n), of which `part` are all; NaN for the others."""
    found = {name: np.full(shape, np.nan) for name in ("sending_s", "share", "energy_j", "power_w")}
    found["log_price"] = np.full(shape[:-1], np.nan)
    if part is not None:
        for name, values in found.items():
            values[feasible] = getattr(part, name)
    return Allocation(**found, feasible=feasible)
