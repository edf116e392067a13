"""What a policy learns of a round: only what arrived, and the norm of each update that did."""

from __future__ import annotations

import numpy as np
import pytest
from builders import devices_of, small

import feelstream as fs
from feelstream.errors import PluginError
from feelstream.loop.simulation import Simulation
from feelstream.policies.base import Outcome, State
from feelstream.policies.random import Random

seen: list[Outcome] = []


class Watching(Random):
    """Random, and every outcome is kept for the test."""

    def update(self, state: State, outcome: Outcome) -> State:
        seen.append(outcome)
        return state


def test_only_replies_that_arrived_are_seen() -> None:
    """In so narrow a band some of the scheduled are dropped: what they trained is not known."""
    seen.clear()
    radio = ["radio.bandwidth_hz=5e5", "radio.received_power_dbm=-36", "radio.rate_discount=4.0"]
    scenario = fs.preset("tiny", [*radio, "system.rounds=12"]).with_(policy=Watching(size=4))
    fs.simulate(scenario, 1)
    dropped = [~outcome.transmitted for outcome in seen]
    assert any(rows.any() for rows in dropped), "nobody was dropped, so nothing is tested"
    assert any(outcome.transmitted.any() for outcome in seen)
    for outcome in seen:
        assert outcome.losses is not None
        assert outcome.update_norm is not None
        held = outcome.observation.stored[outcome.schedule] > 0
        arrived = outcome.transmitted
        assert np.isnan(outcome.losses[~arrived]).all()
        assert np.isnan(outcome.update_norm[~arrived]).all()
        assert np.isfinite(outcome.losses[arrived & held]).all()
        assert (outcome.update_norm[arrived & held] > 0).all()
        assert (outcome.update_norm[arrived & ~held] == 0).all()


def test_the_norm_is_that_of_the_update() -> None:
    """Where one device alone gets through, the model moves by just its update."""
    seen.clear()
    scenario = fs.preset("tiny", ["system.rounds=6"]).with_(policy=Watching(size=1))
    simulation = Simulation(*_parts(scenario))
    before = simulation.theta.copy()
    for _ in range(6):
        simulation.step()
        outcome = seen[-1]
        assert outcome.update_norm is not None
        moved = float(np.linalg.norm(simulation.theta.astype(float) - before))
        if outcome.transmitted.any() and outcome.observation.stored[outcome.schedule[0]]:
            assert outcome.update_norm[0] == pytest.approx(moved, rel=1e-3)  # θ is stored in single precision
        before = simulation.theta.copy()


def _parts(scenario: fs.Scenario) -> tuple:
    from feelstream import learning
    from feelstream.run import dataset_of

    data = dataset_of(scenario)
    return scenario, 1, data, learning.make(scenario.learning, data, 1)


def hungry(observation, plan):
    """Goes by what a metric of two arrays cannot see: queues and all that is held."""
    return plan.amount + observation.stored / (1 + observation.queue_j)


def too_few(observation, plan):
    return plan.amount[:-1]


HERE = "tests/test_outcomes.py"


def test_a_metric_may_go_by_the_observation(tmp_path) -> None:
    run = fs.simulate(small(f"policy.metric={HERE}:hungry"), 1)
    chosen = devices_of(run).filter("feasible")
    expected = chosen["amount"] + chosen["stored"] / (1 + chosen["queue_j"])
    np.testing.assert_allclose(chosen["importance"].to_numpy(), expected.to_numpy(), rtol=1e-12)
    assert fs.verify(run.save(tmp_path / "run")).ok
    with pytest.raises(PluginError, match=r"must return an array of finite numbers of shape \(6,\), at least"):
        fs.simulate(small(f"policy.metric={HERE}:too_few"), 1)


def test_both_forms_keep_the_contract() -> None:
    from feelstream.testing import check

    assert all(result.ok for result in check(hungry))
    assert not all(result.ok for result in check(too_few))
