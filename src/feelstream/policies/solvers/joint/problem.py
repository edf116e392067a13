"""A joint problem, whatever the law: devices with one convex curve each, or with modes of which they choose one."""

from __future__ import annotations

import numpy as np

from feelstream.arrays import Reals
from feelstream.policies.solvers.joint import allocation as convex
from feelstream.policies.solvers.joint import modes as several
from feelstream.policies.solvers.joint.allocation import Allocation
from feelstream.policies.solvers.joint.devices import Devices, energy_j
from feelstream.policies.solvers.joint.modes import Modes
from feelstream.policies.solvers.joint.response import respond

Problem = Devices | Modes


def allocate(problem: Problem, beat: Reals | None = None) -> Allocation:
    """The least Σ w e subject to Σ ρ ≤ 1, f and P within their limits; the last axis of the weights is the set.

    beat: one total for each set, where those that cannot be below it need not be solved to the end.
    """
    return several.allocate(problem, beat) if isinstance(problem, Modes) else convex.allocate(problem)


def alone_j(problem: Problem) -> Reals:
    """The least e of every device with the whole band to itself, J; NaN where not even that would do."""
    return several.alone_j(problem) if isinstance(problem, Modes) else convex.alone_j(problem)


def least_costs(problem: Problem, log_price: float) -> tuple[Reals, Reals]:
    """(w e + μ ρ, ρ) of every device by itself, at log μ."""
    if isinstance(problem, Modes):
        return several.least_costs(problem, np.array(log_price))
    answer = respond(problem, np.full(problem.weight.shape, log_price))
    energy = energy_j(problem, answer.sending_s, answer.share)
    return problem.weight * energy + np.exp(log_price) * answer.share, answer.share


def least_j(problem: Problem) -> Reals:
    """A bound below e: no device computes for longer than at its lowest frequency, nor sends for less than κ a."""
    if isinstance(problem, Modes):
        return np.where(np.isfinite(problem.each.share_min), least_j(problem.each), np.inf).min(axis=-1)
    slowest_s = problem.round_s - problem.shortest_s
    computing = problem.work_j_s2 / slowest_s**2
    if not problem.cubic:
        more = problem.inverse_j_s / slowest_s + problem.leakage_w * slowest_s
        computing = computing + np.where(problem.falls, more, 0.0)
    if np.any(problem.fixed_j):
        computing = computing + problem.fixed_j
    return computing + problem.kappa_w * problem.airtime_s


def price_bracket(problem: Problem, n: int) -> tuple[float, float, float]:
    """(low, high, a guess) of log μ: below `low` any n devices ask for more than the band, above `high` for less."""
    if isinstance(problem, Modes):
        return _bracket_of_modes(problem, n)
    spread = problem.take(np.arange(len(problem.weight))[:, None])
    least, most = convex.band_worth(spread, np.full((len(problem.weight), 1), 1.0 / n))
    return float(least.min()), float(most.max()), float(np.median(least))


def _bracket_of_modes(problem: Modes, n: int) -> tuple[float, float, float]:
    """As above, from a guess outwards: at a high price every device is in the mode that needs least band."""
    able = np.isfinite(problem.each.share_min)
    least, _ = convex.band_worth(problem.each, np.full(able.shape, 1.0 / n))
    guess = float(np.median(least[able]))
    low = high = guess
    for _ in range(100):
        if (least_costs(problem, high)[1] <= 1 / n).all():
            break
        high += 4.0
    for _ in range(100):
        if (least_costs(problem, low)[1] >= 1 / n).all():
            break
        low -= 4.0
    return low, high, guess
