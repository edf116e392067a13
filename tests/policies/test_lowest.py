"""The selection that most policies share, against sorting."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from feelstream.policies.ranking import lowest


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 5, 50, 3000]), st.integers(0, 40), st.integers(1, 400))
def test_lowest_agrees_with_sorting(seed: int, devices: int, n: int, values: int) -> None:
    """Few distinct values make ties; a share of candidates of 0 to 1 makes the guess of the cut fail, too."""
    rng = np.random.default_rng(seed)
    score = rng.integers(0, values, devices).astype(float)
    candidates = rng.random(devices) < rng.random() ** 2
    chosen = lowest(score, candidates, n, rng)
    assert candidates[chosen].all()
    assert len(np.unique(chosen)) == len(chosen) == min(n, candidates.sum())
    assert np.array_equal(np.sort(score[chosen]), np.sort(score[candidates])[:n])


def test_ties_are_broken_by_lot() -> None:
    rng = np.random.default_rng(0)
    picks = np.array([lowest(np.zeros(1000), np.ones(1000, bool), 2, rng) for _ in range(4000)])
    counts = np.bincount(picks.ravel(), minlength=1000)
    assert counts.max() < 30  # 8 each on average
    assert np.abs(np.corrcoef(np.arange(1000), counts)[0, 1]) < 0.1


def test_infinite_scores_are_scores() -> None:
    rng = np.random.default_rng(0)
    score = np.full(500, np.inf)
    score[7] = -np.inf
    chosen = lowest(score, np.ones(500, bool), 3, rng)
    assert len(chosen) == 3
    assert 7 in chosen
