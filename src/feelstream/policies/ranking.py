"""What devices are ranked by, and who is chosen: one by one, or as many as fit a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Flags, Ids, Reals
from feelstream.model.system import System

if TYPE_CHECKING:
    from feelstream.policies.base import Observation, RoundPlan


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
        refusal: Why the device, if it is not ranked, was no candidate, as half a sentence; empty: no reason is known.
    """

    terms: tuple[Term, ...]
    optional: bool = False
    refusal: str = ""

    @property
    def total(self) -> Reals:
        """(K,) NaN for those that were no candidates."""
        return np.sum([term.values for term in self.terms], axis=0)


def importance_terms(
    observation: Observation, metric: str, plan: RoundPlan, candidates: Flags, V: float
) -> tuple[Term, ...]:
    """−V·I of the candidates, part by part; for infinite V, to which nothing but importance matters, −I."""
    blind = np.isinf(V)
    if metric == "combined":
        factor = observation.priority * (1.0 if observation.reliability is None else observation.reliability)
        parts = {"amount": factor * plan.amount, "dissimilarity": factor * observation.dissimilarity}
    else:
        name = metric if metric in ("amount", "dissimilarity") else "importance"
        parts = {name: observation.importance(metric, plan)}
    return tuple(
        Term(name if blind else f"{name} V·I", np.where(candidates, -part if blind else -V * part, np.nan), True)
        for name, part in parts.items()
    )


def lowest(score: Reals, candidates: NDArray[np.bool_], n: int, rng: np.random.Generator) -> Ids:
    """The n candidates with the lowest scores (all, where there are fewer); ties at the cut are broken at random.

    Of many devices most are sifted out first: a cut is guessed from every 16th score, and if n scores do not exceed
    it, then neither do the n lowest.
    """
    if n == 0 or np.count_nonzero(candidates) <= n:
        return np.flatnonzero(candidates)[:n]
    if len(score) > 100 * n:
        sample = np.where(candidates[::16], score[::16], np.inf)
        place = min(n // 8 + 8, len(sample) - 1)
        guess = np.partition(sample, place)[place]
        low = (score <= guess) & candidates
        if guess < np.inf and np.count_nonzero(low) >= n:
            candidates = low
    ids = np.flatnonzero(candidates)
    scores = score[ids]
    cut = np.partition(scores, n - 1)[n - 1]
    certain, tied = ids[scores < cut], ids[scores == cut]
    drawn = rng.permutation(tied)[: n - len(certain)] if len(certain) + len(tied) > n else tied
    return np.sort(np.concatenate([certain, drawn]))


def pack(observation: Observation, candidates: Flags, most: int) -> Ids:
    """The largest set of at most `most` candidates that meets the deadline when all of it shares the band.

        n* = max {n ≤ most : n candidates have c/f_k + T~(n) ≤ T_k},      the n* with the least c/f_k − T_k

    As T~(n) grows with n, what holds for n holds for every smaller n, so n* is found by halving. Devices that
    are not available never count. Returns device numbers in ascending order; none where not even one fits.
    """
    system = observation.system
    ids = np.flatnonzero(candidates & observation.available)
    computing_s, time_s = observation.compute_time_s[ids], system.time_s[ids]
    order = np.argsort(computing_s - time_s if system.deadlines_differ else computing_s, kind="stable")
    fastest, computing_s, time_s = ids[order], computing_s[order], time_s[order]
    fits, fails = 0, min(most, len(fastest)) + 1
    while fails - fits > 1:
        n = (fits + fails) // 2
        if (computing_s[:n] + system.surrogate_time_s(n) <= time_s[:n]).all():
            fits = n
        else:
            fails = n
    return np.sort(fastest[:fits])


def left_j(system: System, round: int, spent_j: Reals) -> Reals:
    """(K,) what is left of the budget of this many rounds, J: below 0 where more was spent."""
    return round * system.energy_budget_j - spent_j


def mean_over_samples(values: Reals) -> Reals:
    """(n,) the mean of what (n, steps, batch) says of the samples that are there; NaN where none is.

    >>> mean_over_samples(np.array([[[1.0, 3.0], [2.0, np.nan]]]))
    array([2.])
    """
    absent = np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(absent, 0.0, values).sum(axis=(1, 2)) / (~absent).sum(axis=(1, 2))
