"""The balanced policy, by hand and against brute force."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import alike, observe

from feelstream import preset, simulate, verify
from feelstream.policies.balanced import Balanced
from feelstream.policies.base import Outcome
from feelstream.policies.solvers.balance import imbalance

SMALL = alike(4, rounds=10)
LABELS = np.array([[10, 0, 0], [0, 10, 0], [0, 5, 5], [0, 0, 0]], np.int32)


def see(**known: object):
    return observe(SMALL, 2, stored_labels=LABELS, stored=LABELS.sum(axis=1), **known)


def test_it_takes_what_the_model_has_lacked_and_nobody_without_data() -> None:
    """Seen lately: class 0 alone. η = ½: device 1 gives (½, ½, 0), device 2 (½, ¼, ¼), nearer to thirds."""
    rule = Balanced(size=1, price=0.0)
    seen = {"seen": np.array([1.0, 0.0, 0.0])}
    assert rule.select(seen, see(), np.random.default_rng(0)).schedule.tolist() == [2]
    expected = 3 * np.square([[2 / 3, -1 / 3, -1 / 3], [1 / 6, 1 / 6, -1 / 3], [1 / 6, -1 / 12, -1 / 12]]).sum(axis=1)
    assert imbalance(LABELS[:3].astype(float), seen["seen"], rule.memory) == pytest.approx(expected)
    everyone = Balanced(size=4, price=0.0).select(seen, see(), np.random.default_rng(0))
    assert everyone.schedule.tolist() == [0, 1, 2]


def test_a_price_makes_it_wait_for_slow_and_so_cheap_computers() -> None:
    f_hz = np.array([1.2e9, 4e8, 1.2e9, 4e8])
    seen = {"seen": np.array([1.0, 0.0, 0.0])}
    assert Balanced(size=1, price=0.0).select(seen, see(f_hz=f_hz), np.random.default_rng(0)).schedule.tolist() == [2]
    assert Balanced(size=1, price=1e3).select(seen, see(f_hz=f_hz), np.random.default_rng(0)).schedule.tolist() == [1]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_auto_is_a_tenth_for_a_mean_turn_whatever_a_turn_costs(scale: float) -> None:
    """Device 3 holds nothing, so that its energy does not count."""
    f_hz = np.array([1.2e9, 4e8, 1.0e9, 2e9])
    dear = replace(SMALL, power_coefficient=SMALL.power_coefficient * scale)
    seen = observe(dear, 2, stored_labels=LABELS, stored=LABELS.sum(axis=1), f_hz=f_hz)
    energy_j = seen.plan(1).energy_j
    rule = Balanced(size=1, price="auto")
    state, lots = {"seen": np.array([0.5, 0.3, 0.2])}, np.random.default_rng(0)
    by_hand = Balanced(size=1, price=0.1 / float(energy_j[:3].mean()))
    decision = rule.select(state, seen, lots)
    assert decision.schedule.tolist() == by_hand.select(state, seen, lots).schedule.tolist()
    ranking = rule.ranking(state, seen, decision, 0)
    assert ranking.total == pytest.approx(by_hand.ranking(state, seen, decision, 0).total, nan_ok=True)
    assert np.nanmean(ranking.terms[1].values) == pytest.approx(0.1)


def test_what_was_seen_is_a_moving_average_of_what_got_through() -> None:
    rule = Balanced(memory=0.25)
    start = rule.init(SMALL)
    outcome = Outcome(2, np.array([0, 2]), np.array([False, True]), np.ones(2), np.zeros(2), None, see())
    assert rule.update(start, outcome)["seen"] == pytest.approx(0.75 / 3 + 0.25 * np.array([0, 0.5, 0.5]))
    nobody = replace(outcome, transmitted=np.zeros(2, bool))
    assert rule.update(start, nobody) is start


def test_it_spends_less_than_the_papers_scheduler_and_verifies(tmp_path: Path) -> None:
    """Energies of 4 seeds without learning: a third at most, as docs/leaderboard.md has it for 40 rounds."""
    quick = ["learning.engine=none", "data.dataset=synthetic"]
    spent = {}
    for name in ("lyapunov", "balanced"):
        runs = [simulate(preset("paper-iid", [*quick, f"policy.name={name}"]), seed) for seed in range(4)]
        spent[name] = np.mean([run.rounds["energy_mean_cum_j"][-1] for run in runs])
        assert verify(runs[0].save(tmp_path / name)).ok
    assert spent["balanced"] < spent["lyapunov"] / 2
