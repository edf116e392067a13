"""Which devices share the band: totals of sets, and the search for one that is better than the stored."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from feelstream.verification.findings import Array
from feelstream.verification.stretched import Stretched, alone_j, costs_at, totals_of

# Both sides find the optimum by a root search, which leaves differences near 1e-9 in what is flat around it.
OPTIMAL = 1e-6
MOST_SUBSETS = 200
MOST_PRICES = 5


@dataclass(frozen=True)
class Sets:
    """The choice of R rounds: exactly n [R] of the candidates [R, K] (all, where fewer), or at most n, not `fill`."""

    radio: Stretched
    worth: Array  # V·importance, [R, K]
    candidates: Array
    n: Array
    fill: bool

    def rows(self, which: Array) -> Sets:
        return Sets(self.radio.rows(which), self.worth[which], self.candidates[which], self.n[which], self.fill)

    def totals(self, chosen: Array, at: Array | None = None) -> tuple[Array, Array]:
        """(Σ w e − worth of each round's set [R], log of its price [R, 1]); 0 and NaN for the empty set.

        at: on which stretch of the law each device computes [R, K]; by default the best that are found.
        """
        total, log_price = np.zeros(len(chosen)), np.full((len(chosen), 1), np.nan)
        rows = np.flatnonzero(chosen.any(axis=1))
        if rows.size:
            index, member = members(chosen[rows])
            own = None if at is None else np.take_along_axis(at[rows], index, axis=1)
            energy, log_price[rows] = totals_of(self.radio.rows(rows).of(index), member, own)
            worth = np.take_along_axis(self.worth[rows], index, axis=1)
            total[rows] = energy - np.where(member, worth, 0.0).sum(axis=1)
        return total, log_price

    def lowest(self, score: Array) -> Array:
        """The allowed set of lowest scores. [R, K]"""
        order = np.argsort(np.where(self.candidates, score, np.inf), axis=1, kind="stable")
        rank = np.argsort(order, axis=1)
        chosen = self.candidates & (rank < self.n[:, None])
        return chosen if self.fill else chosen & (score < 0)

    def challenge(self, chosen: Array, total: Array, log_price: Array, beat: Array, slack: Array) -> Array:
        """The least total found [R], starting from known sets; a round is done when nothing can be below beat − slack.

        For any price μ, the lowest scores minus μ are a bound below every allowed total. From price to set to
        price, and at last through all subsets that the bound leaves in doubt, where they are few.
        """
        best = total.copy() if self.fill else np.minimum(total, 0.0)
        idle = np.flatnonzero(~chosen.any(axis=1) & self.candidates.any(axis=1) & (self.n > 0) & (not self.fill))
        if idle.size:  # sharing only costs more, so if no device pays alone, no set does
            alone = alone_j(self.radio.rows(idle)) - self.worth[idle]
            best[idle] = np.minimum(best[idle], np.where(self.candidates[idle], alone, np.inf).min(axis=1))
        open_rows = np.flatnonzero(chosen.any(axis=1))
        log_price = log_price.copy()
        for attempt in range(MOST_PRICES + 1):
            if open_rows.size == 0:
                break
            part = self.rows(open_rows)
            score = costs_at(part.radio, log_price[open_rows]) - part.worth
            rival = part.lowest(score)
            bound = np.where(rival, score, 0.0).sum(axis=1) - np.exp(log_price[open_rows, 0])
            doubt = (bound < beat[open_rows] - slack[open_rows]) & (
                best[open_rows] >= beat[open_rows] - slack[open_rows]
            )
            doubt &= rival.any(axis=1)
            open_rows, part, rival, score, bound = (
                open_rows[doubt],
                part.rows(doubt),
                rival[doubt],
                score[doubt],
                bound[doubt],
            )
            if attempt == MOST_PRICES:
                for i, r in enumerate(open_rows):
                    least = part.rows(np.array([i])).exhaust(score[i], rival[i], beat[r] - bound[i])
                    best[r] = min(best[r], least)
            elif open_rows.size:
                found, log_price[open_rows] = part.totals(rival)
                best[open_rows] = np.minimum(best[open_rows], found)
        return best

    def exhaust(self, score: Array, lowest: Array, room: float) -> float:
        """The least total of one round's subsets that the bound leaves in doubt, if they are few; else infinity."""
        candidates, n = self.candidates[0], int(min(self.n[0], self.candidates[0].sum()))
        entry = score[lowest].max() if lowest.sum() == n else 0.0
        outside = np.where(candidates & ~lowest, score, np.inf).min()
        replacement = outside if self.fill else min(outside, 0.0)
        certain = np.flatnonzero(lowest & (replacement - score > room))
        doubtful = np.flatnonzero(
            (lowest & (replacement - score <= room)) | (candidates & ~lowest & (score - entry <= room))
        )
        most = n - certain.size
        sizes = [most] if self.fill else range(most + 1)
        count = sum(comb(doubtful.size, k) for k in sizes)
        if count > MOST_SUBSETS:
            return np.inf
        chosen = np.zeros((count, score.size), dtype=bool)
        subsets = (subset for k in sizes for subset in combinations(doubtful.tolist(), k))
        for row, subset in zip(chosen, subsets, strict=True):
            row[[*certain.tolist(), *subset]] = True
        return float(self.rows(np.zeros(count, dtype=int)).totals(chosen)[0].min())


def members(chosen: Array) -> tuple[Array, Array]:
    """A mask [R, K] as device numbers [R, n] of the fullest round's width, and which of them count."""
    width = max(1, int(chosen.sum(axis=1).max(initial=0)))
    index = np.argsort(~chosen, axis=1, kind="stable")[:, :width]
    return index, np.take_along_axis(chosen, index, axis=1)
