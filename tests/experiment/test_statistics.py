"""Intervals and tests of means against computations of another kind: SciPy's, brute force, coverage by simulation."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from feelstream.experiment.statistics import (
    Interval,
    holm,
    interval,
    one_sided_p,
    pareto_front,
    prediction,
    sign_flip,
    two_sided,
)  # fmt: skip

VALUES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30).filter(lambda x: np.std(x) > 1e-6)


@given(VALUES, st.sampled_from([0.8, 0.95, 0.99]))
def test_interval_is_students(values: list[float], level: float) -> None:
    low, high = stats.t.interval(level, len(values) - 1, np.mean(values), stats.sem(values))
    ours = interval(values, level)
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
    assert interval(a - b).verdict == (expected if len(a) >= 5 else "fewer than 5 seeds: no verdict")


def test_no_verdict_without_an_interval() -> None:
    one = interval([0.3])
    assert (one.mean, one.low, one.high, one.n, one.half_width) == (0.3, None, None, 1, None)
    assert one.verdict == "one seed: no interval"
    assert interval([]).verdict == "no seed in common"
    assert math.isnan(interval([]).mean)


def test_equal_differences_are_a_point() -> None:
    assert interval([0.5] * 3) == Interval(0.5, 0.5, 0.5, 3)
    assert interval([0.0] * 2).verdict == "fewer than 5 seeds: no verdict"
    assert interval([0.0] * 5).verdict == "unclear"
    assert interval([0.1] * 5).verdict == "no spread between seeds: no verdict"  # the mean may be off in the last bit


@pytest.mark.parametrize("values", [[[1.0]], [math.nan, 1.0]])
def test_no_interval_of_what_is_not_a_number_per_seed(values: list[float]) -> None:
    with pytest.raises(ValueError, match="one finite number per seed"):
        interval(values)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_pareto_front_is_what_nobody_dominates(points: list[tuple[int, int]]) -> None:
    front = pareto_front([x for x, _ in points], [y for _, y in points])
    for (x, y), on_it in zip(points, front, strict=True):
        dominated = any(a <= x and b >= y and (a, b) != (x, y) for a, b in points)
        assert on_it == (not dominated)
    assert front.any() == bool(points)


numbers = st.lists(st.integers(-50, 50).map(float), min_size=2, max_size=9)


def test_the_t_test_is_scipys():
    x = np.random.default_rng(1).normal(0.3, 1, 12)
    theirs: Any = stats.ttest_1samp(x, 0.0, alternative="greater")
    assert one_sided_p(x) == pytest.approx(theirs.pvalue)
    assert one_sided_p(-x) == pytest.approx(1 - theirs.pvalue)


@pytest.mark.parametrize(("value", "p"), [(2.0, 0.0), (-2.0, 1.0), (0.0, 0.5)])
def test_without_spread_the_sign_decides(value, p):
    assert one_sided_p([value] * 4) == p


@given(numbers)
def test_sign_flips_are_counted_one_by_one(x):
    sums = [float(np.dot(signs, x)) for signs in product((-1, 1), repeat=len(x))]
    assert sign_flip(x) == sum(value >= sum(x) for value in sums) / len(sums)


def test_sign_flips_of_many_seeds_are_those_of_scipy():
    x = np.random.default_rng(2).normal(0.4, 1, 45)
    ours = sign_flip(x)
    theirs = stats.permutation_test(
        (x,), lambda v, axis: v.sum(axis=axis), permutation_type="samples", alternative="greater",
        n_resamples=20_000, rng=np.random.default_rng(3), vectorized=True,
    )  # fmt: skip
    assert ours == pytest.approx(theirs.pvalue, abs=0.005)


def test_sign_flips_without_an_effect_are_uniform():
    rng = np.random.default_rng(4)
    p = np.array([sign_flip(rng.normal(0, 1, 8)) for _ in range(2000)])
    for level in (0.05, 0.25, 0.5):  # 4 standard errors
        assert np.mean(p <= level) == pytest.approx(level, abs=4 * np.sqrt(level * (1 - level) / 2000) + 2**-8)


def test_a_further_run_falls_into_the_prediction_interval_as_often_as_it_says():
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(4000):
        x = rng.normal(3, 2, 6)
        interval = prediction(x[:5])
        assert interval.low is not None
        assert interval.high is not None
        inside += interval.low <= x[5] <= interval.high
    assert inside / 4000 == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 4000))


@pytest.mark.parametrize("values", [[], [1.0]])
def test_one_value_predicts_nothing(values):
    assert prediction(values).low is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_rejects_exactly_what_its_steps_reject(p):
    """The procedure as Holm writes it: from the least p, compare with α/(m − i) and stop at the first failure."""
    alpha, adjusted = 0.05, holm(p)
    rejected = set()
    for step, index in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        if p[index] * (len(p) - step) > alpha:
            break
        rejected.add(index)
    assert {i for i, value in enumerate(adjusted) if value <= alpha} == rejected


def test_a_two_sided_value_is_twice_the_smaller_side():
    assert two_sided(0.01, 0.99) == pytest.approx(0.02)
    assert two_sided(0.6, 0.6) == 1.0
