"""The device set of least Σ (w e − worth), when the members share out the band among themselves.

A price on the band separates the devices: score_k(μ) = min over (τ, ρ) of w e + μ ρ − worth, and for every μ ≥ 0

    bound(μ) = Σ of the allowed number of lowest scores(μ) − μ   ≤   the total of any allowed set.

The search alternates between the price of a set and the set of lowest scores at a price. A set that is the lowest at
its own price is optimal. Otherwise the bound tells which devices can still matter, and their subsets are tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, islice
from math import comb

import numpy as np

from feelstream.arrays import Ids, Reals
from feelstream.policies.solvers.modes import Problem, allocate, alone_j, least_costs, least_j, price_bracket

MOST_SUBSETS = 2000  # subsets tried in one search
BATCH = 500  # of them at once
MOST_PRICES = 50
RELATIVE = 1e-12  # totals closer than this are equal


@dataclass(frozen=True)
class Choice:
    """A set, its total, and a bound below the total of every allowed set (−∞ where none was needed)."""

    members: Ids
    total: float
    bound: float
    exact: bool  # no allowed set has a smaller total


def scores(devices: Problem, worth: Reals, log_price: float) -> tuple[Reals, Reals]:
    """(score_k(μ), ρ_k(μ)) of every device."""
    cost, share = least_costs(devices, log_price)
    return cost - worth, share


def choose(devices: Problem, worth: Reals, n: int, fill: bool, order: Ids) -> Choice:
    """The best set of n devices (all, where there are fewer), or of at most n where not `fill`.

    worth: V I_k, finite; every set of n devices must be feasible (share_min ≤ 1/n); of equals, the first in `order`.
    Exact if the price settles it or at most MOST_SUBSETS subsets remain in doubt; otherwise the best set met.
    """
    at_least = devices.weight * least_j(devices)
    if not fill:
        order = order[(at_least < worth)[order]]
    order = _promising(devices, worth, n, fill, order, (at_least - worth)[order])
    # Alone with the whole band a device costs least.
    least = devices.weight[order] * alone_j(devices.take(order)) - worth[order]
    if not fill:
        order, least = order[least < 0], least[least < 0]  # whoever is not worth that never pays
    order = _promising(devices, worth, n, fill, order, least)
    if len(order) == 0 or n == 0:
        return Choice(order[:0], 0.0, 0.0, True)
    search = _Search(devices.take(order), worth[order], min(n, len(order)), fill)
    found = search.run()
    return Choice(np.sort(order[found.members]), found.total, found.bound, found.exact)


def _promising(devices: Problem, worth: Reals, n: int, fill: bool, order: Ids, least: Reals) -> Ids:
    """Those of `order` that may be in a best set, given bounds below what each adds to a total.

    A set with k in it has at least the total least_k + the n−1 lowest of the bounds (those below 0, where not `fill`).
    Whoever thereby exceeds the total of one allowed set, that of the n lowest bounds, is in no better one.
    """
    if n == 0 or len(order) <= 4 * n:
        return order
    lowest = np.argpartition(least, n - 1)[:n]
    few = order[lowest]
    total = float((devices.weight[few] * allocate(devices.take(few)).energy_j - worth[few]).sum())
    bounds = np.sort(least[lowest])[: n - 1]
    if not fill:
        total, bounds = min(total, 0.0), np.minimum(bounds, 0.0)
    size = abs(total) + float(np.abs(worth[few]).sum())
    return order[least <= total - bounds.sum() + 1e-9 * size]


class _Search:
    def __init__(self, devices: Problem, worth: Reals, n: int, fill: bool) -> None:
        self.devices, self.worth, self.n, self.fill = devices, worth, n, fill
        self.best: Ids = np.zeros(0, np.int64)
        self.total = np.inf if fill else 0.0  # the empty set

    def run(self) -> Choice:
        count = len(self.worth)
        if self.fill and count <= self.n:
            self.try_sets(np.arange(count)[None, :])
            return Choice(self.best, self.total, self.total, True)
        score, bound = self.price()
        if self.total <= bound + RELATIVE * self.scale:
            return Choice(self.best, self.total, bound, True)
        exact = self.enumerate(score, bound)
        return Choice(self.best, self.total, self.total if exact else bound, exact)

    @property
    def scale(self) -> float:
        """Size of the terms of a total, for what rounding can do to it."""
        return abs(self.total) + float(np.abs(self.worth[self.best]).sum())

    def lowest(self, score: Reals) -> Ids:
        """The allowed set of lowest scores, in the order of their scores."""
        ids = np.argsort(score, kind="stable")[: self.n]
        return ids if self.fill else ids[score[ids] < 0]

    def try_sets(self, sets: Ids) -> Reals:
        """Solve every row of `sets` (m, size ≥ 1) and remember the best; log μ of each."""
        solved = allocate(self.devices.take(sets), self.total + self.worth[sets].sum(axis=-1))
        totals = (self.devices.weight[sets] * solved.energy_j - self.worth[sets]).sum(axis=-1)
        winner = int(np.argmin(totals))
        if totals[winner] < self.total:
            self.best, self.total = sets[winner], float(totals[winner])
        return solved.log_price

    def price(self) -> tuple[Reals, float]:
        """Go from set to price to set; (scores, bound) at the price with the greatest bound."""
        tried: set[bytes] = set()
        low, high, log_price = price_bracket(self.devices, self.n)  # the best price is between
        best_score, best_bound = np.zeros(len(self.worth)), -np.inf
        for _ in range(MOST_PRICES):
            score, share = scores(self.devices, self.worth, log_price)
            members = self.lowest(score)
            bound = float(score[members].sum() - np.exp(log_price))
            if bound > best_bound:
                best_score, best_bound = score, bound
            if share[members].sum() > 1:
                low = max(low, log_price)
            else:
                high = min(high, log_price)
            following = np.nan
            if len(members):
                key = np.sort(members).tobytes()
                if key in tried:
                    if self.total <= best_bound + RELATIVE * self.scale:
                        break
                else:
                    tried.add(key)
                    following = float(self.try_sets(np.sort(members)[None, :])[0])
            if high - low <= 1e-12 * max(1.0, abs(high)):
                break
            log_price = following if low < following < high else 0.5 * (low + high)
        return best_score, best_bound

    def enumerate(self, score: Reals, bound: float) -> bool:
        """Try all subsets that the bound leaves in doubt; False, and nothing tried, if they are too many."""
        members = self.lowest(score)
        chosen = np.zeros(len(score), bool)
        chosen[members] = True
        full = len(members) == self.n
        outside = np.min(score[~chosen], initial=np.inf)
        entry = score[members[-1]] if full else 0.0  # what makes room for one more
        replacement = outside if self.fill else min(outside, 0.0)
        room = self.total - bound + RELATIVE * self.scale
        certain = np.flatnonzero(chosen & (replacement - score > room))
        doubtful = np.flatnonzero((chosen & (replacement - score <= room)) | (~chosen & (score - entry <= room)))
        most = self.n - len(certain)
        sizes = [most] if self.fill else list(range(max(0, 1 - len(certain)), min(most, len(doubtful)) + 1))
        if sum(comb(len(doubtful), size) for size in sizes) > MOST_SUBSETS:
            return False
        for size in sizes:
            for sets in _batches(certain, doubtful, size):
                self.try_sets(sets)
        return True


def _batches(certain: Ids, doubtful: Ids, size: int) -> Iterator[Ids]:
    """The subsets `certain` + `size` of `doubtful`, as rows, at most BATCH at a time."""
    subsets = combinations(doubtful.tolist(), size)
    while block := list(islice(subsets, BATCH)):
        picked = np.fromiter(chain.from_iterable(block), np.int64).reshape(len(block), size)
        yield np.sort(np.hstack([np.broadcast_to(certain, (len(block), len(certain))), picked]), axis=1)
