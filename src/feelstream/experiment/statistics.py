"""Honest comparisons: paired by seed, with intervals, no verdict without one, and corrected for how many there are.

With the same seed every arm receives the same world, so arms are compared by their differences seed by seed, one number
per seed. The one test used throughout is the two-sided paired t-test at 5 %: an arm is called higher or lower where the
95 % interval of the mean difference excludes 0, which is the same thing. Claims are tested by sign flips as well.
Intervals assume that the means over seeds are about normal. The distributions are those of scipy.special: scipy.stats,
built on them, gives the same intervals and p values to rounding, but takes most of a second to import and a millisecond
a call, of which a comparison makes hundreds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

TEST = "two-sided paired t-test at 5 %"
LEVEL = 0.95
HIGHER, LOWER = "higher", "lower"
UNCLEAR = "unclear"
UNCLEAR_BY_HOLM = "unclear after Holm's correction"  # where the interval, of this one difference, excludes 0
ONE_SEED = "one seed: no interval"
FEW_SEEDS = "fewer than 5 seeds: no verdict"
NO_SPREAD = "no spread between seeds: no verdict"
LEAST_SEEDS = 5  # for a verdict
NO_SEED = "no seed in common"
CENSORED = "not every run reached it: no verdict"
EXACT = 40  # seeds up to which all sign flips are counted
FLIPS = 100_000  # random sign flips beyond that


@dataclass(frozen=True)
class Interval:
    """A mean over n seeds and its confidence interval; low and high are None where n < 2, mean is NaN where n = 0."""

    mean: float
    low: float | None
    high: float | None
    n: int

    @property
    def half_width(self) -> float | None:
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def verdict(self) -> str:
        """What may be said of a difference: higher, lower, unclear, or why nothing may be said.

        Nothing is said of fewer than LEAST_SEEDS seeds, nor where all have one difference: an interval of width 0
        claims a certainty that no number of seeds can give. A difference of exactly 0 is unclear.
        """
        if self.low is None or self.high is None:
            return ONE_SEED if self.n else NO_SEED
        if self.n < LEAST_SEEDS:
            return FEW_SEEDS
        if self.low == self.high == 0:
            return UNCLEAR
        if self.high - self.low <= 1e-12 * abs(self.mean):  # nothing but rounding
            return NO_SPREAD
        if self.low > 0:
            return HIGHER
        return LOWER if self.high < 0 else UNCLEAR


def interval(values: ArrayLike, level: float = LEVEL) -> Interval:
    """x̄ ± t_{n−1} s/√n, t_{n−1} the (1+level)/2 quantile of Student's distribution; one value per seed.

    n = 1: no interval. All values equal: the interval is that point.
    """
    x = one_per_seed(values)
    n = len(x)
    if n < 2:
        return Interval(float(x[0]) if n else float("nan"), None, None, n)
    mean = float(x.mean())
    half = 0.0 if (x == x[0]).all() else float(t_quantile(n, level) * x.std(ddof=1) / sqrt(n))
    return Interval(mean, mean - half, mean + half, n)


def one_per_seed(values: ArrayLike) -> NDArray[np.float64]:
    """As an array; ValueError for anything else."""
    x = np.asarray(values, float)
    if x.ndim != 1 or not np.isfinite(x).all():
        raise ValueError("intervals and tests need one finite number per seed")
    return x


def t_quantile(n: ArrayLike, level: float = LEVEL) -> np.ndarray:
    """The factor on s/√n: the (1+level)/2 quantile of Student's t with n − 1 degrees of freedom."""
    from scipy.special import stdtrit  # here: slow to import, and a run alone has no interval

    return np.asarray(stdtrit(np.asarray(n, float) - 1, (1 + level) / 2))


def compare_arms(runs: pl.DataFrame, column: str, arm: str, reference: str) -> Interval:
    """arm − reference of a column of `runs.per_run`, over the seeds that both have."""
    pairs = (
        runs.filter(arm=arm)
        .select("seed", a=column)
        .join(runs.filter(arm=reference).select("seed", b=column), on="seed")
        .drop_nulls()
        .sort("seed")
    )
    return interval(pairs["a"] - pairs["b"])


def band_by_round(rounds: pl.DataFrame, column: str) -> pl.DataFrame:
    """Columns arm, round, mean, low, high, n: the interval over seeds of `column` in each round, arms in their order.

    Rounds without a value (not evaluated) are left out; low and high are null where n = 1.
    """
    table = (
        rounds.drop_nulls(column)
        .group_by("arm", "round", maintain_order=True)
        .agg(mean=pl.col(column).mean(), s=pl.col(column).std(), n=pl.len().cast(pl.Int64))
    )
    n = table["n"].to_numpy()
    half = np.where(n > 1, t_quantile(np.maximum(n, 2)) / np.sqrt(n), np.nan)
    margin = pl.col("s") * pl.Series("half", half, nan_to_null=True)
    return table.select(
        "arm", "round", "mean", (pl.col("mean") - margin).alias("low"), (pl.col("mean") + margin).alias("high"), "n"
    )


def censored_median(values: ArrayLike, reached: ArrayLike) -> tuple[float, bool]:
    """Median of values of which some are only known to be larger than they are given; whether it is a lower bound.

    reached: which values are exact. The others count as larger than all, since x ≥ r gives median(x) ≥ median(r) where
    that leaves no number.

    >>> censored_median([10, 12, 40], [True, True, False]), censored_median([10, 40, 40], [True, False, False])
    ((12.0, False), (40.0, True))
    """
    x, known = np.asarray(values, float), np.asarray(reached, bool)
    middle = float(np.median(np.where(known, x, np.inf)))
    return (float(np.median(x)), True) if np.isinf(middle) else (middle, False)


