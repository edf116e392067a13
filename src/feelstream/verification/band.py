"""Energy, band and power chosen together, solved a second time and in another way: closed forms and bisection.

Computing for t seconds costs fixed + inverse/t + work/t² + leakage·t, λc³/t² in the cubic law, convex on one stretch of
a law. With a = S ln 2/B, κ = B N0/h and x = a/(ρτ), a device that sends for τ seconds on the share ρ needs the power
κρ(e^x − 1). At a price μ on the band and a given τ, the best x solves e^x(x−1) + 1 = μ/(wκτ), and full power is
reached at (e^x − 1)/x = P τ/(κa): both are Lambert W. What is left is one unknown per device, τ, and one per round, μ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from feelstream.verification.findings import Array

EPS = float(np.finfo(float).eps)
STEPS = 50  # bisections: a bracket of width 300 down to 3e-13
MOST_SHARES = 1e300  # of the band, instead of infinity: more than that is asked for at any price below
WIDEST = 5000.0  # of a bracket of log μ: no price is so many orders above that at which one device asks for all


@dataclass(frozen=True)
class Radio:
    """Devices of some rounds [R, n]; all 0 where computing is done and τ is what it left."""

    weight: Array
    kappa_w: Array
    longest_s: Array
    limit_w: Array
    round_s: float
    work: Array
    airtime_s: float
    shortest_s: Array  # what the lowest frequency leaves of the round
    fixed: Array | float = 0.0
    inverse: Array | float = 0.0
    leakage: Array | float = 0.0

    def of(self, index: Array) -> Radio:
        """[R, K] → the devices of each round with the numbers index [R, n]."""

        def pick(column: Array) -> Array:
            return np.take_along_axis(column, index, axis=1)

        return self._picked(pick)

    def rows(self, which: Array) -> Radio:
        return self._picked(lambda column: column[which])

    def _picked(self, pick: Callable[[Array], Array]) -> Radio:
        columns = {name: pick(value) for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, **columns)


def price_of(x: Array) -> Array:
    """e^x (x−1) + 1, by its series Σ (k−1) x^k / k! where the sum would cancel."""
    series = x * x * (1 / 2 + x * (1 / 3 + x * (1 / 8 + x * (1 / 30 + x * (1 / 144 + x / 840)))))
    large = np.maximum(x, 1e-2)
    return np.where(x < 1e-2, series, large * np.exp(large) - np.expm1(large))


def shortfall(x: Array) -> Array:
    """x + e^{−x} − 1, by its series where the sum would cancel."""
    series = x * x * (1 / 2 - x * (1 / 6 - x * (1 / 24 - x * (1 / 120 - x * (1 / 720 - x / 5040)))))
    large = np.maximum(x, 1e-2)
    return np.where(x < 1e-2, series, large + np.expm1(-large))


def efficiency_at_price(z: Array) -> Array:
    """x with e^x (x−1) + 1 = z: 1 + W0((z−1)/e); near 0 by the series at the branch point, which W0 loses."""
    from scipy.special import lambertw  # here: slow to import, and few policies share out the band

    p = np.sqrt(2 * np.minimum(z, 1e-5))
    exact = 1 + lambertw((np.maximum(z, 1e-5) - 1) / np.e).real
    return np.where(z < 1e-5, p - p**2 / 3 + 11 * p**3 / 72 - 43 * p**4 / 540, exact)


def efficiency_at_power(q: Array) -> Array:
    """x > 0 with e^x = 1 + q x: −1/q − W₋₁(−e^{−1/q}/q); 0 where q ≤ 1, for which there is none.

    Near q = 1, the branch point, by the inverse series of (e^x − 1)/x − 1 = x/2 + x²/6 + …
    """
    from scipy.special import lambertw

    over = np.clip(q - 1, 0.0, 3e-3)
    series = over * (2 - over * (4 / 3 - over * (10 / 9 - over * 136 / 135)))
    r = 1 / np.maximum(q, 1 + 3e-3)
    x = -r - lambertw(-r * np.exp(-r), -1).real
    return np.where(q < 1 + 3e-3, series, x - (np.expm1(x) * r - x) / (np.exp(x) * r - 1))


def least_share(radio: Radio) -> Array:
    """The least share with which full power and full time suffice; infinite where none does."""
    able = radio.longest_s > 0
    tau = np.where(able, radio.longest_s, 1.0)
    x = efficiency_at_power(np.where(able, radio.limit_w * tau / (radio.kappa_w * radio.airtime_s), 0.0))
    return np.where(x > 0, radio.airtime_s / (np.where(x > 0, x, 1.0) * tau), np.inf)


def power_w(kappa_w: Array, airtime_s: float, tau: Array, share: Array) -> Array:
    return kappa_w * share * np.expm1(airtime_s / (share * tau))


def energy_j(radio: Radio, tau: Array, share: Array) -> Array:
    return computing_j(radio, tau) + tau * power_w(radio.kappa_w, radio.airtime_s, tau, share)


def computing_j(radio: Radio, tau: Array) -> Array:
    """E at t = T − τ."""
    t = radio.round_s - tau
    return radio.work / np.square(t) + radio.inverse / t + radio.leakage * t + radio.fixed


def saved_w(radio: Radio, tau: Array) -> Array:
    """−E' at t = T − τ: what a second more of computing saves; below 0 where it costs."""
    t = radio.round_s - tau
    return 2 * radio.work / t**3 + radio.inverse / t**2 - radio.leakage


