"""Baselines as their sources have them: oracles, Oort's sample factor, OCEAN's power control, a fair circle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from observed import alike, observe

from feelstream import preset, simulate, verify
from feelstream.policies import POLICIES
from feelstream.policies.base import Observation, Outcome

SMALL = alike(4, rounds=10)
PLAIN = ["learning.engine=none", "data.dataset=synthetic", "system.rounds=12"]


def policy(name: str, **fields: Any) -> Any:
    return POLICIES.lookup(name)(**fields)


def sent(seen: Observation, ids: list[int], losses: np.ndarray | None) -> Outcome:
    n = len(ids)
    return Outcome(1, np.array(ids), np.ones(n, bool), np.ones(n), np.zeros(n), losses, seen)


@pytest.mark.parametrize(("name", "expected"), [("best_channel", [1, 3]), ("proportional_fair", [0, 3])])
def test_oracles_rank_the_gains_of_this_round(name: str, expected: list[int]) -> None:
    """Gains 0.4, 3, 0.1, 2 over means 0.1, 2, 1, 0.5: ratios 4, 1.5, 0.1, 4."""
    gain, beta = np.array([0.4, 3.0, 0.1, 2.0]), np.array([0.1, 2.0, 1.0, 0.5])
    rule = policy(name, gain="oracle")
    assert rule.needs == {"oracle_gain"}
    seen = observe(SMALL, 1, beta=beta, oracle_gain=gain)
    assert rule.select(rule.init(SMALL), seen, np.random.default_rng(0)).schedule.tolist() == expected


@pytest.mark.parametrize("name", ["best_channel", "proportional_fair"])
def test_only_oracles_are_told_the_gains_and_verify_knows_them(name: str, tmp_path: Path) -> None:
    run = simulate(preset("stress", [*PLAIN, f"policy.name={name}", "policy.gain=oracle"]))
    assert run.devices is not None
    kept = run.devices.filter(run.devices["feasible"])
    told = kept["gain"] if name == "best_channel" else kept["gain"] / kept["beta"]
    assert kept["score"].to_numpy() == pytest.approx(-told.to_numpy())
    assert verify(run.save(tmp_path / "run")).ok
    assert "oracle_gain" not in policy(name).needs


def test_oracles_are_refused_by_a_deployment() -> None:
    pytest.importorskip("flwr")
    from feelstream.errors import ScenarioError
    from feelstream.flower.scheduler import Scheduler

    with pytest.raises(ScenarioError, match="no server can know"):
        Scheduler(preset("tiny", ["policy.name=best_channel", "policy.gain=oracle"]), 10)


def test_oort_counts_the_samples_that_a_device_trained_on() -> None:
    """Six draws from 3, 100 and 0 samples at a loss of 2: utilities 3·2, 6·2 and 0, all three known."""
    rule, seen = policy("oort"), observe(SMALL, 1, stored=np.array([3, 100, 0, 5]))
    losses = np.full((3, 2, 3), 2.0, np.float32)
    losses[2] = np.nan  # nothing to train on
    state = rule.update(rule.init(SMALL), sent(seen, [0, 1, 2], losses))
    assert state["utility"].tolist() == [6.0, 12.0, 0.0, 0.0]
    assert state["known"].tolist() == [True, True, True, False]


def test_oort_keeps_the_order_of_the_slow_at_any_alpha() -> None:
    rule = policy("oort", alpha=1e100, prefer=0.0)
    seen = observe(SMALL, 1, f_hz=np.array([4e8, 1e9, 8e8, 1.2e9]))
    speed = rule.speed(seen, seen.plan(2))
    assert (speed > 0).all()
    assert speed[3] == 1.0
    assert policy("oort", alpha=0.0).speed(seen, seen.plan(2)).tolist() == [1.0] * 4


def test_the_circle_of_round_robin_is_drawn_at_random() -> None:
    rule = policy("round_robin", size=1)
    states = [rule.start(SMALL, np.random.default_rng(seed)) for seed in range(40)]
    first = {int(rule.select(state, observe(SMALL, 1), np.random.default_rng(0)).schedule[0]) for state in states}
    assert first == {0, 1, 2, 3}


def test_round_robin_walks_its_own_order() -> None:
    rule, order = policy("round_robin"), [2, 0, 3, 1]
    state = {"next": np.array(0), "order": np.array(order)}
    for expected in ([0, 2], [1, 3], [0, 2]):
        chosen = rule.select(state, observe(SMALL, 1), np.random.default_rng(0)).schedule
        assert chosen.tolist() == expected
        state = rule.update(state, sent(observe(SMALL, 1), expected, None))


@pytest.mark.parametrize("scenario", ["paper-iid", "stress"])
def test_power_control_spends_less_on_sending_and_verifies(scenario: str, tmp_path: Path) -> None:
    """The same set, sent in all the time that is left, costs less than at P0/β; the whole run passes `verify`."""
    spent = {}
    for power in ("control", "fixed"):
        overrides = [*PLAIN, "policy.name=ocean", "policy.V=inf", f"policy.power={power}", "radio.fading=none"]
        run = simulate(preset(scenario, overrides))
        assert run.devices is not None
        spent[power] = run.devices["e_tr_j"].sum()
        assert verify(run.save(tmp_path / power)).ok
    assert spent["control"] < 0.5 * spent["fixed"]


def test_ocean_under_power_control_takes_the_prefix_of_greatest_value() -> None:
    """Against every prefix of its own order, each at a split found by brute force over a grid."""
    rng = np.random.default_rng(5)
    rule = policy("ocean", V=0.02, size=2, eta="uniform")
    for _ in range(20):
        f_hz, beta, queue_j = rng.uniform(3e8, 1.2e9, 4), rng.uniform(0.3, 2, 4), rng.uniform(0.01, 0.2, 4)
        seen = observe(SMALL, 3, f_hz=f_hz, beta=beta, queue_j=queue_j)
        at_half = [float(weighed(seen, k, np.array(0.5))) for k in range(4)]
        i, j = np.argsort(at_half)[:2].tolist()
        share = np.linspace(0.01, 0.99, 9801)
        one = 0.02 - weighed(seen, i, np.array(1.0))
        two = 0.04 - (weighed(seen, i, share) + weighed(seen, j, 1 - share)).min()
        expected = [] if max(one, two) <= 0 else [i] if one >= two else sorted([i, j])
        assert rule.select({}, seen, np.random.default_rng(0)).schedule.tolist() == expected


def weighed(seen: Observation, k: int, share: np.ndarray) -> np.ndarray:
    """Q (E_cmp + E_tr) at a share of the band, sending for all the time that is left."""
    a, left_s = SMALL.update_bits * np.log(2) / SMALL.bandwidth_hz, SMALL.round_s - seen.compute_time_s[k]
    kappa_w = SMALL.bandwidth_hz * SMALL.noise_w_per_hz / seen.beta[k]
    return seen.queue_j[k] * (seen.compute_energy_j[k] + left_s * kappa_w * share * np.expm1(a / (share * left_s)))
