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
ONE_SEED = "one seed: no interval"
FEW_SEEDS = "fewer than 5 seeds: no verdict"
NO_SPREAD = "no spread between seeds: no verdict"
LEAST_SEEDS = 5  # for a verdict
LATE = 0.2  # of the run: the window at its end over which accuracy is averaged
NO_SEED = "no seed in common"
CENSORED = "not every run reached it: no verdict"
PER_RUN = (
    *("late_accuracy", "final_accuracy", "accuracy_area", "final_loss", "energy_j", "queue_j", "drops"),
    *(f"{what}{percent}" for percent in REACHED for what in ("rounds_to_", "joules_to_", "reached_")),
)


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
    runs = rounds.with_row_index("row").group_by("arm", "seed", maintain_order=True).agg("row")
    rounds = rounds[runs["row"].explode().to_numpy()] if len(runs) else rounds  # each run's rows below each other
    lengths = runs["row"].list.len().to_numpy().astype(np.int64)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    final = rounds[ends - 1].rows(named=True) if len(runs) else []
    tested = {name: _Tests.of(rounds, name).by_run(starts, ends) for name in ("accuracy", *measured)}
    counts = [
        np.add.reduceat(rounds[name].cast(pl.Int64).to_numpy(), starts).tolist() if len(runs) else []
        for name in ("scheduled", "transmitted")
    ]
    rows = []
    for run, (start, end, last, scheduled, sent) in enumerate(
        zip(starts.tolist(), ends.tolist(), final, *counts, strict=True)
    ):
        accuracy = tested["accuracy"][run]
        row = {
            "arm": last["arm"],
            "seed": last["seed"],
            "late_accuracy": accuracy.late_mean(last["round"]) if accuracy.any else None,
            "final_accuracy": last["accuracy"],
            "accuracy_area": normalised_auc(accuracy.rounds, accuracy.values) if accuracy.any else None,
            "final_loss": last["loss"],
            "energy_j": last["energy_mean_cum_j"],
            "queue_j": last["queue_mean_j"],
            "drops": (scheduled - sent) / scheduled if scheduled else None,
        }
        for percent in REACHED if accuracy.any else ():
            when = accuracy.first_at_least(percent / 100)
            until = rounds["round"][start:end] <= (last["round"] if when is None else when)
            row[f"rounds_to_{percent}"] = last["round"] if when is None else when
            row[f"joules_to_{percent}"] = float(rounds["energy_mean_j"][start:end].filter(until).sum())
            row[f"reached_{percent}"] = float(when is not None)
        for name in measured:
            known = tested[name][run]
            row[f"late_{name}"] = known.late_mean(last["round"]) if known.any else None
            row[f"final_{name}"] = last[name]
        rows.append(row)
    columns = (*PER_RUN, *(f"{span}_{name}" for name in measured for span in ("late", "final")))
    schema = {"arm": pl.String, "seed": pl.Int64} | dict.fromkeys(columns, pl.Float64)
    return pl.DataFrame(rows, schema=schema)


@dataclass(frozen=True)
class _Tests:
    """The rows of a table in which a quantity was measured: as arrays, since there are thousands of runs to a table."""

    rows: NDArray[np.int64]
    rounds: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, table: pl.DataFrame, name: str) -> _Tests:
        rows = np.flatnonzero(table[name].is_not_null().to_numpy())
        measured = table.select("round", name)[rows]
        return cls(rows, measured["round"].cast(pl.Int64).to_numpy(), measured[name].cast(pl.Float64).to_numpy())

    def by_run(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> list[_Tests]:
        """Those of each run, whose rows go from a start to an end."""
        if not self.any:
            return [self] * len(starts)
        spans = zip(np.searchsorted(self.rows, starts).tolist(), np.searchsorted(self.rows, ends).tolist(), strict=True)
        return [_Tests(self.rows[a:b], self.rounds[a:b], self.values[a:b]) for a, b in spans]

    @property
    def any(self) -> bool:
        return len(self.rows) > 0

    def late_mean(self, rounds: int) -> float:
        """Mean over the tests of the last fifth of the run, at least the last one: one test alone is noisy."""
        late = self.values[self.rounds > (1 - LATE) * rounds]
        return float(np.mean(late if len(late) else self.values[-1:]))

    def first_at_least(self, value: float) -> int | None:
        reached = np.flatnonzero(self.values >= value)
        return int(self.rounds[reached[0]]) if len(reached) else None


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


Span = Literal["final", "mean", "early", "late", "late_quarter", "late_half", "end"]

SPANS: dict[Span, str] = {
    "final": "after the last round",
    "mean": "mean over the rounds (area under the curve)",
    "early": "mean over the first third",
    "late": "mean over the last third",
    "late_quarter": "mean over the last quarter",
    "late_half": "mean over the last half",
    "end": "mean over the last tenth",
}
_LATE: dict[str, tuple[int, int]] = {"late": (3, 2), "late_quarter": (4, 3), "late_half": (2, 1), "end": (10, 9)}


@dataclass(frozen=True)
class Series:
    """One arm's values of one quantity: a row per seed, a column per round where it is known."""

    seeds: tuple[int, ...]
    rounds: NDArray[np.int64]  # (R,)
    values: Reals  # (seeds, R)

    def over(self, span: Span) -> dict[int, float]:
        """The number of each seed: the last value, or the mean over a part of the run.

        With T the last round: early is rounds ≤ T/3, late is rounds > 2T/3 (a quarter: > 3T/4, half: > T/2), end is
        rounds > 9T/10. A part in which no round was evaluated takes the evaluated round nearest to it; the last one
        always is.
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
            whole, before = _LATE[span]
            part = self.rounds * whole > before * last
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
