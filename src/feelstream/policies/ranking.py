"""What devices are ranked by, and who is chosen by it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Ids, Reals


@dataclass(frozen=True)
class Term:
    """A part of what devices are ranked by.

    Attributes:
        name: As explanations call it.
        values: (K,) as they add up; NaN for those that were no candidates.
        subtracted: Whether it is shown with the other sign, as V·I in Q·E − V·I.
    """

    name: str
    values: Reals
    subtracted: bool = False


@dataclass(frozen=True)
class Ranking:
    """What a device was ranked by, and against whom: the sum of the terms, least first.

    Where the rule judges sets, the rest of the set is given, and the terms say what each candidate would add to it.

    Attributes:
        terms: What adds up.
        optional: Whether a place may stay empty: nobody is then ranked at 0.
    """

    terms: tuple[Term, ...]
    optional: bool = False

    @property
    def total(self) -> Reals:
        """(K,) NaN for those that were no candidates."""
        return np.sum([term.values for term in self.terms], axis=0)


def lowest(score: Reals, candidates: NDArray[np.bool_], n: int, rng: np.random.Generator) -> Ids:
    """The n candidates with the lowest scores (all, where there are fewer); ties at the cut are broken at random."""
    if n == 0 or np.count_nonzero(candidates) <= n:
        return np.flatnonzero(candidates)[:n]
    ids = _low_ones(score, candidates, n)
    scores = score[ids]
    cut = np.partition(scores, n - 1)[n - 1]
    certain, tied = ids[scores < cut], ids[scores == cut]
    drawn = rng.permutation(tied)[: n - len(certain)] if len(certain) + len(tied) > n else tied
    return np.sort(np.concatenate([certain, drawn]))


def _low_ones(score: Reals, candidates: NDArray[np.bool_], n: int) -> Ids:
    """Candidates that are sure to include the n lowest and all that tie with them; few, where there are many to sift.

    A cut is guessed from every 16th score. If n scores do not exceed it, then neither do the n lowest.
    """
    if len(score) > 100 * n:
        sample = np.where(candidates[::16], score[::16], np.inf)
        place = min(n // 8 + 8, len(sample) - 1)
        guess = np.partition(sample, place)[place]
        low = np.flatnonzero((score <= guess) & candidates)
        if guess < np.inf and len(low) >= n:
            return low
    return np.flatnonzero(candidates)
