"""Server updates that remember, smooth or limit: against plain loops, and in whole runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from server_rounds import Updates, context, played, rounds

import feelstream as fs
from feelstream.learning.server import ServerUpdate, UpdateContext
from feelstream.learning.server.base import FedAvg, Remembered
from feelstream.learning.server.wrappers import Limited, Quantise, Smoothed
from feelstream.testing import check

LEARNING = ("learning.engine=native", "learning.local.steps=3", "learning.local.batch=8", "policy.size=3")


@pytest.mark.parametrize("rate", [1.0, 1.4])
def test_remembered_is_its_recursion_over_devices_that_come_and_go(rate: float) -> None:
    """Against a plain loop over all devices; device 3 never sends."""
    rng, server = np.random.default_rng(3), Remembered(discount=0.6, server_learning_rate=rate)
    theta = mine = np.zeros(5, np.float32)
    state, latest = server.init(5), {}
    for t in range(1, 9):
        ids = np.sort(rng.choice([0, 1, 2, 4, 5], rng.integers(1, 4), replace=False))
        updates, held = rng.normal(size=(len(ids), 5)).astype(np.float32), rng.integers(1, 50, len(ids))
        latest |= {k: (t, n, update) for k, n, update in zip(ids.tolist(), held.tolist(), updates, strict=True)}
        weights = {k: n * 0.6 ** (t - then) for k, (then, n, _) in latest.items()}
        mine = mine + rate * sum(weights[k] * latest[k][2] for k in latest) / sum(weights.values())
        theta, state = server.step(theta, updates, context(held, t, ids=ids), state, rng)
        np.testing.assert_allclose(theta, mine, rtol=1e-5, atol=1e-6)
    assert state["ids"].tolist() == sorted(latest)


def test_remembered_is_fedavg_where_everybody_sends_and_mifa_without_a_discount() -> None:
    for discount in (0.3, 1.0):
        together = zip(played(Remembered(discount=discount), rounds()), played(FedAvg(), rounds()), strict=True)
        for ours, fedavg in together:
            np.testing.assert_allclose(ours, fedavg, rtol=1e-6, atol=1e-7)
    server, theta, rng = Remembered(discount=1.0), np.zeros(1, np.float32), np.random.default_rng(0)
    state = server.init(1)
    for t in range(1, 6):  # two devices in turn with as much data each: the mean of the latest of both
        before, update = theta, np.array([[float(t)]], np.float32)
        theta, state = server.step(theta, update, context([7], t, ids=np.array([t % 2])), state, rng)
        assert float((theta - before)[0]) == pytest.approx(1.0 if t == 1 else t - 0.5)


def test_remembered_names_its_rate_where_a_model_diverges_by_it() -> None:
    """With a rate of 1 it is local training that went too far, and its sentence is for that to say."""
    assert Remembered().diverged(7) is None
    said = Remembered(server_learning_rate=30.0).diverged(7)
    assert said is not None
    assert said.startswith("learning.server.server_learning_rate: training diverged in round 7")


def test_remembered_forgets_what_hardly_counts() -> None:
    server, theta, state = Remembered(discount=0.5), np.zeros(2, np.float32), {}
    for t in range(1, 60):
        update = context([3], t, ids=np.array([t]))
        theta, state = server.step(theta, np.ones((1, 2), np.float32), update, state, np.random.default_rng(0))
    assert len(state["ids"]) == 20  # 0.5^19 is the last above a millionth
    assert state["round"].tolist() == list(range(40, 60))


def test_smoothed_hands_out_the_average_and_goes_on_from_the_model_itself() -> None:
    """Against the sum with weights w (1 − w)^age, of which the model that nobody has trained yet has the rest."""
    of, weight = rounds(), 0.4
    start = np.linspace(-1, 1, 11).astype(np.float32)
    plain = played(FedAvg(), of)
    theta, server = start, Smoothed(weight=weight)
    state = server.init(11)
    assert np.array_equal(server.handed_out(theta, state), start)
    for t, (updates, held) in enumerate(of, 1):
        theta, state = server.step(theta, updates, context(held, t), state, np.random.default_rng(t))
        assert np.array_equal(theta, plain[t - 1])
        rest = (1 - weight) ** t * start
        mine = rest + sum(weight * (1 - weight) ** (t - s) * plain[s - 1] for s in range(1, t + 1))
        np.testing.assert_allclose(server.handed_out(theta, state), mine, rtol=1e-5, atol=1e-6)


def test_wrappers_hand_out_what_the_inner_one_does() -> None:
    of = rounds()
    theta, server, alone = np.zeros(11, np.float32), Quantise(bits_each=16, inner=Smoothed()), Smoothed()
    state, quantised = server.init(11), []
    for t, (updates, held) in enumerate(of, 1):
        theta, state = server.step(theta, updates, context(held, t), state, np.random.default_rng(t))
        quantised.append(server.handed_out(theta, state))
    theta, state = np.zeros(11, np.float32), alone.init(11)
    for t, (updates, held) in enumerate(of, 1):
        theta, state = alone.step(theta, updates, context(held, t), state, np.random.default_rng(t))
        np.testing.assert_allclose(quantised[t - 1], alone.handed_out(theta, state), atol=1e-3)
        assert not np.allclose(theta, alone.handed_out(theta, state), atol=1e-3)


class Eager(ServerUpdate):
    """Hands out what only a step puts into its state."""

    def step(
        self, theta: Updates, updates: Updates, context: UpdateContext, state: Any, rng: np.random.Generator
    ) -> tuple[Updates, Any]:
        return theta + updates[0], {"last": np.array(theta)}

    def handed_out(self, theta: Updates, state: Any) -> Updates:
        return state["last"]


def test_what_is_handed_out_before_the_first_step_is_checked() -> None:
    assert any("KeyError" in (result.problem or "") for result in check(Eager()))


def test_a_smoothed_run_keeps_and_tests_the_average(tmp_path: Path) -> None:
    """model.npz scores what the last row says, callbacks see that model, and smoothing changes no schedule."""
    seen: list[NDArray[np.float32]] = []

    class Look(fs.Callback):
        def on_model(self, round: int, theta: NDArray[np.float32]) -> None:
            seen.append(theta)

    scenario = fs.preset("tiny").with_(rounds=4, server="smoothed")
    run = fs.simulate(scenario, seed=3, out=tmp_path / "run", callbacks=[Look()])
    plain = fs.simulate(scenario.with_(server="fedavg"), seed=3)
    assert run.rounds["scheduled"].to_list() == plain.rounds["scheduled"].to_list()
    assert run.rounds["accuracy"][-1] == pytest.approx(run.model().evaluate().accuracy)
    assert np.array_equal(seen[-1], run.model().theta)
    assert not np.array_equal(run.model().theta, plain.model().theta)


def test_limited_cuts_what_is_far_longer_than_lately_and_keeps_its_direction() -> None:
    """The medians are counted by hand: of 1, 1, 9, of the last four of 1, 1, 9, 2, and of 1, 9, 2, 40."""
    server, rng = Limited(times=2.0, window=4), np.random.default_rng(0)
    axis = np.array([0.6, 0.8], np.float32)

    def cut(norms: list[float], own: Any) -> tuple[list[float], Any]:
        sent, own = server.changed(np.outer(norms, axis).astype(np.float32), context([1] * len(norms)), own, rng)
        np.testing.assert_allclose(sent, np.outer(np.linalg.norm(sent, axis=1), axis), rtol=1e-6)
        return np.linalg.norm(sent, axis=1).tolist(), own

    found, own = cut([1, 1, 9], {})
    assert found == pytest.approx([1, 1, 2])
    found, own = cut([2], own)
    assert found == pytest.approx([2])  # twice 1.5 would be allowed
    found, own = cut([40], own)
    assert found == pytest.approx([11])  # twice (2 + 9)/2: norms count as they came
    assert own["norms"].tolist() == pytest.approx([1, 9, 2, 40])
    assert cut([0, 0, 0, 0, 0], own)[0] == [0] * 5
    found, own = cut([1, 1, 1, 1, 5, 1], own)  # more than the window: all of them count
    assert found == pytest.approx([1, 1, 1, 1, 2, 1])
    assert len(own["norms"]) == 6
