"""The search for the set, against all subsets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from problems import KINDS, problem

from feelstream.policies.solvers import search
from feelstream.policies.solvers.devices import Devices
from feelstream.policies.solvers.modes import allocate
from feelstream.policies.solvers.search import choose


def best_of_all(devices: Devices, worth: np.ndarray, n: int, fill: bool) -> float:
    """The least Σ (w e − worth) over every allowed subset, each solved by itself."""
    best = np.inf if fill else 0.0
    count = len(worth)
    for size in [min(n, count)] if fill else range(1, min(n, count) + 1):
        sets = np.array(list(combinations(range(count), size)))
        solved = allocate(devices.take(sets))
        best = min(best, float((devices.weight[sets] * solved.energy_j - worth[sets]).sum(axis=1).min()))
    return best


def instances(kind: str, count: int, rng: np.random.Generator) -> list[tuple[Devices, np.ndarray, int]]:
    """(devices, worth, n) with up to 8 devices whose worth is of the size of their energy, so that both matter."""
    made = []
    while len(made) < count:
        n = int(rng.integers(1, 5))
        devices = problem(kind, (8,), rng)
        devices = devices.take(np.flatnonzero(devices.share_min <= 1 / n))
        if len(devices.weight) < 2:
            continue
        alone = allocate(devices.take(np.arange(len(devices.weight))[:, None])).energy_j[:, 0]
        worth = rng.uniform(0, 2, len(alone)) * np.median(devices.weight * alone)
        made.append((devices, worth, n))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("fill", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_the_search_is_exact_for_few_devices(kind: str, fill: bool) -> None:
    rng = np.random.default_rng(17)
    for devices, worth, n in instances(kind, 5, rng):
        found = choose(devices, worth, n, fill, rng.permutation(len(worth)))
        best = best_of_all(devices, worth, n, fill)
        scale = abs(best) + worth.sum()
        assert found.exact
        assert found.total == pytest.approx(best, abs=1e-9 * scale)
        assert found.bound <= best + 1e-9 * scale
        assert len(found.members) <= n
        if fill:
            assert len(found.members) == min(n, len(worth))
        if len(found.members):
            solved = allocate(devices.take(found.members))
            own = devices.weight[found.members] * solved.energy_j - worth[found.members]
            assert own.sum() == pytest.approx(found.total, abs=1e-9 * scale)
            if not fill:
                assert (own < 0).all()  # whoever does not pay is not in the set


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["stress", "noisy", "wide"])
def test_without_subsets_to_try_the_bound_still_holds(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The approximation alone: never below the optimum, never above by more than its own bound says."""
    monkeypatch.setattr(search, "MOST_SUBSETS", 0)
    rng = np.random.default_rng(23)
    for devices, worth, n in instances(kind, 5, rng):
        for fill in (True, False):
            found = choose(devices, worth, n, fill, np.arange(len(worth)))
            best = best_of_all(devices, worth, n, fill)
            scale = abs(best) + worth.sum()
            assert best - 1e-9 * scale <= found.total
            assert found.bound <= best + 1e-9 * scale
            assert not found.exact or found.total == pytest.approx(best, abs=1e-9 * scale)


def test_equals_go_by_the_order() -> None:
    one = problem("paper", (1,), np.random.default_rng(0))
    devices, worth = one.take(np.zeros(6, int)), np.full(6, 10.0)
    rng = np.random.default_rng(1)
    sets = {tuple(choose(devices, worth, 2, True, rng.permutation(6)).members) for _ in range(60)}
    assert len(sets) > 8


def test_nobody_pays_or_nobody_is_there() -> None:
    devices = problem("paper", (5,), np.random.default_rng(2))
    assert len(choose(devices, np.zeros(5), 3, False, np.arange(5)).members) == 0
    assert len(choose(devices, np.zeros(5), 3, True, np.arange(5)).members) == 3
    assert len(choose(devices, np.ones(5), 3, True, np.arange(0)).members) == 0
    assert len(choose(devices, np.ones(5), 0, True, np.arange(5)).members) == 0