def pareto_front(cost: ArrayLike, gain: ArrayLike) -> np.ndarray:
    """Which points no other one dominates: bool (n,). Dominated: by one with cost ≤ and gain ≥, not both equal."""
    x, y = np.asarray(cost, float), np.asarray(gain, float)
    no_worse = (x[:, None] <= x) & (y[:, None] >= y)  # [i, j]: i is as good as j in both
    better = (x[:, None] < x) | (y[:, None] > y)
    return np.logical_not((no_worse & better).any(axis=0))


def prediction(values: ArrayLike) -> Interval:
    """Where one further run falls with probability LEVEL: x̄ ± t_{n−1} s √(1 + 1/n); `mean` is x̄.

    A single published number comes from one run, or from a few; it is held against this, never against the interval
    of the mean, which shrinks to a point with ever more seeds. n < 2: no interval.
    """
    found = interval(values)
    if found.half_width is None:
        return found
    half = found.half_width * sqrt(found.n + 1)
    return Interval(found.mean, found.mean - half, found.mean + half, found.n)


def one_sided_p(values: ArrayLike) -> float:
    """One-sided p value of the t-test of mean ≤ 0 against mean > 0, for two values or more.

    All values equal: 0 where they are above 0, 1 where they are below, ½ where they are 0.
    """
    x = one_per_seed(values)
    mean, s = float(x.mean()), float(x.std(ddof=1))
    return student(mean, 0.0 if s <= 1e-12 * abs(mean) else s / sqrt(len(x)), len(x))  # no spread but rounding


def student(mean: float, error: float, n: int) -> float:
    """One-sided p value of a mean ≤ 0 from its standard error over n values; without one the sign decides."""
    from scipy.special import stdtr  # here: slow to import, and not every command tests anything

    return float(stdtr(n - 1, -mean / error)) if error else 0.5 if mean == 0 else float(mean < 0)


def sign_flip(values: ArrayLike) -> float:
    """One-sided p value of mean ≤ 0 against mean > 0 by sign flips: the share of all 2ⁿ sums Σ ±x_i that are ≥ Σ x_i.

    It assumes no normal distribution, only that a difference and its opposite are equally likely if there is no
    effect. Its least value is 2⁻ⁿ, so with four seeds it can never fall below 5 % / 2. Exact up to EXACT seeds (sums
    of halves, sorted: 0.3 ms for 20 seeds, where scipy.stats.permutation_test, which lists all flips, takes 20 s);
    beyond, FLIPS random flips, of which the observed one counts as one more.

    Reference: R. A. Fisher, "The Design of Experiments", 1935, section 21.
    """
    x = one_per_seed(values)
    n = len(x)
    least = x.sum() - 1e-9 * np.abs(x).sum()  # ties count, whatever the rounding
    if n > EXACT:
        rng = np.random.default_rng(0)
        signs = 2 * rng.integers(0, 2, (FLIPS, n), dtype=np.int8) - 1
        return float((1 + np.count_nonzero(signs @ x >= least)) / (1 + FLIPS))
    one, other = _signed_sums(x[: n // 2]), np.sort(_signed_sums(x[n // 2 :]))
    reached = len(other) - np.searchsorted(other, least - one)
    return float(reached.sum() / 2.0**n)


def two_sided(more: float, less: float) -> float:
    """min(1, 2 min(p, p′)) of the two one-sided p values."""
    return min(1.0, 2 * min(more, less))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's adjusted p values: with p₍₁₎ ≤ … ≤ p₍ₘ₎, p̃₍ᵢ₎ = max_{j≤i} min(1, (m − j + 1) p₍ⱼ₎).

    Rejecting where p̃ ≤ α errs in any of the m tests with probability at most α, whatever their dependence.

    >>> [round(value, 3) for value in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]

    Reference: S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scand. J. Statist. 6, 1979.
    """
    values = np.asarray(p, float)
    order = np.argsort(values, kind="stable")
    scaled = np.minimum(1.0, (len(values) - np.arange(len(values))) * values[order])
    adjusted = np.empty_like(values)
    adjusted[order] = np.maximum.accumulate(scaled)
    return adjusted.tolist()


def compared(runs: pl.DataFrame, quantity: str, reference: str, arms: Sequence[str]) -> dict[str, tuple[Interval, str]]:
    """Of each arm its difference from a reference, and a verdict: higher, lower, unclear, or why none is given.

    Two-sided paired t-tests at 5 % with Holm's correction over all arms that may be judged (`Interval.verdict` says
    which may not). runs: `runs.per_run`.
    """
    gaps = {arm: compare_arms(runs, quantity, arm, reference) for arm in arms if arm != reference}
    said = {arm: gap.verdict for arm, gap in gaps.items()}
    judged = [arm for arm, verdict in said.items() if verdict in (HIGHER, LOWER, UNCLEAR)]
    for arm, p in zip(judged, holm([_p_value(gaps[arm]) for arm in judged]), strict=True):
        if said[arm] != UNCLEAR and p > 1 - LEVEL:
            said[arm] = UNCLEAR_BY_HOLM
    return {arm: (gap, said[arm]) for arm, gap in gaps.items()}


def _p_value(gap: Interval) -> float:
    """Of the two-sided t-test whose 95 % interval this is: the interval says mean, standard error and n."""
    half = gap.half_width
    return 2 * student(abs(gap.mean), half / float(t_quantile(gap.n)), gap.n) if half else 1.0


def _signed_sums(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """All 2ⁿ sums Σ ±x_i."""
    sums = np.zeros(1)
    for value in x:
        sums = np.concatenate([sums - value, sums + value])
    return sums
