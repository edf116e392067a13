"""A joint problem, whatever the energy law: devices with one convex curve each, or with modes of which they choose one.

Modes are the pieces of a law that is not one falling curve.

Within a mode the problem of a device is convex (`Devices`), over all its modes it need not be: E may jump from one
operating point to the next, or bend the wrong way between two of them. A price on the band still separates the devices,
and for every price μ ≥ 0

    bound(μ) = Σ_k min over modes of (w e + μ ρ) − μ   ≤   Σ w e of every choice of modes and shares.

The search goes from a price to the modes that are best at it, to the price at which these fill the band, and so on.
Modes that are best at their own price are optimal. Otherwise all combinations that the bound leaves in doubt are
solved, so the answer is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Ids, Reals
from feelstream.policies.solvers import allocation as convex
from feelstream.policies.solvers.allocation import Allocation, respond
from feelstream.policies.solvers.devices import Devices, energy_j

MOST_COMBINATIONS = 20_000  # of modes, solved for one set; beyond, those that the bound favours least are left out
BATCH = 500
MOST_PRICES = 60
CLOSE = 1e-6  # a bracket of log μ this narrow tells no more about the modes
RELATIVE = 1e-12  # totals closer than this are equal


@dataclass(frozen=True)
class Modes:
    """A joint problem with modes: the last axis is the modes of a device, the one before the devices of one set.

    A mode that a device cannot use has an infinite share_min. high_hz: the highest frequency of each mode.
    """

    each: Devices
    high_hz: Reals

    @property
    def weight(self) -> Reals:
        return self.each.weight[..., 0]

    @property
    def share_min(self) -> Reals:
        return self.each.share_min.min(axis=-1)

    def take(self, index: NDArray[np.int64]) -> Modes:
        """The problem of the devices with these numbers; of several sets at once where `index` has more axes."""
        return Modes(self.each.take(index), self.high_hz[index])

    def in_mode(self, mode: Ids) -> Devices:
        """Every device in the mode of this number, (…, n)."""
        return self.each.picked(lambda column: picked(column, mode))

    def highest_hz(self, mode: Ids) -> Reals:
        """(…, n) the highest frequency of these modes."""
        return picked(self.high_hz, mode)


Problem = Devices | Modes


def picked(column: Reals, mode: Ids) -> Reals:
    """(…, n, M), (…, n) → (…, n)."""
    return np.take_along_axis(column, mode[..., None], axis=-1)[..., 0]


def costs(modes: Modes, log_price: Reals) -> tuple[Reals, Reals]:
    """(w e + μ ρ, ρ) of every mode at log μ, which has the axes of the sets; infinite where a mode cannot be used."""
    price = np.asarray(log_price)[..., None, None]
    answer = respond(modes.each, price)
    cost = modes.each.weight * energy_j(modes.each, answer.sending_s, answer.share) + np.exp(price) * answer.share
    able = np.isfinite(modes.each.share_min)
    return np.where(able, cost, np.inf), np.where(able, answer.share, np.inf)


class _Sets:
    """Feasible sets, solved side by side: the best modes known of each, (sets, n), their total, and a bound below it.

    excess: by how much each mode costs more than the best one, (sets, n, M), at the price of the greatest bound.
    """

    def __init__(self, modes: Modes) -> None:
        self.modes = modes
        # The modes that need least band: together they fit.
        self.mode: Ids = np.argmin(modes.each.share_min, axis=-1)
        self.total, self.log_price = self._solve(np.arange(len(self.mode)), self.mode)
        self.bound = np.full(len(self.total), -np.inf)
        self.excess = np.zeros(modes.each.weight.shape)

    def _solve(self, rows: Ids, mode: Ids) -> tuple[Reals, Reals]:
        """(Σ w e, log μ) of some sets in these modes; infinite and NaN where they do not fit the band."""
        devices = self.modes.take(rows).in_mode(mode)
        solved = convex.allocate(devices)
        return np.where(solved.feasible, (devices.weight * solved.energy_j).sum(axis=-1), np.inf), solved.log_price

    def search(self) -> None:
        """From price to modes to price, within a bracket: below `low` the best modes ask for more than the band."""
        low, high = np.full(len(self.total), -np.inf), np.full(len(self.total), np.inf)
        log_price = self.log_price.copy()
        rows = np.arange(len(self.total))
        for _ in range(MOST_PRICES):
            at = log_price[rows]
            cost, share = costs(self.modes.take(rows), at)
            mode = np.argmin(cost, axis=-1)
            least = picked(cost, mode)
            bound = least.sum(axis=-1) - np.exp(at)
            better = rows[bound > self.bound[rows]]
            self.excess[better] = (cost - least[..., None])[bound > self.bound[rows]]
            self.bound[rows] = np.maximum(self.bound[rows], bound)
            over = picked(share, mode).sum(axis=-1) > 1
            low[rows], high[rows] = np.where(over, at, low[rows]), np.where(over, high[rows], at)
            total, own_price = self._solve(rows, mode)
            shorter = total < self.total[rows]
            self.total[rows[shorter]], self.mode[rows[shorter]] = total[shorter], mode[shorter]
            log_price[rows] = _between(low[rows], high[rows], at, own_price, over)
            doubt = self.total[rows] > self.bound[rows] + RELATIVE * self.total[rows]
            rows = rows[doubt & (high[rows] - low[rows] > CLOSE)]
            if rows.size == 0:
                break

    def combine(self, beat: Reals) -> None:
        """Solve all combinations of modes that the bound leaves in doubt, of sets that may still be below `beat`."""
        gap = self.total - self.bound
        for row in np.flatnonzero((gap > RELATIVE * self.total) & (self.bound < beat)):
            combinations = _combinations(self.excess[row], gap[row] + RELATIVE * self.total[row])
            for first in range(0, len(combinations), BATCH):
                some = combinations[first : first + BATCH]
                total, _ = self._solve(np.full(len(some), row), some)
                winner = int(np.argmin(total))
                if total[winner] < self.total[row]:
                    self.total[row], self.mode[row] = total[winner], some[winner]


def _between(low: Reals, high: Reals, at: Reals, own_price: Reals, over: NDArray[np.bool_]) -> Reals:
    """The next price: that of the modes themselves if it is in the bracket, else its middle, or a step outwards."""
    with np.errstate(invalid="ignore"):
        middle = np.where(np.isfinite(low) & np.isfinite(high), 0.5 * (low + high), np.where(over, at + 2.0, at - 2.0))
        return np.where((own_price > low) & (own_price < high), own_price, middle)


def _combinations(excess: Reals, room: float) -> Ids:
    """(m, n) choices of one mode per device whose excesses, (n, M), add up to at most `room`, the least first."""
    found, spent = np.zeros((1, 0), np.int64), np.zeros(1)
    for own in excess:
        modes = np.flatnonzero(own <= room)
        total = spent[:, None] + own[modes]
        which, mode = np.nonzero(total <= room)
        order = np.argsort(total[which, mode], kind="stable")[:MOST_COMBINATIONS]
        found = np.hstack([found[which[order]], modes[mode[order]][:, None]])
        spent = total[which[order], mode[order]]
    return found


def allocate(problem: Problem, beat: Reals | None = None) -> Allocation:
    """The least Σ w e over modes, times and shares; the last axis of the weights is the set.

    It is feasible if and only if the least shares add up to at most 1.

    beat: totals of Σ w e, one for each set; one that cannot be below that need not be solved to the end.
    """
    if isinstance(problem, Devices):
        return convex.allocate(problem)
    if problem.each.weight.ndim == 2:
        many = allocate(problem.take(np.arange(problem.each.weight.shape[0])[None, :]), beat)
        return Allocation(**{name: values[0] for name, values in vars(many).items()})
    shape = problem.weight.shape
    feasible, mode, solved = problem.share_min.sum(axis=-1) <= 1, np.zeros(shape, np.int64), None
    rows = np.flatnonzero(feasible)
    if rows.size:
        own = _Sets(problem.take(rows))
        own.search()
        own.combine(np.full(rows.size, np.inf) if beat is None else np.broadcast_to(beat, shape[0])[rows])
        mode[rows] = own.mode
        solved = convex.allocate(problem.take(rows).in_mode(own.mode))
    return replace(convex.of_some(solved, feasible, shape), mode=mode)


def alone_j(problem: Problem) -> Reals:
    """The least e of every device with the whole band to itself, J; NaN where not even that would do."""
    if isinstance(problem, Modes):
        return np.fmin.reduce(convex.alone_j(problem.each), axis=-1)
    return convex.alone_j(problem)


def least_costs(problem: Problem, log_price: float) -> tuple[Reals, Reals]:
    """(w e + μ ρ, ρ) of every device by itself, in its best mode, at log μ."""
    if isinstance(problem, Modes):
        cost, share = costs(problem, np.array(log_price))
        best = np.argmin(cost, axis=-1)
        return picked(cost, best), picked(share, best)
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
