"""How sure a mean over seeds is of its sign: t and permutation tests, Holm's correction, one further run.

All tests are on one number per seed, such as the difference of two arms that met the same world.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from feelstream.experiment.statistics import LEVEL, Interval, t_quantile

EXACT = 40  # seeds up to which all sign flips are counted
FLIPS = 100_000  # random sign flips beyond that


@dataclass(frozen=True)
class Spread:
    """A standard deviation between runs, and how many degrees of freedom it is known with."""

    s: float
    freedom: int


def pooled_spread(samples: Iterable[ArrayLike]) -> Spread | None:
    """s² = Σ_i Σ_j (x_ij − x̄_i)² / Σ_i (n_i − 1) of samples with one spread; None if no n_i > 1."""
    arrays = [_one_per_seed(values) for values in samples]
    freedom = sum(len(x) - 1 for x in arrays if len(x))
    if not freedom:
        return None
    return Spread(sqrt(sum(float(((x - x.mean()) ** 2).sum()) for x in arrays if len(x)) / freedom), freedom)


def prediction(values: ArrayLike, level: float = LEVEL, spread: Spread | None = None) -> Interval:
    """Where one further run falls with probability `level`: x̄ ± t_{n−1} s √(1 + 1/n); `mean` is x̄.

    A single published number comes from one run, or from a few; it is held against this, never against the interval
    of the mean, which shrinks to a point with ever more seeds. spread: a better known s, if there is one, with t of its
    degrees of freedom. n < 2: no interval.
    """
    x = _one_per_seed(values)
    n = len(x)
    if n < 2:
        return Interval(float(x[0]) if n else float("nan"), None, None, n)
    known = spread or Spread(float(x.std(ddof=1)), n - 1)
    half = float(t_quantile(known.freedom + 1, level)) * known.s * sqrt(1 + 1 / n)
    mean = float(x.mean())
    return Interval(mean, mean - half, mean + half, n)


def one_sided_p(values: ArrayLike) -> float | None:
    """One-sided p value of the t-test of mean ≤ 0 against mean > 0; None for fewer than two values.

    All values equal: 0 where they are above 0, 1 where they are below, ½ where they are 0.
    """
    from scipy.special import stdtr  # here: slow to import, and not every command tests anything

    x = _one_per_seed(values)
    if len(x) < 2:
        return None
    mean, s = float(x.mean()), float(x.std(ddof=1))
    if s <= 1e-12 * abs(mean) or s == 0:  # no spread but rounding
        return 0.5 if mean == 0 else float(mean < 0)
    return float(stdtr(len(x) - 1, -mean / (s / sqrt(len(x)))))


def sign_flip(values: ArrayLike) -> float | None:
    """One-sided p value of mean ≤ 0 against mean > 0 by sign flips: the share of all 2ⁿ sums Σ ±x_i that are ≥ Σ x_i.

    It assumes no normal distribution, only that a difference and its opposite are equally likely if there is no
    effect. Its least value is 2⁻ⁿ, so with four seeds it can never fall below 5 % / 2. Exact up to EXACT seeds (sums
    of halves, sorted: 0.3 ms for 20 seeds, where scipy.stats.permutation_test, which lists all flips, takes 20 s);
    beyond, FLIPS random flips, of which the observed one counts as one more. None for fewer than two values.

    Reference: R. A. Fisher, "The Design of Experiments", 1935, section 21.
    """
    x = _one_per_seed(values)
    n = len(x)
    if n < 2:
        return None
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


def _one_per_seed(values: ArrayLike) -> NDArray[np.float64]:
    x = np.asarray(values, float)
    if x.ndim != 1 or not np.isfinite(x).all():
        raise ValueError("a test needs one finite number per seed")
    return x


def _signed_sums(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """All 2ⁿ sums Σ ±x_i."""
    sums = np.zeros(1)
    for value in x:
        sums = np.concatenate([sums - value, sums + value])
    return sums
