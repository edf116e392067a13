"""What devices report: both engines against PyTorch's own arithmetic, and users' own probes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import small, verified
from numpy.typing import NDArray

import feelstream as fs
from feelstream.data.datasets import load as load_dataset
from feelstream.errors import FeelstreamError, ScenarioError
from feelstream.learning import make
from feelstream.learning.contract import ABSENT
from feelstream.loop.simulation import Simulation
from feelstream.policies.base import Decision, Observation, Policy, State

LEARNING = ("learning.engine=native", "learning.local.steps=2", "learning.local.batch=4", "system.rounds=3")
SAMPLES = np.array([[3, 17, 40, 41], [7, 100, ABSENT, ABSENT]])


def learners(model: str) -> list[Any]:
    pytest.importorskip("torch")
    dataset = load_dataset("synthetic", samples=240)
    return [make(small(f"learning.model={model}", f"learning.engine={e}").learning, dataset, 1) for e in
            ("native", "torch")]  # fmt: skip


@pytest.mark.parametrize("model", ["mlp", "softmax", "paper-cnn"])
def test_both_engines_give_the_same_probabilities_and_embeddings(model: str) -> None:
    native, torch_ = learners(model)
    theta = native.init(3)
    numbers = SAMPLES[SAMPLES != ABSENT]
    logs = native.log_probabilities(theta, numbers)
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(logs, torch_.log_probabilities(theta, numbers), atol=2e-5)
    losses = native.predict(theta, "train", numbers)
    np.testing.assert_allclose(-logs[np.arange(len(numbers)), losses.labels], losses.losses, atol=1e-6)
    found = native.embeddings(theta, SAMPLES)
    np.testing.assert_allclose(found, torch_.embeddings(theta, SAMPLES), rtol=1e-4, atol=2e-5)
    assert found.shape[0] == 2
    assert np.abs(found).max() > 0


class Asking(Policy):
    """Schedules nobody, and remembers nothing but what it was told."""

    heard: Any = None

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"gradient_norm", "update_norm", "entropy", "embedding", "gain"})

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        self.heard.append(observation)
        return Decision(np.zeros(0, np.int64), observation.plan(self.size))


def heard(*overrides: str) -> tuple[list[Observation], Simulation]:
    policy = Asking(size=2, heard=[])
    scenario = small(*LEARNING, "reports.slot_s=3.0", *overrides).model_copy(update={"policy": policy})
    dataset = load_dataset("synthetic", samples=240)
    learner = make(scenario.learning, dataset, 1)
    simulation = Simulation(scenario, 1, dataset, learner)
    for _ in range(3):
        simulation.step()
    return policy.heard, simulation


def test_reports_are_those_of_the_devices_that_answered() -> None:
    observations, simulation = heard("reports.samples=5")
    seen = observations[-1]
    reports = seen.reports
    assert set(reports) == simulation.policy.needs
    answered = ~np.isnan(reports["gradient_norm"])
    assert answered.any()
    assert not answered[seen.stored == 0].any()
    for values in reports.values():
        assert (np.isnan(values.reshape(6, -1)).any(axis=1) == ~answered).all()
        assert not values.flags.writeable
    assert reports["embedding"].ndim == 2
    assert (reports["entropy"][answered] <= np.log(10) * (1 + 1e-6)).all()
    np.testing.assert_array_equal(reports["gain"][answered], simulation.world.gain[answered])


def test_reports_have_their_shape_where_nobody_answers() -> None:
    """Nobody reports, since every fade is too deep."""
    observations, _ = heard("reports.least_fading=1e9")
    assert all(np.isnan(values).all() for seen in observations for values in seen.reports.values())
    usual, _ = heard()
    shapes = {name: values.shape for name, values in usual[-1].reports.items()}
    assert {name: values.shape for name, values in observations[-1].reports.items()} == shapes
    assert len(shapes["embedding"]) == 2


def test_norms_are_those_of_the_update_that_would_be_sent_and_of_the_gradient_of_all_that_is_held() -> None:
    observations, simulation = heard("reports.samples=2000")  # more than anybody holds
    reports = observations[-1].reports
    learner, theta, ids = simulation.learner, simulation.theta, np.flatnonzero(~np.isnan(reports["update_norm"]))
    assert learner is not None
    trained = simulation.world.train(3, ids, learner, theta)  # θ never moved
    norms = np.linalg.norm(trained.updates.astype(np.float64), axis=1)
    np.testing.assert_allclose(reports["update_norm"][ids], norms, rtol=1e-12)
    for k in ids:
        held: NDArray[np.int64] = simulation.world.stream.samples(int(k)).astype(np.int64)
        norm = float(learner.gradients(theta, held[None]).norms[0])
        assert reports["gradient_norm"][k] == pytest.approx(norm, rel=1e-5)


OWN = """
import numpy as np
import feelstream as fs
from pydantic import Field

def spread(predict, samples):
    return predict("train", samples).losses.std()

def broken(predict, samples):
    return predict("train", samples).losses[10**6]

def nothing(predict, samples):
    return np.nan

class Widest(fs.Policy):
    probe: str = Field(default="spread", description="which function of this file")

    @property
    def needs(self):
        return frozenset({__file__ + ":" + self.probe})

    def select(self, state, observation, rng):
        plan, [spread] = observation.plan(self.size), observation.reports.values()
        able = np.flatnonzero(plan.feasible & ~np.isnan(spread))
        best = able[np.argsort(-spread[able])][: self.size]
        return fs.Decision(np.sort(best), plan)

class Elsewhere(Widest):
    @property
    def needs(self):
        return frozenset({"numpy:mean"})
"""


def test_a_probe_of_ones_own_is_asked_and_its_mistakes_become_sentences(tmp_path: Path) -> None:
    file = tmp_path / "widest.py"
    file.write_text(OWN)
    mine = f"policy.name={file}:Widest"
    report = verified(fs.simulate(small(*LEARNING, mine)))  # what is paid for them is in test_extending.py
    assert any("reported" in each for each in report.not_checked)
    with pytest.raises(FeelstreamError, match=r"probe: '.*:broken' failed in round 1: IndexError.*widest\.py.*line 10"):
        fs.simulate(small(*LEARNING, mine, "policy.probe=broken"))
    with pytest.raises(FeelstreamError, match=r"probe: .*:nothing.* must return from measure an array of finite"):
        fs.simulate(small(*LEARNING, mine, "policy.probe=nothing"))
    with pytest.raises(ScenarioError, match=r"needs something that does not exist: '.*:absent': .* has no absent"):
        small(*LEARNING, mine, "policy.probe=absent")
    with pytest.raises(ScenarioError, match=r"needs 'numpy:mean', which must be in the policy's own file"):
        small(*LEARNING, f"policy.name={file}:Elsewhere")
