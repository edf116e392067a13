"""Honest comparisons: paired by seed, with intervals, and no verdict without one.

With the same seed every arm receives the same world, so arms are compared by their differences seed by seed. The one
test used throughout is the two-sided paired t-test at 5 %: an arm is called higher or lower where the 95 % interval of
the mean difference excludes 0, which is the same thing. Intervals assume that the means over seeds are about normal.
The distributions are those of scipy.special: scipy.stats, built on them, gives the same intervals and p values to
rounding, but takes most of a second to import and a millisecond a call, of which a comparison makes hundreds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from feelstream.arrays import Reals
from feelstream.columns import REACHED
from feelstream.display.quantities import measures

TEST = "two-sided paired t-test at 5 %"
LEVEL = 0.95
HIGHER, LOWER = "higher", "lower"
UNCLEAR = "unclear"
UNCLEAR_BY_HOLM = "unclear after Holm's correction"  # where the interval, of this one difference, excludes 0
ONE_SEED = "one seed: no interval"
FEW_SEEDS = "fewer than 5 seeds: no verdict"
NO_SPREAD = "no spread between seeds: no verdict"
LEAST_SEEDS = 5  # for a verdict
LATE = 0.2  # of the run: the window at its end over which accuracy is averaged
NO_SEED = "no seed in common"
CENSORED = "not every run reached it: no verdict"


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


def paired_difference(a: ArrayLike, b: ArrayLike, level: float = LEVEL) -> Interval:
    """Interval of the mean of a − b; entry i of both belongs to the same seed."""
    x, y = np.asarray(a, float), np.asarray(b, float)
    if x.shape != y.shape:
        raise ValueError(f"pairs need as many values on both sides, not {x.shape} and {y.shape}")
    return interval(x - y, level)


def t_quantile(n: ArrayLike, level: float = LEVEL) -> np.ndarray:
    """The factor on s/√n: the (1+level)/2 quantile of Student's t with n − 1 degrees of freedom."""
    from scipy.special import stdtrit  # here: slow to import, and a run alone has no interval

    return np.asarray(stdtrit(np.asarray(n, float) - 1, (1 + level) / 2))


def compare_arms(runs: pl.DataFrame, column: str, arm: str, reference: str, level: float = LEVEL) -> Interval:
    """arm − reference of a column of `per_run`, over the seeds that both have."""
    pairs = (
        runs.filter(arm=arm)
        .select("seed", a=column)
        .join(runs.filter(arm=reference).select("seed", b=column), on="seed")
        .drop_nulls()
        .sort("seed")
    )
    return paired_difference(pairs["a"], pairs["b"], level)


def band_by_round(rounds: pl.DataFrame, column: str, level: float = LEVEL) -> pl.DataFrame:
    """Columns arm, round, mean, low, high, n: the interval over seeds of `column` in each round, arms in their order.

    Rounds without a value (not evaluated) are left out; low and high are null where n = 1.
    """
    table = (
        rounds.drop_nulls(column)
        .group_by("arm", "round", maintain_order=True)
        .agg(mean=pl.col(column).mean(), s=pl.col(column).std(), n=pl.len().cast(pl.Int64))
    )
    n = table["n"].to_numpy()
    half = np.where(n > 1, t_quantile(np.maximum(n, 2), level) / np.sqrt(n), np.nan)
    margin = pl.col("s") * pl.Series("half", half, nan_to_null=True)
    return table.select(
        "arm", "round", "mean", (pl.col("mean") - margin).alias("low"), (pl.col("mean") + margin).alias("high"), "n"
    )


def per_run(rounds: pl.DataFrame) -> pl.DataFrame:
    """One row per arm and seed: arm, seed and the numbers below.

    late_accuracy, the mean accuracy over the last fifth of the run; final_accuracy, final_loss; accuracy_area,
    `normalised_auc` of the accuracy curve; energy_j per device and round, averaged over the run; queue_j, the mean
    queue at the end; drops, the share of all scheduled that was
    then not admitted, Σ|Π*∖Π̄| / Σ|Π*|; rounds_to_80, joules_to_80 and the same for 90 %: until that was reached, or
    the whole run where it was not, in which case reached_80 is 0 and not 1: such a value is censored, and no mean is
    made of it. Those about learning are null where nothing was learned. For every number of an evaluator late_NAME,
    its mean over the last fifth, and final_NAME, null where it was not measured.
    """
    measured = [quantity.name for quantity in measures(rounds.columns)]
    last, accuracy, learned = pl.col("round").last(), pl.col("accuracy"), pl.col("accuracy").is_not_null().any()
    scheduled, sent = (pl.col(name).cast(pl.Int64).sum() for name in ("scheduled", "transmitted"))
    numbers = {
        "late_accuracy": _late("accuracy"),
        "final_accuracy": accuracy.last(),
        "accuracy_area": _area(pl.col("round").filter(accuracy.is_not_null()), accuracy.drop_nulls()),
        "final_loss": pl.col("loss").last(),
        "energy_j": pl.col("energy_mean_cum_j").last(),
        "queue_j": pl.col("queue_mean_j").last(),
        "drops": pl.when(scheduled > 0).then((scheduled - sent) / scheduled),
    }
    for percent in REACHED:
        when = pl.col("round").filter(accuracy >= percent / 100).first()
        until = pl.coalesce(when, last)
        spent_j = pl.col("energy_mean_j").filter(pl.col("round") <= until).sum()
        about = {"rounds_to": until, "joules_to": spent_j, "reached": when.is_not_null()}
        numbers |= {f"{what}_{percent}": pl.when(learned).then(number) for what, number in about.items()}
    for name in measured:
        numbers |= {f"late_{name}": _late(name), f"final_{name}": pl.col(name).last()}
    shown = {name: number.cast(pl.Float64) for name, number in numbers.items()}
    return rounds.group_by("arm", "seed", maintain_order=True).agg(**shown)


