"""Server updates: against Flower's strategies of the same names, plain loops, and what each promises."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builders import observation, small, system
from numpy.typing import NDArray

import feelstream as fs
from feelstream.errors import EngineError
from feelstream.learning.server import ServerUpdate, UpdateContext
from feelstream.learning.server.base import Equal, FedAvg, InverseProbability, Median, Remembered, TrimmedMean, weighted
from feelstream.learning.server.fedopt import FedAdagrad, FedAdam, FedAvgM, FedYogi
from feelstream.learning.server.wrappers import Gaussian, Limited, Quantise, Smoothed, TopK
from feelstream.policies.random import Random

LEARNING = ("learning.engine=native", "learning.local.steps=3", "learning.local.batch=8", "policy.size=3")
Updates = NDArray[np.float32]


def context(held: Any, round: int = 1, **more: Any) -> UpdateContext:
    n = len(held)
    usual: dict[str, Any] = {
        "round": round, "rounds": 9, "devices": 9, "ids": np.arange(n), "held": np.asarray(held), "gain": np.ones(n),
        "probability": None, "reachable": float(np.sum(held)), "staleness": np.zeros(n, np.int64),
    }  # fmt: skip
    return UpdateContext(**usual | more)


def rounds(count: int = 6, n: int = 7, d: int = 11) -> list[tuple[Updates, Any]]:
    """Updates and how many samples each is of."""
    rng = np.random.default_rng(0)
    return [(rng.normal(0, 0.1, (n, d)).astype(np.float32), rng.integers(1, 50, n)) for _ in range(count)]


def played(server: ServerUpdate, of: list[tuple[Updates, Any]]) -> list[Updates]:
    theta, found = np.linspace(-1, 1, of[0][0].shape[1]).astype(np.float32), []
    state = server.init(len(theta))
    for t, (updates, held) in enumerate(of, 1):
        theta, state = server.step(theta, updates, context(held, t), state, np.random.default_rng(t))
        found.append(theta)
    return found


class Reply:
    """As much of a flwr Message as a strategy looks at; a real one needs a grid that sends it."""

    def __init__(self, content: Any, node: int) -> None:
        self.content, self.metadata = content, SimpleNamespace(src_node_id=node)

    def has_error(self) -> bool:
        return False

    def has_content(self) -> bool:
        return True


# Flower weighs by its metric num-examples, or not at all where its strategy is robust.
AS_IN_FLOWER = {
    "FedAvg": (FedAvg(), {}),
    "FedAvg, equal": (Equal(), {}),
    "FedAvgM": (FedAvgM(), {"server_momentum": 0.9}),
    "FedAdam": (FedAdam(), {}),
    "FedYogi": (FedYogi(), {}),
    "FedAdagrad": (FedAdagrad(), {}),
    "FedTrimmedAvg": (TrimmedMean(), {"beta": 0.2}),
    "FedMedian": (Median(), {}),
}


@pytest.mark.parametrize("name", AS_IN_FLOWER)
def test_each_is_flowers_strategy_of_its_name(name: str) -> None:
    pytest.importorskip("flwr")
    from flwr.app import ArrayRecord, MetricRecord, RecordDict
    from flwr.common import Array
    from flwr.serverapp import strategy as theirs

    server, options = AS_IN_FLOWER[name]
    strategy = getattr(theirs, name.partition(",")[0])(**options)
    theta = np.linspace(-1, 1, 11).astype(np.float32)
    for t, ((updates, held), ours) in enumerate(zip(rounds(), played(server, rounds()), strict=True), 1):
        strategy.current_arrays = (
            {"w": theta} if name in ("FedAdam", "FedYogi", "FedAdagrad") else ArrayRecord({"w": Array(theta)})
        )
        replies = []
        for update, count in zip(updates, held, strict=True):
            content = RecordDict(
                {
                    "arrays": ArrayRecord({"w": Array(theta + update)}),
                    "metrics": MetricRecord({"num-examples": 1 if "equal" in name else int(count)}),
                }
            )
            replies.append(Reply(content, len(replies) + 1))
        arrays, _ = strategy.aggregate_train(t, replies)
        theta = arrays["w"].numpy().astype(np.float32)
        np.testing.assert_allclose(ours, theta, rtol=1e-4, atol=2e-6)


def test_inverse_probabilities_are_unbiased() -> None:
    """Over 4,000 schedules that `random` draws, the mean is full participation within 5 standard errors.

    With 12 coordinates the chance that a right estimator fails is below 12 · 6·10⁻⁷.
    """
    K, d, draws = 8, 12, 4000
    rng = np.random.default_rng(0)
    updates, stored = rng.normal(size=(K, d)).astype(np.float32), rng.integers(1, 60, K)
    f_hz = np.full(K, 1e9)
    f_hz[2] = 1.0  # too slow for any round, so it never takes part
    seen = observation(system(K), f_hz=f_hz, stored=stored)
    whole = np.delete(np.arange(K), 2)
    wanted = (stored[whole, None] * updates[whole]).sum(axis=0) / stored[whole].sum()
    found = np.empty((draws, d))
    for i in range(draws):
        decision = Random(size=3).select({}, seen, np.random.default_rng([7, i]))
        ids, probability = decision.schedule, decision.probability
        assert probability is not None
        known = context(
            stored[ids], ids=ids, probability=probability[ids], reachable=float(stored[probability > 0].sum())
        )
        found[i], _ = InverseProbability().step(np.zeros(d, np.float32), updates[ids], known, {}, rng)
    error = found.std(axis=0) / np.sqrt(draws)
    assert (np.abs(found.mean(axis=0) - wanted) < 5 * error).all()
    by_data = np.abs(updates[whole].mean(axis=0) - wanted)
    assert (by_data > 5 * error).any()  # weights that ignore the data would be seen


def test_clipping_and_noise_have_the_size_that_is_asked_for() -> None:
    n, d = 10, 4000
    updates = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    clipped, _ = Gaussian(clip=1.0).changed(updates, context(np.ones(n)), {}, np.random.default_rng(1))
    np.testing.assert_allclose(np.linalg.norm(clipped, axis=1), 1.0, rtol=1e-5)
    tiny = updates * np.float32(1e-4)
    assert np.array_equal(Gaussian(clip=1.0).changed(tiny, context(np.ones(n)), {}, np.random.default_rng(1))[0], tiny)
    noisy, _ = Gaussian(clip=1.0, noise=2.0).changed(updates, context(np.ones(n)), {}, np.random.default_rng(1))
    spread = (noisy - clipped).mean(axis=0).std()
    assert spread == pytest.approx(2.0 / n, rel=5 / np.sqrt(2 * d))  # five standard errors of a standard deviation
    gain = np.geomspace(0.1, 10, n)
    radio, _ = Gaussian(receiver=0.5).changed(updates, context(np.ones(n), gain=gain), {}, np.random.default_rng(2))
    np.testing.assert_allclose((radio - updates).std(axis=1), 0.5 / np.sqrt(gain), rtol=5 / np.sqrt(2 * d))


def test_quantisation_is_unbiased_and_within_a_step() -> None:
    updates = np.random.default_rng(0).normal(size=(2, 50)).astype(np.float32)
    server, rng = Quantise(bits_each=3), np.random.default_rng(1)
    many = np.array([server.changed(updates, context([1, 1]), {}, rng)[0] for _ in range(4000)])
    step = np.linalg.norm(updates, axis=1)[:, None] / 3
    assert (np.abs(many - updates) <= step * (1 + 1e-5)).all()
    assert (np.abs(many.mean(axis=0) - updates) < 5 * step / 2 / np.sqrt(4000)).all()  # ≤ half a step
    levels = np.abs(many) / step
    np.testing.assert_allclose(levels, levels.round(), atol=1e-4)
    assert server.bits(50) == 3 * 50 + 32


def test_top_k_sends_the_largest_and_keeps_the_rest_for_the_next_time() -> None:
    server = TopK(fraction=0.4)
    updates = np.array([[5, -4, 1, 2, 0.5]], np.float32)
    sent, own = server.changed(updates, context([1], ids=np.array([3])), {}, np.random.default_rng(0))
    assert sent.tolist() == [[5, -4, 0, 0, 0]]
    sent, own = server.changed(updates * 0, context([1], ids=np.array([3])), own, np.random.default_rng(0))
    assert sent.tolist() == [[0, 0, 1, 2, 0]]
    other, own = server.changed(updates * 0, context([1], ids=np.array([4])), own, np.random.default_rng(0))
    assert not other.any()  # another device, which has left nothing out
    assert server.bits(5) == 2 * (32 + 3)
    forgets = TopK(fraction=0.4, feedback=False)
    assert forgets.changed(updates, context([1]), {}, np.random.default_rng(0))[1] == {}


def test_a_rate_of_the_server_that_is_too_high_is_named() -> None:
    """Where remembered has a rate of 1 it is local training that went too far, and its sentence is for that to say."""
    assert Remembered().diverged(7) is None
    assert "server.server_learning_rate: training" in str(Remembered(server_learning_rate=30.0).diverged(7))
    with pytest.raises(EngineError, match=r"learning\.server\.eta: training diverged in round \d with 1e\+39"):
        fs.simulate(small(*LEARNING, "learning.server.kind=fedadam", "learning.server.eta=1e39"))


@pytest.mark.parametrize("shape", [(1, 2), (40, 21_841), (3, 2**17 + 1), (2**18 + 1, 3), (70_000, 5), (20, 1)])
def test_a_weighted_sum_by_blocks_is_bit_for_bit_the_sum_at_once(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape)
    updates, weights = rng.normal(size=shape).astype(np.float32), rng.random(shape[0])
    assert np.array_equal(weighted(weights, updates), (weights[:, None] * updates).sum(axis=0))


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


def test_a_smoothed_run_keeps_and_tests_the_average(tmp_path: Path) -> None:
    """model.npz scores what the last row says, callbacks see that model, and smoothing changes no schedule."""
    seen: list[Updates] = []

    class Look(fs.Callback):
        def on_model(self, round: int, theta: NDArray[np.float32]) -> None:
            assert not theta.flags.writeable
            seen.append(theta)

    scenario = fs.preset("tiny").with_(rounds=4, server="smoothed")
    run = fs.simulate(scenario, seed=3, out=tmp_path / "run", callbacks=[Look()])
    plain = fs.simulate(scenario.with_(server="fedavg"), seed=3)
    assert run.rounds["scheduled"].to_list() == plain.rounds["scheduled"].to_list()
    assert run.rounds["accuracy"][-1] == pytest.approx(run.model().evaluate().accuracy)
    assert len(seen) == 4
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
