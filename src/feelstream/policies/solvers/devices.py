"""The devices of a joint problem, and the radio in the variables that suit it.

A device sends a·B/ln 2 bits (a = S ln 2 / B, in s) in the time τ on the share ρ of the band, at x = a/(ρτ) nats per
second and hertz, and so with the power P = κ ρ (e^x − 1), κ = B N0 / h. Its computing takes the rest of the round:

    e(τ, ρ) = E(T−τ) + κ τ ρ (e^x − 1),     T − c/f_min ≤ τ ≤ T − c/f_max,     0 < τ,     P ≤ P_max

    E(t) = fixed + b/t + C/t² + leakage·t,     the cubic law: C = λ c³ alone

E must be convex and fall in t between its ends, so that −E' = 2q/t³ with q(t) = C + (b t − leakage t³)/2 > 0 there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Reals

FEW_ROUNDINGS = 4 * float(np.finfo(float).eps)
MOST_STEPS = 200  # bisection alone needs about 60 for a bracket of width 1000; Newton about 10


def falling_root(
    function: Callable[[Reals], tuple[Reals, Reals]], low: Reals, high: Reals, start: Reals | None = None
) -> Reals:
    """Where each of many falling functions is 0, within [low, high]; the nearer end where it has no zero in there.

    scipy.optimize.elementwise.find_root does it without slopes: the same zeros to rounding in 3 to 19 times the time,
    at 10 to 1000 devices.

    function: u → (values, slopes), all arrays of one shape. A Newton step that leaves the bracket, or that follows
    one which did not halve the value, is replaced by a bisection, so the bracket shrinks for certain: at most
    MOST_STEPS evaluations. Stops when every step is within a few roundings of u; the last evaluation was then there.
    """
    u = np.array(np.broadcast_to(high if start is None else start, np.broadcast_shapes(low.shape, high.shape)), float)
    low, high = (np.array(np.broadcast_to(end, u.shape), float) for end in (low, high))
    u = np.clip(u, low, high)
    last = np.full(u.shape, np.inf)
    for _ in range(MOST_STEPS):
        value, slope = function(u)
        low, high = np.where(value >= 0, u, low), np.where(value <= 0, u, high)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = u - value / slope
        # Where the value is all rounding error, Newton's step is tiny and need not halve it.
        tiny = FEW_ROUNDINGS * np.maximum(1.0, np.abs(u))
        arrived = (np.abs(step - u) <= tiny) | (high - low <= tiny)
        if arrived.all():
            break
        size = np.abs(value)
        newton = (step >= low) & (step <= high) & (size <= 0.5 * last)
        u, last = np.where(arrived, u, np.where(newton, step, 0.5 * (low + high))), size
    return u


def rest(x: Reals) -> Reals:
    """x − 1 + e^−x for x ≥ 0, by its series where the terms would cancel."""
    if (x >= 0.1).all():
        return x + np.expm1(-x)
    small = np.minimum(x, 0.1)
    series = np.ones_like(x)
    for j in range(10, 2, -1):  # x²/2 (1 − x/3 (1 − x/4 (…)))
        series = 1 - small / j * series
    return np.where(x < 0.1, small * small / 2 * series, x + np.expm1(-x))


def marginal(x: Reals) -> tuple[Reals, Reals]:
    """log(e^x (x − 1) + 1), how fast the energy κ y (e^{a/y} − 1) falls in y = τρ, over κ; and how steeply.

    The steepness is d log / d log x = x² / (x − 1 + e^−x) ≥ 2.
    """
    left = rest(x)
    return x + np.log(left), x * (x / left)


def growth(x: Reals) -> Reals:
    """x / (1 − e^−x) ≥ 1, 1 at 0: how steeply e^x − 1 rises, as d log / d log x."""
    small = x < 1e-12
    return np.where(small, 1.0, x / -np.expm1(-np.where(small, 1.0, x)))


def log_expm1(x: Reals) -> Reals:
    """log(e^x − 1) without overflow; x > 0."""
    return x + np.log(-np.expm1(-x))


@dataclass(frozen=True)
class Devices:
    """A joint problem. All arrays broadcast against one another; the last axis is the devices of one set.

    weight: w > 0, per J; kappa_w: B N0/h, W; sending_s: T − c/f_max > 0; power_w: P_max, W; round_s: T;
    work_j_s2: C, λ c³ in the cubic law; airtime_s: a = S ln 2 / B;
    shortest_s: max(T − c/f_min, 0), the sending time that is left at the lowest frequency;
    fixed_j, inverse_j_s, leakage_w: the other terms of E. Where both b and C are 0, nothing is gained by computing for
    longer, or computing is done: then the sending time is sending_s, and E is fixed_j.
    x_max and share_min follow: the spectral efficiency at full power and full time, and the share that it needs
    (infinite where no share would do).
    """

    weight: Reals
    kappa_w: Reals
    sending_s: Reals
    power_w: Reals
    round_s: float
    work_j_s2: Reals
    airtime_s: float
    x_max: Reals
    share_min: Reals
    shortest_s: Reals
    fixed_j: Reals
    inverse_j_s: Reals
    leakage_w: Reals

    @cached_property
    def falls(self) -> NDArray[np.bool_]:
        """Where computing for longer saves energy, so that the sending time is to be chosen."""
        return (self.work_j_s2 > 0) | (self.inverse_j_s > 0)

    @cached_property
    def computes(self) -> bool:
        """Whether the sending time of any is to be chosen."""
        return bool(self.falls.any())

    @cached_property
    def all_compute(self) -> bool:
        """Whether that of all is."""
        return bool(self.falls.all())

    @cached_property
    def cubic(self) -> bool:
        """Whether E = C/t² for all whose sending time is to be chosen."""
        return not (np.any(self.inverse_j_s) or np.any(self.leakage_w))

    @staticmethod
    def of(
        weight: Reals,
        kappa_w: Reals,
        sending_s: Reals,
        power_w: Reals,
        round_s: float,
        work_j_s2: Reals | float,
        airtime_s: float,
        shortest_s: Reals | float = 0.0,
        fixed_j: Reals | float = 0.0,
        inverse_j_s: Reals | float = 0.0,
        leakage_w: Reals | float = 0.0,
    ) -> Devices:
        """At full power and time κ a (e^x − 1)/x = P_max τ. No time left: x_max 0, share_min infinite."""
        given = (weight, kappa_w, sending_s, power_w, work_j_s2, shortest_s, fixed_j, inverse_j_s, leakage_w)
        weight, kappa_w, sending_s, power_w, work, shortest, fixed, inverse, leakage = (
            np.array(column, float) for column in np.broadcast_arrays(*given)
        )
        able = sending_s > 0
        x = full_power_x(np.log(power_w) + np.log(np.where(able, sending_s, 1.0)) - np.log(kappa_w) - np.log(airtime_s))
        able &= x > 0
        x = np.where(able, x, 1.0)
        share = airtime_s / (x * np.where(able, sending_s, 1.0))
        sending_s = np.where(sending_s > 0, sending_s, np.nan)
        x_max, share_min = np.where(able, x, 0.0), np.where(able, share, np.inf)
        sending, computing = (x_max, share_min, shortest), (fixed, inverse, leakage)
        return Devices(weight, kappa_w, sending_s, power_w, round_s, work, airtime_s, *sending, *computing)

    def take(self, index: NDArray[np.int64]) -> Devices:
        """The problem of the devices with these numbers; of several sets at once where `index` has more axes."""
        return self.picked(lambda column: column[index])

    def picked(self, pick: Callable[[Reals], Reals]) -> Devices:
        """The problem of some of the devices: those that `pick` takes of every array."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: pick(value) for name, value in given.items() if isinstance(value, np.ndarray)})


