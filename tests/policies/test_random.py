"""Random scheduling: every set of feasible devices is equally likely."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from builders import observation, system
from scipy.stats import chisquare

from feelstream.policies import Random


def test_all_pairs_of_feasible_devices_are_equally_likely() -> None:
    seen = observation(system(6), available=np.array([1, 0, 1, 1, 1, 1], bool))
    rng = np.random.default_rng(1)
    drawn = Counter(tuple(Random(size=2).select({}, seen, rng).schedule.tolist()) for _ in range(3000))
    pairs = list(combinations([0, 2, 3, 4, 5], 2))
    assert set(drawn) == set(pairs)
    assert chisquare([drawn[pair] for pair in pairs]).pvalue > 1e-3


@pytest.mark.parametrize("able", [0, 1, 3])
def test_all_feasible_devices_where_there_are_too_few(able: int) -> None:
    seen = observation(system(6), available=np.arange(6) < able)
    chosen = Random(size=4).select({}, seen, np.random.default_rng(0)).schedule
    assert chosen.tolist() == list(range(able))
