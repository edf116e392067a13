"""Intervals, bands and indices against SciPy and closed forms."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from feelstream.experiment import statistics as fs

VALUES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30).filter(lambda x: np.std(x) > 1e-6)


@given(VALUES, st.sampled_from([0.8, 0.95, 0.99]))
def test_interval_is_students(values: list[float], level: float) -> None:
    low, high = stats.t.interval(level, len(values) - 1, np.mean(values), stats.sem(values))
    ours = fs.interval(values, level)
    assert ours.n == len(values)
    assert (ours.mean, ours.low, ours.high) == pytest.approx((np.mean(values), low, high), rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(st.floats(-10, 10), st.floats(-10, 10)), min_size=2, max_size=20))
def test_verdict_is_that_of_the_paired_t_test(pairs: list[tuple[float, float]]) -> None:
    a, b = np.transpose(pairs)
    if np.std(a - b) < 1e-6:
        return
    test = stats.ttest_rel(a, b)
    if abs(test.pvalue - 0.05) < 1e-9:
        return
    expected = "unclear" if test.pvalue > 0.05 else "higher" if test.statistic > 0 else "lower"
    assert fs.paired_difference(a, b).verdict == (expected if len(a) >= 5 else "fewer than 5 seeds: no verdict")


def test_no_verdict_without_an_interval() -> None:
    one = fs.interval([0.3])
    assert (one.mean, one.low, one.high, one.n, one.half_width) == (0.3, None, None, 1, None)
    assert one.verdict == "one seed: no interval"
    assert fs.interval([]).verdict == "no seed in common"
    assert math.isnan(fs.interval([]).mean)


def test_equal_differences_are_a_point() -> None:
    assert fs.paired_difference([1.5, 2.5, 3.5], [1.0, 2.0, 3.0]) == fs.Interval(0.5, 0.5, 0.5, 3)
    assert fs.paired_difference([1.0, 2.0], [1.0, 2.0]).verdict == "fewer than 5 seeds: no verdict"
    assert fs.paired_difference(range(5), range(5)).verdict == "unclear"
    assert (
        fs.interval([0.1] * 5).verdict == "no spread between seeds: no verdict"
    )  # the mean may be off in the last bit


@pytest.mark.parametrize(("a", "b"), [([1.0], [1.0, 2.0]), ([[1.0]], [[2.0]]), ([math.nan, 1.0], [1.0, 2.0])])
def test_no_interval_of_what_is_not_paired(a: list[float], b: list[float]) -> None:
    with pytest.raises(ValueError, match=r"seed|pairs"):
        fs.paired_difference(a, b)


def rounds_table() -> pl.DataFrame:
    """Arm z before arm a; arm a lacks seed 2; only even rounds are tested."""
    rng = np.random.default_rng(0)
    rows = [
        (arm, seed, t, e := rng.uniform(), e / 2, rng.uniform() if t % 2 == 0 else None, 1.0, 0.1 * t, 4, 4 - t % 2)
        for arm, seeds in (("z", (0, 1, 2)), ("a", (0, 1)))
        for seed in seeds
        for t in range(1, 7)
    ]
    columns = ["arm", "seed", "round", "energy_mean_j", "energy_mean_cum_j", "accuracy", "loss", "queue_mean_j"]
    return pl.DataFrame(rows, schema=[*columns, "scheduled", "transmitted"], orient="row")


def test_band_by_round() -> None:
    rounds = rounds_table()
    band = fs.band_by_round(rounds, "accuracy")
    assert band.columns == ["arm", "round", "mean", "low", "high", "n"]
    assert band.select("arm", "round").rows() == [(arm, t) for arm in "za" for t in (2, 4, 6)]
    for row in band.rows(named=True):
        values = rounds.filter(arm=row["arm"], round=row["round"])["accuracy"].to_numpy()
        low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
        np.testing.assert_allclose((row["mean"], row["low"], row["high"]), (values.mean(), low, high))
    one = fs.band_by_round(rounds.filter(seed=0), "accuracy")
    assert one["low"].null_count() == one["high"].null_count() == len(one) == 6


def test_per_run_and_pairs_over_common_seeds() -> None:
    rounds = rounds_table()
    runs = fs.per_run(rounds)
    assert runs.select("arm", "seed").rows() == [("z", 0), ("z", 1), ("z", 2), ("a", 0), ("a", 1)]
    one = rounds.filter(arm="z", seed=1)
    tested = one.drop_nulls("accuracy")
    area = integrate.trapezoid(tested["accuracy"].to_numpy(), tested["round"].to_numpy()) / 4
    last = one["accuracy"][-1]  # rounds 5 and 6 of 6 are the last fifth, and 6 is tested
    expected = ("z", 1, last, last, pytest.approx(area), 1.0, one["energy_mean_cum_j"][-1], 0.1 * 6, 3 / 24)
    assert runs.row(1)[:9] == expected
    energy = dict(zip(runs.select("arm", "seed").rows(), runs["energy_j"], strict=True))
    differences = [energy["a", seed] - energy["z", seed] for seed in (0, 1)]
    assert fs.compare_arms(runs, "energy_j", "a", "z") == fs.interval(differences)


def test_runs_that_learn_nothing_have_no_accuracy() -> None:
    nothing = rounds_table().with_columns(pl.lit(None, pl.Float64).alias("accuracy"))
    assert fs.per_run(nothing)["final_accuracy"].null_count() == 5
    assert fs.per_run(nothing)["accuracy_area"].null_count() == 5
    assert len(fs.band_by_round(nothing, "accuracy")) == 0
    assert fs.compare_arms(fs.per_run(nothing), "final_accuracy", "a", "z").verdict == "no seed in common"


def test_reaching_an_accuracy() -> None:
    accuracy = pl.Series("accuracy", [None, 0.5, None, 0.85, None, 0.8])
    spent = pl.Series("energy_mean_j", [1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    run = fs.per_run(rounds_table().filter(arm="z", seed=0).with_columns(accuracy, spent)).row(0, named=True)
    assert (run["rounds_to_80"], run["joules_to_80"], run["reached_80"]) == (4, 15.0, 1.0)
    assert (run["rounds_to_90"], run["joules_to_90"], run["reached_90"]) == (6, 63.0, 0.0)  # the whole run


def test_mean_height_of_a_line_and_of_a_point() -> None:
    assert fs.normalised_auc([10, 20, 40], [1.0, 2.0, 4.0]) == pytest.approx(2.5)
    assert fs.normalised_auc([7], [0.25]) == 0.25


@pytest.mark.parametrize(
    ("shares", "index"),
    [([3, 3, 3], 1), ([0, 0, 5, 0], 0.25), ([0, 0], 1), ([1, 2, 3], 36 / 42), ([1e-300, 1e300], 0.5)],
)
def test_jain_index(shares: list[float], index: float) -> None:
    assert fs.jain_index(shares) == pytest.approx(index)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20), st.floats(1e-3, 1e3))
def test_jain_index_knows_no_unit(shares: list[float], unit: float) -> None:
    index = fs.jain_index(shares)
    assert 1 / len(shares) <= index * (1 + 1e-12)
    assert index <= 1 + 1e-12
    if max(shares) > 1e-200:
        assert fs.jain_index([unit * share for share in shares]) == pytest.approx(index)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_pareto_front_is_what_nobody_dominates(points: list[tuple[int, int]]) -> None:
    front = fs.pareto_front([x for x, _ in points], [y for _, y in points])
    for (x, y), on_it in zip(points, front, strict=True):
        dominated = any(a <= x and b >= y and (a, b) != (x, y) for a, b in points)
        assert on_it == (not dominated)
    assert front.any() == bool(points)
