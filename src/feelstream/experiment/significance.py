"""How sure a mean over seeds is of its sign: t and permutation tests, Holm's correction, verdicts, one further run.

All tests are on one number per seed, such as the difference of two arms that met the same world.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from feelstream.experiment.statistics import (
    HIGHER,
    LEVEL,
    LOWER,
    UNCLEAR,
    UNCLEAR_BY_HOLM,
    Interval,
    compare_arms,
    interval,
    one_per_seed,
    t_quantile,
)

EXACT = 40  # seeds up to which all sign flips are counted
FLIPS = 100_000  # random sign flips beyond that


def prediction(values: ArrayLike, level: float = LEVEL) -> Interval:
    """Where one further run falls with probability `level`: x̄ ± t_{n−1} s √(1 + 1/n); `mean` is x̄.

    A single published number comes from one run, or from a few; it is held against this, never against the interval
    of the mean, which shrinks to a point with ever more seeds. n < 2: no interval.
    """
    found = interval(values, level)
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
    which may not). runs: `comparison.per_run`.
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
