"""Policies that ask for norms of updates and gradients: whom they ask, whom they take, and how they draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from builders import alike, observe
from scipy.optimize import LinearConstraint, minimize

from feelstream.policies.gradient_norm import GradientNorm, drawn, probabilities
from feelstream.policies.update_norm import UpdateNorm

SIX = alike(6, rounds=10)


def test_candidates_are_the_best_channels_that_can_be_in_time_and_hold_data() -> None:
    known: dict[str, Any] = {
        "beta": np.array([1.0, 6.0, 5.0, 4.0, 3.0, 2.0]),
        "f_hz": np.array([1e9, 1e9, 1e9, 2e7, 1e9, 1e9]),  # device 3 is too slow for any round
        "stored": np.array([9, 9, 0, 9, 9, 9]),
    }
    asked = UpdateNorm(size=1, candidates=3).asks({}, observe(SIX, 1, **known), np.random.default_rng(0))
    assert np.flatnonzero(asked).tolist() == [1, 4, 5]
    every = UpdateNorm(size=5, candidates=3).asks({}, observe(SIX, 1, **known), np.random.default_rng(0))
    assert np.flatnonzero(every).tolist() == [0, 1, 4, 5]  # as many as there are, of the 5 that size asks for


def test_the_largest_norms_are_scheduled_and_nobody_who_was_silent() -> None:
    seen = observe(SIX, 1, reports={"update_norm": np.array([0.1, np.nan, 0.5, 0.3, np.nan, 0.2])})
    decision = UpdateNorm(size=2).select({}, seen, np.random.default_rng(0))
    assert decision.schedule.tolist() == [2, 3]
    assert decision.score is not None
    assert decision.score.tolist() == [-0.1, 0.0, -0.5, -0.3, 0.0, -0.2]
    nobody = observe(SIX, 1, reports={"update_norm": np.full(6, np.nan)})
    assert UpdateNorm(size=2).select({}, nobody, np.random.default_rng(0)).schedule.tolist() == []


def test_with_importance_alone_probabilities_are_proportional_to_it() -> None:
    a = np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(probabilities(a, np.array([9.0, 1.0, 5.0, 2.0]), 1, 1.0), a / 10, rtol=1e-9)
    # 40 of 43 would be more than a certain turn for two: the other place is shared by 1, 1, 1.
    np.testing.assert_allclose(probabilities(np.array([40.0, 1, 1, 1]), np.ones(4), 2, 1.0), [1, 1 / 3, 1 / 3, 1 / 3])


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("rho", [0.05, 0.5, 0.95])
def test_probabilities_solve_the_problem_that_they_are_said_to(n: int, rho: float) -> None:
    draw = np.random.default_rng(n)
    a, time_s = draw.exponential(size=5) + 0.01, draw.exponential(size=5)

    def cost(p: np.ndarray) -> float:
        return float(rho * ((a / a.mean()) ** 2 / p).sum() + (1 - rho) * (p * time_s / time_s.mean()).sum())

    found = probabilities(a, time_s, n, rho)
    assert found.sum() == pytest.approx(n)
    best = minimize(cost, np.full(5, n / 5), bounds=[(1e-6, 1)] * 5, constraints=LinearConstraint(np.ones(5), n, n),
                    method="SLSQP", options={"ftol": 1e-12, "maxiter": 300})  # fmt: skip
    assert cost(found) <= best.fun * (1 + 1e-6)


def test_the_draw_has_the_probabilities_that_it_states() -> None:
    """4,000 draws; a share differs from its probability by more than 5 standard errors with a chance of 6e-7."""
    p = np.array([0.9, 0.5, 0.3, 0.2, 0.1, 0.0])
    times = np.zeros(6)
    for seed in range(4000):
        chosen = drawn(p, np.random.default_rng(seed))
        assert len(chosen) == 2
        times[chosen] += 1
    assert times[5] == 0
    assert (np.abs(times / 4000 - p) <= 5 * np.sqrt(p * (1 - p) / 4000)).all()


def test_a_better_channel_and_a_larger_gradient_are_drawn_more_often() -> None:
    norm, gain = np.array([1.0, 1.0, 2.0, 1.0, 0.0, np.nan]), np.array([1.0, 0.01, 1.0, 1.0, 1.0, np.nan])
    seen = observe(SIX, 1, reports={"gradient_norm": norm, "gain": gain})
    p = GradientNorm(size=1).select({}, seen, np.random.default_rng(0)).probability
    assert p is not None
    assert p[2] > p[0] == p[3] > p[1] > 0
    assert p[4:].tolist() == [0, 0]  # a gradient of 0, and no report
