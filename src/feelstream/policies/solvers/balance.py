"""Class balance of what a set of devices trains on, and the set that has the best of it.

    p(Π) = Σ_{k∈Π} L(S_k) / Σ_{k∈Π} |S_k|                   the mix of a set, of classes say, as aggregation weighs it
    D(Π) = Σ_i ((1−η) r + η p(Π) − q)_i² / q_i               how far from balance the model would be; 0 to max 1/q − 1
    N(Π) = (Σ |S_k|)² / Σ |S_k|²                             how many devices of one size average as well
    F(Π) = D(Π) + spread/N(Π) + Σ_{k∈Π} cost_k               what a set is chosen by

r is the mix that the model has seen lately, η the weight of one round in it (`memory`), q the reference mix: that of
reference data where the scenario names any (docs/features.md), else 1/m, and then D = m ‖… − 1/m‖².
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Flags, Ids, LabelCounts, Reals
from feelstream.policies.base import Observation, RoundPlan
from feelstream.policies.ranking import Ranking, Term

DIGITS = 12  # of a device's own cost: what differs by less differs by rounding
EQUAL = 1e-9  # F closer than this is equal: symmetric sets differ by rounding, and the order of the lot decides
MOST_SUBSETS = 3000  # that are all tried
MOST_SWAPS = 100_000  # members × candidates; of more, the greedy set stays as it is


def holders(observation: Observation, plan: RoundPlan, rng: np.random.Generator) -> tuple[Ids, Reals, LabelCounts]:
    """Who can be taken, the feasible devices that hold data, in random order; their label counts; those of everyone."""
    held = observation.stored_features
    assert held is not None
    ids = rng.permutation(np.flatnonzero(plan.feasible & held.any(axis=1)))
    return ids, held[ids].astype(float), held


def mix(labels: Reals | LabelCounts) -> Reals:
    """p for label counts (…, m); 0 where there are none."""
    return labels / np.maximum(labels.sum(axis=-1, keepdims=True), np.finfo(float).tiny)


def imbalance(labels: Reals, seen: Reals, memory: float, reference: Reals | None = None) -> Reals:
    """D for sets whose pooled label counts are given, (…, m). reference: q, (m,) above 0; None: 1/m.

    Edge rule: the mix of a set without labels is 0.
    """
    m = labels.shape[-1]
    found = (1 - memory) * seen + memory * mix(labels)
    if reference is None:
        return m * np.square(found - 1.0 / m).sum(axis=-1)
    return (np.square(found - reference) / reference).sum(axis=-1)


Cost = Callable[[Reals, Ids, list[int]], Reals]
ODD = np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing


def alike(rows: Reals) -> NDArray[np.uint64]:
    """(devices,) a number that is the same for equal rows, and with near certainty differs for all others."""
    bits = np.ascontiguousarray(rows, np.float64).view(np.uint64)
    mixed = (bits ^ (bits >> np.uint64(32))) * ODD
    mixed ^= mixed >> np.uint64(29)
    weights = np.random.default_rng(0).integers(0, 2**64, rows.shape[1], np.uint64)
    return (mixed * weights).sum(axis=1, dtype=np.uint64)


class Heads:
    """Of every group of devices with equal rows the one that is next: of the least cost of its own, then the first.

    Whatever a set is chosen by, if it depends on a device's row and falls with its own cost, no other is better.
    """

    def __init__(self, rows: Reals, own: Reals) -> None:
        key = alike(rows)
        self._order = np.lexsort((own.round(DIGITS), key))  # stable: of equals the first
        new = np.flatnonzero(np.diff(key[self._order], prepend=~key[self._order[:1]]))
        self._next, self._end = new, np.append(new[1:], len(rows))
        self.devices = self._order[new]
        self.rows = rows[self.devices]
        self.left = np.ones(len(new), bool)

    def take(self, costs: Reals) -> tuple[int, float]:
        """The head that costs least, of equals the first device, and what it costs; the next of its group follows."""
        costs = np.where(self.left, costs, np.inf)
        least = float(costs.min())
        equal = np.flatnonzero(costs == least)
        group = equal[np.argmin(self.devices[equal])]
        taken = int(self.devices[group])
        self._next[group] += 1
        self.left[group] = self._next[group] < self._end[group]
        if self.left[group]:
            self.devices[group] = self._order[self._next[group]]
        return taken, least


def greedy_set(labels: Reals, own: Reals, most: int, cost: Cost, *, only_better: bool = False) -> Ids:
    """Rows of labels (devices, m), at most so many: again and again the one that makes the set cheapest.

    cost(pooled, devices, chosen): of each set of the rows chosen so far and one of `devices` more, by its pooled counts
    (devices, m). Of devices with equal labels it must be least for the one of the least `own`, (devices,).
    The first of equals is taken, so callers shuffle. only_better: stop where one more makes the set no cheaper.
    """
    chosen: list[int] = []
    if not len(labels):
        return np.array(chosen, np.int64)
    heads = Heads(labels, own)
    pooled, now = np.zeros(labels.shape[1]), np.inf
    for _ in range(min(most, len(labels))):
        best, least = heads.take(cost(pooled + heads.rows, heads.devices, chosen))
        if only_better and least >= now:
            break
        chosen.append(best)
        pooled, now = pooled + labels[best], least
    return np.array(chosen, np.int64)


class Balance:
    """Candidates with their label counts (C, m), each at least one sample, and costs (C,), in the order of the lot."""

    def __init__(
        self, labels: Reals, cost: Reals, seen: Reals, memory: float, spread: float, reference: Reals | None = None
    ) -> None:
        self.labels, self.cost, self.spread = labels, cost, spread
        self.lately = seen, memory, reference
        self.sizes = labels.sum(axis=1)
        self.squares = np.square(self.sizes)

    def value(self, pooled: Reals, squares: Reals, cost: Reals) -> Reals:
        """F of sets with these sums of L, |S|² and cost over their members."""
        balance = imbalance(pooled, *self.lately)
        return balance + self.spread * squares / np.square(pooled.sum(axis=-1)) + cost

    def of(self, members: list[int]) -> float:
        """F of one set; infinite for the empty one."""
        if not members:
            return np.inf
        return float(self.value(*(part[members].sum(axis=0) for part in (self.labels, self.squares, self.cost))))

    def ranking(
        self, able: Flags, schedule: Ids, device: int, *, priced: str, room: bool = False, refusal: str = ""
    ) -> Ranking:
        """What every candidate adds to D, to spread/N and to the costs, called `priced`, of the rest of its set.

        The rest of a member's set are the others. That of another device are all but the member whose place it would
        take at the least F, or the whole set where there is `room`.
        """
        rests = [*([schedule] if room else []), *(np.delete(schedule, at) for at in range(len(schedule)))]
        if device in schedule:
            rests = [schedule[schedule != device]]
        rest = min(rests, key=lambda rest: self.of([*rest, device]) if able[device] else 0.0, default=schedule)
        free = able & ~np.isin(np.arange(len(able)), rest)
        pooled, squares = self.labels[rest].sum(axis=0), self.squares[rest].sum()
        balance, spread, cost = np.full((3, len(free)), np.nan)
        sums = pooled + self.labels[free]
        balance[free], cost[free] = imbalance(sums, *self.lately), self.cost[free]
        spread[free] = self.spread * (squares + self.squares[free]) / np.square(sums.sum(axis=-1))
        if len(rest):
            balance -= float(imbalance(pooled, *self.lately))
            spread -= self.spread * squares / pooled.sum() ** 2
        few = (Term("few devices", spread),) if self.spread else ()
        return Ranking((Term("class imbalance", balance), *few, Term(priced, cost)), room and len(rest) > 0, refusal)

    def choose(self, most: int) -> list[int]:
        """The set of at most `most` members with the least F; of equals the smaller, then the first.

        Exact where all such sets are at most MOST_SUBSETS. Otherwise the best set met.
        """
        most = min(most, len(self.cost))
        if sum(comb(len(self.cost), n) for n in range(1, most + 1)) <= MOST_SUBSETS:
            return self.exact(most)
        return self.greedy(most)

    def exact(self, most: int) -> list[int]:
        """The least F of all sets of 1 to `most` members."""
        best, least = [], np.inf
        for n in range(1, most + 1):
            sets = np.array(list(combinations(range(len(self.cost)), n)))
            parts = (self.labels, self.squares, self.cost)
            value = self.value(*(part[sets].sum(axis=1) for part in parts))
            first = self._first(value)
            if value[first] < least - EQUAL:
                best, least = sets[first].tolist(), float(value[first])
        return best

    def greedy(self, most: int) -> list[int]:
        """For every size one member added, and members exchanged while F falls; the size of the least F.

        F of a set is at least spread over its size and the least costs that so many can have: sizes from which on that
        alone exceeds the least F are not built.
        """
        members: list[int] = []
        best, least = members, np.inf
        cheapest = np.cumsum(np.sort(np.partition(self.cost, most - 1)[:most])) if most else self.cost
        for size in range(most):
            if self.spread / most + cheapest[size] >= least - EQUAL:
                break
            members = self.exchanged([*members, self._first(self._with(members))])
            value = self.of(members)
            if value < least - EQUAL:
                best, least = members, value
        return best

    def exchanged(self, members: list[int]) -> list[int]:
        """Members exchanged one by one for the candidate that lowers F most, until none lowers it."""
        if len(members) * len(self.cost) > MOST_SWAPS:
            return members
        members, value = list(members), self.of(members)
        while True:
            # (members, C): F without the one and with the other
            found = np.array([self._with(members[:i] + members[i + 1 :], members[i]) for i in range(len(members))])
            place = self._first(found.ravel())
            out, into = divmod(place, len(self.cost))
            if not found[out, into] < value - EQUAL:
                return members
            members[out], value = into, float(found[out, into])

    def _with(self, members: list[int], without: int | None = None) -> Reals:
        """(C,) F of these members and each candidate; infinite for those that are members, or are to stay out."""
        parts = (self.labels, self.squares, self.cost)
        value = self.value(*(part[members].sum(axis=0) + part for part in parts))
        value[members if without is None else [*members, without]] = np.inf
        return value

    def _first(self, value: NDArray[np.float64]) -> int:
        """The first of the least, as far as they can be distinguished."""
        return int(np.argmax(value <= value.min() + EQUAL))
