"""What speaks for a claim: a number per seed, or one of all seeds together, and how sure it is to be above 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from feelstream.arrays import Reals
from feelstream.experiment.significance import one_sided_p, prediction, sign_flip, student
from feelstream.experiment.statistics import LEVEL, Interval, interval, t_quantile

DRAWS = 2000


class Paired:
    """A number per seed, tested by Student's t and by sign flips."""

    def __init__(self, values: Iterable[float]) -> None:
        self.values = list(values)
        self.interval, self.predicted = interval(self.values), prediction(self.values)

    def shifted(self, by: float) -> Paired:
        return Paired(value + by for value in self.values)

    def p_values(self, sign: int) -> tuple[float, float]:
        """One-sided, of sign·mean ≤ 0: by Student's t, and by sign flips."""
        values = [sign * value for value in self.values]
        return one_sided_p(values), sign_flip(values)


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
