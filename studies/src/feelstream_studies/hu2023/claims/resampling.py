"""What is said of averaged curves: one number of all seeds, and how sure it is, from resamples of the seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from feelstream.studies.claims import Measured
from feelstream.studies.results import LEVEL, QUANTITIES, Interval, student, t_quantile

DRAWS = 2000
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Resampled:
    """A number of n seeds such as a distance between averaged curves, θ̂, and its values θ* in resamples of them.

    It is not a mean of numbers per seed, so seeds are drawn again instead: B times n of n with replacement, all arms of
    a seed together, since they share its world. Its bias is that of the resamples, so the number itself is
    2 θ̂ − mean θ*; its standard error is the deviation of θ* times √(n/(n − 1)), and intervals and tests are those of
    Student's t with n − 1 degrees of freedom.

    Reference: B. Efron, R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 6 and 10.
    """

    estimate: float
    draws: Reals  # (B,), none for a single seed
    n: int

    @property
    def mean(self) -> float:
        return 2 * self.estimate - float(self.draws.mean()) if self.n > 1 else self.estimate

    @property
    def error(self) -> float:
        return float(self.draws.std(ddof=1)) * sqrt(self.n / (self.n - 1))

    @property
    def interval(self) -> Interval:
        if self.n < 2:
            return Interval(self.mean, None, None, self.n)
        half = float(t_quantile(self.n, LEVEL)) * self.error
        return Interval(self.mean, self.mean - half, self.mean + half, self.n)

    @property
    def predicted(self) -> Interval:
        return self.interval

    def shifted(self, by: float) -> Resampled:
        return replace(self, estimate=self.estimate + by, draws=self.draws + by)

    def p_values(self, sign: int) -> tuple[float, float]:
        """One-sided, of sign·θ ≤ 0: by Student's t, and without a distribution, by the share of resamples, mirrored at
        θ̂, in which it is not above 0.
        """
        mirrored = sign * (2 * self.estimate - self.draws)
        share = float((1 + np.count_nonzero(mirrored <= 0)) / (1 + len(mirrored)))
        return student(sign * self.mean, self.error, self.n), share


def resampled(statistic: Callable[[Reals], float], values: Reals, draws: int = DRAWS) -> Resampled:
    """A statistic of the mean over seeds: values (n, …) → mean (…) → number. The draws are the same every time."""
    n = len(values)
    estimate = statistic(values.mean(axis=0))
    if n < 2:
        return Resampled(estimate, np.empty(0), n)
    counts = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), draws) / n
    means = np.tensordot(counts, values, axes=1)  # (B, …)
    return Resampled(estimate, np.array([statistic(mean) for mean in means]), n)


def averaged(
    measured: Measured, arms: Sequence[str], column: str, statistic: Callable[[Reals], float]
) -> Resampled | None:
    """A statistic of the averaged curves (arms, rounds) of some arms, in the unit of a gap, resampled by seed."""
    known = [each for arm in arms if (each := measured.series(arm, column)) is not None]
    if len(known) < len(arms) or any(not np.array_equal(each.rounds, known[0].rounds) for each in known):
        return None
    shared = [seed for seed in known[0].seeds if all(seed in each.seeds for each in known)]
    if not shared:
        return None
    rows = [each.values[[each.seeds.index(seed) for seed in shared]] for each in known]
    return resampled(statistic, QUANTITIES[column].scale * np.stack(rows, axis=1))