def full_power_x(log_ratio: Reals) -> Reals:
    """x with (e^x − 1)/x = P τ/(κ a), given the logarithm of that; 0 where it is not above 1 and no x will do.

    (e^x − 1)/x lies between e^{x/2} and e^x, so x lies between the logarithm of it and twice that.
    """
    able = log_ratio > 0
    ratio = np.where(able, log_ratio, 1.0)

    def missing(x: Reals) -> tuple[Reals, Reals]:
        return ratio - (log_expm1(x) - np.log(x)), (1 - growth(x)) / x

    return np.where(able, falling_root(missing, ratio, 2 * ratio), 0.0)


def energy_j(devices: Devices, sending_s: Reals, share: Reals) -> Reals:
    """e(τ, ρ), J. Where nothing is to be chosen, sending may fill the round to the last rounding."""
    energy = sending_s * least_power_w(devices, sending_s, share)
    left_s = devices.round_s - sending_s
    if devices.computes:
        energy = devices.work_j_s2 / left_s**2 + energy
        if not devices.cubic:
            energy = energy + np.where(devices.falls, devices.inverse_j_s / left_s + devices.leakage_w * left_s, 0.0)
    return energy + devices.fixed_j if np.any(devices.fixed_j) else energy


def saving(d: Devices, sending_s: Reals) -> tuple[Reals, Reals | float]:
    """q and −d log(−E')/d log t at t = T − τ: C and 3 in the cubic law; q is 1 where nothing can be saved."""
    if d.cubic:  # so that computing is all of E, and none where C is 0
        return (d.work_j_s2 if d.all_compute else np.where(d.work_j_s2 > 0, d.work_j_s2, 1.0)), 3.0
    t = d.round_s - sending_s
    inverse, leaking = d.inverse_j_s * t, d.leakage_w * t**3
    # At the frequency of least energy q is 0, or a rounding below.
    q = np.where(
        d.falls, np.maximum(d.work_j_s2 + 0.5 * (inverse - leaking), 1e-15 * (d.work_j_s2 + np.abs(inverse))), 1.0
    )
    return q, 3.0 - np.where(d.falls, 0.5 * (inverse - 3 * leaking) / q, 0.0)


def compute_w(d: Devices, sending_s: Reals) -> tuple[Reals, Reals | float]:
    """−E' = 2q/(T−τ)³, W, and how steeply it falls in t, as above; 0 W where nothing can be saved."""
    q, steepness = saving(d, sending_s)
    watts = 2 * q / (d.round_s - sending_s) ** 3
    return watts if d.all_compute else np.where(d.falls, watts, 0.0), steepness


def least_power_w(devices: Devices, sending_s: Reals, share: Reals) -> Reals:
    """P = κ ρ (e^{a/(ρτ)} − 1), W."""
    x = devices.airtime_s / (share * sending_s)
    return np.exp(np.log(devices.kappa_w) + np.log(share) + log_expm1(x))