def _late(name: str) -> pl.Expr:
    """Mean over the tests of the last fifth of the run, at least the last one: one test alone is noisy."""
    in_time = pl.col("round") > (1 - LATE) * pl.col("round").last()
    return pl.coalesce(pl.col(name).filter(in_time).mean(), pl.col(name).drop_nulls().last())


def _area(x: pl.Expr, y: pl.Expr) -> pl.Expr:
    """`normalised_auc`, run by run; null where there is no point."""
    area = ((y + y.shift(1)) / 2 * x.diff()).sum()
    return pl.when(x.len() > 1).then(area / (x.last() - x.first())).otherwise(y.last())


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


def normalised_auc(x: ArrayLike, y: ArrayLike) -> float:
    """Area under the curve over its length: ∫ y dx / (x_last − x_first) by trapezes, in the unit of y.

    One point: its height.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    return float(y[0]) if len(y) == 1 else float(np.trapezoid(y, x) / (x[-1] - x[0]))


def jain_index(shares: ArrayLike | Sequence[float]) -> float:
    """Fairness (Σx)² / (n Σx²): 1 where all x ≥ 0 are equal, 1/n where one has it all. All 0: 1.

    Reference: R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and Discrimination", DEC-TR-301, 1984.
    """
    x = np.asarray(shares, float)
    if len(x) == 0 or (x < 0).any():
        raise ValueError("fairness needs at least one share, and none below 0")
    x = x / (x.max() or 1.0)  # no overflow, no underflow
    return float(x.sum() ** 2 / (len(x) * (x**2).sum())) if x.any() else 1.0


def pareto_front(cost: ArrayLike, gain: ArrayLike) -> np.ndarray:
    """Which points no other one dominates: bool (n,). Dominated: by one with cost ≤ and gain ≥, not both equal."""
    x, y = np.asarray(cost, float), np.asarray(gain, float)
    no_worse = (x[:, None] <= x) & (y[:, None] >= y)  # [i, j]: i is as good as j in both
    better = (x[:, None] < x) | (y[:, None] > y)
    return np.logical_not((no_worse & better).any(axis=0))


Span = Literal["final", "mean", "early", "late", "end"]

SPANS: dict[Span, str] = {
    "final": "after the last round",
    "mean": "mean over the rounds (area under the curve)",
    "early": "mean over the first third",
    "late": "mean over the last third",
    "end": "mean over the last tenth",
}


@dataclass(frozen=True)
class Series:
    """One arm's values of one quantity: a row per seed, a column per round where it is known."""

    seeds: tuple[int, ...]
    rounds: NDArray[np.int64]  # (R,)
    values: Reals  # (seeds, R)

    def over(self, span: Span) -> dict[int, float]:
        """The number of each seed: the last value, or the mean over a part of the run.

        With T the last round: early is rounds ≤ T/3, late is rounds > 2T/3, end is rounds > 9T/10. A part in which no
        round was evaluated takes the evaluated round nearest to it; the last one always is.
        """
        last = self.rounds[-1]
        if span == "final":
            part = self.rounds == last
        elif span == "mean":
            return {seed: normalised_auc(self.rounds, row) for seed, row in zip(self.seeds, self.values, strict=True)}
        elif span == "early":
            part = self.rounds * 3 <= last
            part = part if part.any() else self.rounds == self.rounds[0]
        else:
            part = self.rounds * 3 > 2 * last if span == "late" else self.rounds * 10 > 9 * last
        means = self.values[:, part].mean(axis=1)
        return dict(zip(self.seeds, means.tolist(), strict=True))


def series(rounds: pl.DataFrame, arm: str, column: str) -> Series | None:
    """One arm's series from the rows of all runs; None where the quantity was never measured."""
    rows = rounds.filter((pl.col("arm") == arm) & pl.col(column).is_not_null()).select("seed", "round", column)
    if rows.is_empty():
        return None
    # Seeds of an arm share its scenario, so they were evaluated in the same rounds.
    table = rows.sort("seed", "round").pivot(on="round", index="seed", values=column).drop_nulls()
    if table.is_empty():
        return None
    names = table.columns[1:]
    return Series(
        tuple(table["seed"].to_list()),
        np.array([int(name) for name in names]),
        table.select(names).to_numpy().astype(np.float64),
    )
