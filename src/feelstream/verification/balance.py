"""The set of least imbalance, spread and cost, found a second time: every set is a row of a mask.

F(Π) = m ‖(1−η) r + η p(Π) − 1/m‖² + spread·Σ|S|²/(Σ|S|)² + Σ cost, p(Π) the pooled label mix. All sets where they are
few; else, for every size, one member added and members exchanged while F falls. F closer than 1e-9 is equal.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from feelstream.verification.findings import Array

EQUAL = 1e-9
FEW_SETS = 3000
FEW_EXCHANGES = 100_000
ROUNDING = 1e-10  # of F: where a difference from EQUAL is less, rounding decides


class Choice:
    """Candidates in the order of the lot: label counts [C, m] and costs [C]. `unsure`: rounding decided something."""

    def __init__(self, labels: Array, cost: Array, seen: Array, memory: float, spread: float) -> None:
        self.parts = np.column_stack([labels, np.square(labels.sum(axis=1)), cost]).astype(float)
        self.m, self.count = labels.shape[1], len(cost)
        self.seen, self.memory, self.spread = seen, memory, spread
        self.unsure = False

    def values(self, sets: Array) -> Array:
        """F of every set, a row of the mask [N, C]."""
        sums = sets.astype(float) @ self.parts
        labels, squares, cost = sums[:, : self.m], sums[:, -2], sums[:, -1]
        size = labels.sum(axis=1, keepdims=True)
        away = (1 - self.memory) * self.seen + self.memory * labels / size - 1 / self.m
        return self.m * np.square(away).sum(axis=1) + self.spread * squares / np.square(size[:, 0]) + cost

    def best(self, most: int) -> list[int]:
        """The members of the set that is chosen, of at most `most`."""
        most = min(most, self.count)
        few = sum(comb(self.count, n) for n in range(1, most + 1)) <= FEW_SETS
        members: list[int] = []
        best, least = members, np.inf
        for n in range(1, most + 1):
            if few:
                sets = list(combinations(range(self.count), n))
                found = self.values(self._masks(sets))
                members = list(sets[self._first(found)])
            else:
                rest = [k for k in range(self.count) if k not in members]
                found = self.values(self._masks([[*members, k] for k in rest]))
                members = self._exchanged([*members, rest[self._first(found)]])
            value = self.values(self._masks([members]))[0]
            if self._below(value, least):
                best, least = members, value
        return best

    def _exchanged(self, members: list[int]) -> list[int]:
        if len(members) * self.count > FEW_EXCHANGES:
            return members
        value = self.values(self._masks([members]))[0]
        while True:
            rest = [k for k in range(self.count) if k not in members]
            pairs = [(place, k) for place in range(len(members)) for k in rest]
            if not pairs:
                return members
            found = self.values(self._masks([[*members[:i], k, *members[i + 1 :]] for i, k in pairs]))
            first = self._first(found)
            if not self._below(found[first], value):
                return members
            place, k = pairs[first]
            members = [*members[:place], k, *members[place + 1 :]]
            value = found[first]

    def _masks(self, sets: list[tuple[int, ...]] | list[list[int]]) -> Array:
        masks = np.zeros((len(sets), self.count), bool)
        np.put_along_axis(masks, np.array(sets, dtype=int), True, axis=1)
        return masks

    def _first(self, found: Array) -> int:
        least = found.min()
        self.unsure |= bool((np.abs(found - least - EQUAL) <= self._rounding(least)).any())
        return int(np.argmax(found <= least + EQUAL))

    def _below(self, value: float, least: float) -> bool:
        self.unsure |= bool(abs(value - least + EQUAL) <= self._rounding(value))
        return bool(value < least - EQUAL)

    def _rounding(self, value: float) -> float:
        return ROUNDING * (1 + abs(value))
