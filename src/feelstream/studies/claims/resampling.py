"""A number of all seeds together, such as a distance between averaged curves, and how sure it is by a bootstrap.

Such a number is not a mean of numbers per seed, so seeds are drawn again instead: B times n of n with replacement, all
configurations of a seed together, since they share its world.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import sqrt

import numpy as np
from scipy.special import stdtr

from feelstream.arrays import Reals
from feelstream.experiment.statistics import LEVEL, Interval, t_quantile

DRAWS = 2000


@dataclass(frozen=True)
class Resampled:
    """A number of n seeds, θ̂, and its values θ* in resamples of them.

    Its bias is that of the resamples, so the number itself is 2 θ̂ − mean θ*; its standard error is the deviation of θ*
    times √(n/(n − 1)), and intervals and tests are those of Student's t with n − 1 degrees of freedom.

    Reference: B. Efron, R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 6 and 10.
    """

    estimate: float
    draws: Reals  # (B,)
    n: int
    pseudo_values: Reals = field(default_factory=lambda: np.empty(0))  # (n,) of the jackknife, n θ̂ − (n − 1) θ̂₍ᵢ₎
    seeds: tuple[int, ...] = ()

    @property
    def mean(self) -> float:
        return 2 * self.estimate - float(self.draws.mean()) if self.n > 1 else self.estimate

    @property
    def error(self) -> float:
        return float(self.draws.std(ddof=1)) * sqrt(self.n / (self.n - 1))

    def shifted(self, by: float) -> Resampled:
        return replace(self, estimate=self.estimate + by, draws=self.draws + by, pseudo_values=self.pseudo_values + by)

    @property
    def per_seed(self) -> dict[int, float]:
        """A number for each seed whose mean estimates θ, for what needs one: Tukey's pseudo-values."""
        return dict(zip(self.seeds, self.pseudo_values.tolist(), strict=True))

    @property
    def interval(self) -> Interval:
        if self.n < 2:
            return Interval(self.mean, None, None, self.n)
        half = float(t_quantile(self.n, LEVEL)) * self.error
        return Interval(self.mean, self.mean - half, self.mean + half, self.n)

    def one_sided(self, sign: int = 1) -> float | None:
        """p value of sign·θ ≤ 0 against sign·θ > 0; None for fewer than two seeds."""
        if self.n < 2:
            return None
        if self.error == 0:
            return 0.5 if self.mean == 0 else float(sign * self.mean < 0)
        return float(stdtr(self.n - 1, -sign * self.mean / self.error))

    def share(self, sign: int = 1) -> float | None:
        """The same without a distribution: the share of resamples, mirrored at θ̂, in which it is not above 0."""
        if self.n < 2:
            return None
        mirrored = sign * (2 * self.estimate - self.draws)
        return float((1 + np.count_nonzero(mirrored <= 0)) / (1 + len(mirrored)))


def resampled(
    statistic: Callable[[Reals], float], values: Reals, draws: int = DRAWS, seeds: tuple[int, ...] = ()
) -> Resampled:
    """A statistic of the mean over seeds: values (n, …) → mean (…) → number. The draws are the same every time."""
    n = len(values)
    rng = np.random.default_rng(0)
    whole = values.mean(axis=0)
    estimate = statistic(whole)
    if n < 2:
        return Resampled(estimate, np.empty(0), n, np.array([estimate]), seeds)
    counts = rng.multinomial(n, np.full(n, 1 / n), draws) / n
    means = np.tensordot(counts, values, axes=1)  # (B, …)
    without = [statistic((n * whole - own) / (n - 1)) for own in values]
    pseudo = n * estimate - (n - 1) * np.array(without)
    return Resampled(estimate, np.array([statistic(mean) for mean in means]), n, pseudo, seeds)