def answer(radio: Radio, log_price: Array) -> tuple[Array, Array]:
    """(τ, ρ) of least w e + μρ for every device, at log μ [R, 1]; bisection on log τ by the sign of the slope."""
    high = np.log(radio.longest_s)
    if not (np.any(radio.work) or np.any(radio.inverse)):
        return radio.longest_s, _share_at(radio, log_price, radio.longest_s)[0]
    low = np.maximum(high - 100.0, np.log(np.minimum(radio.shortest_s, radio.longest_s)))
    rising_at_end = _slope(radio, log_price, radio.longest_s) > 0
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        rising = _slope(radio, log_price, np.exp(middle)) > 0
        low, high = np.where(rising, low, middle), np.where(rising, middle, high)
    tau = np.where(rising_at_end, np.exp(0.5 * (low + high)), radio.longest_s)
    return tau, _share_at(radio, log_price, tau)[0]


def _share_at(radio: Radio, log_price: Array, tau: Array) -> tuple[Array, Array, Array]:
    """(ρ, x, whether full power binds) of least cost at a given τ; ρ is infinite where no share would do."""
    x = efficiency_at_price(np.exp(log_price) / (radio.weight * radio.kappa_w * tau))
    most = efficiency_at_power(radio.limit_w * tau / (radio.kappa_w * radio.airtime_s))
    bound = x > most
    x = np.where(bound, most, x)
    return np.where(x > 0, radio.airtime_s / (x * tau), np.inf), x, bound


def cost_at_time(radio: Radio, log_price: Array, tau: Array) -> Array:
    """The least w e + μρ of every device if it sends for τ."""
    share = _share_at(radio, log_price, tau)[0]
    return radio.weight * energy_j(radio, tau, share) + np.exp(log_price) * share


def _slope(radio: Radio, log_price: Array, tau: Array) -> Array:
    """d/dτ of the least w e + μρ at that τ: falling where no share would do."""
    share, x, bound = _share_at(radio, log_price, tau)
    compute_w = saved_w(radio, tau)
    free = radio.weight * (compute_w - radio.kappa_w * share * price_of(x))
    saved = np.exp(log_price) * np.square(share * x) / (radio.airtime_s * shortfall(x))
    full = radio.weight * (compute_w + radio.limit_w) - saved
    return np.where(np.isfinite(share), np.where(bound, full, free), -np.inf)


def settle(radio: Radio, member: Array) -> tuple[Array, Array, Array]:
    """(log μ [R, 1], τ, ρ) at which the members [R, n] of each round ask for the whole band; every round has one."""
    from scipy.optimize.elementwise import find_root

    def excess(log_price: Array, rows: Array) -> Array:
        """log Σ ρ of some rounds: falls in the price."""
        share = answer(radio.rows(rows), log_price[:, None])[1]
        return np.log(np.clip(np.where(member[rows], share, 0.0).sum(axis=1), MOST_SHARES**-1, MOST_SHARES))

    rows = np.arange(len(member))
    low = np.where(member, _log_price_of_all(radio), np.inf).min(axis=1) - 1.0
    high, step = low + 1.0, 1.0
    while step < WIDEST and (more := excess(high, rows) > 0).any():
        step *= 4
        low, high = np.where(more, high, low), np.where(more, high + step, high)
    exact = {"xrtol": 4 * EPS, "fatol": 0.0, "frtol": 0.0}  # beyond 512 a step of log μ is larger than what xatol says
    found = find_root(excess, (low, high), args=(rows,), tolerances={"xatol": 1e-13, **exact})
    log_price = np.where(found.success, found.x, high)[:, None]  # else they do not fit at any price
    return log_price, *answer(radio, log_price)


def _log_price_of_all(radio: Radio) -> Array:
    """log of wκτ (e^x (x−1) + 1) at x = a/τ, τ the longest: below it a device asks for more than the whole band."""
    x = radio.airtime_s / radio.longest_s
    large = x + np.log(np.maximum(x, 50.0))
    marginal = np.where(x <= 50.0, np.log(price_of(np.minimum(x, 50.0))), large)
    return np.log(radio.weight) + np.log(radio.kappa_w) + np.log(radio.longest_s) + marginal
