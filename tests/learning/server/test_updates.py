"""Server updates: against Flower's strategies of the same names, recursions in NumPy, and what each promises."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builders import observation, small, system
from server_rounds import context, played, rounds
from stopped import goes_on_bit_for_bit

import feelstream as fs
from feelstream.errors import EngineError, FeelstreamError, ScenarioError
from feelstream.experiment.replaying import replay
from feelstream.learning.server import ServerUpdate
from feelstream.learning.server.base import Equal, FedAvg, InverseProbability, Median, Remembered, TrimmedMean, weighted
from feelstream.learning.server.fedopt import FedAdagrad, FedAdam, FedAvgM, FedYogi
from feelstream.learning.server.wrappers import Gaussian, Quantise, TopK
from feelstream.policies.random import Random
from feelstream.run import simulate_in
from feelstream.testing import check
from feelstream.verification import verify

LEARNING = ("learning.engine=native", "learning.local.steps=3", "learning.local.batch=8", "policy.size=3")


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


def test_fedadam_is_its_recursion() -> None:
    """Reddi et al. 2021, Algorithm 2, with the bias correction of Kingma and Ba as Flower counts it."""
    theta, m, v = np.linspace(-1, 1, 11), np.zeros(11), np.zeros(11)
    for s, ((updates, held), ours) in enumerate(zip(rounds(), played(FedAdam(), rounds()), strict=True), 1):
        change = (held[:, None] * updates).sum(axis=0) / held.sum()
        m, v = 0.9 * m + 0.1 * change, 0.99 * v + 0.01 * change**2
        theta = theta + 0.1 * np.sqrt(1 - 0.99 ** (s + 1)) / (1 - 0.9 ** (s + 1)) * m / (np.sqrt(v) + 1e-3)
        np.testing.assert_allclose(ours, theta, rtol=1e-5, atol=1e-6)


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


def test_inverse_probability_is_refused_for_a_policy_that_knows_none() -> None:
    with pytest.raises(ScenarioError, match=r"learning\.server\.kind: inverse_probability needs a policy that knows"):
        small(*LEARNING, "learning.server.kind=inverse_probability")
    for policy in ("random", "select_all"):
        small(*LEARNING, "learning.server.kind=inverse_probability", f"policy.name={policy}")


def test_all_devices_with_probability_1_are_fedavg() -> None:
    every = small(*LEARNING, "policy.name=select_all")
    ours, theirs = (fs.simulate(every.with_(server=kind)).model().theta for kind in ("fedavg", "inverse_probability"))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


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


def test_noise_without_a_clip_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"learning\.server\.noise: needs clip"):
        fs.Scenario.of({"learning": {"server": {"kind": "gaussian", "noise": 1.0}}})


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


WAYS = {
    "fedadam": ("learning.server.kind=fedadam", "learning.server.eta=0.05"),
    "noise around momentum": (
        "learning.server.kind=gaussian", "learning.server.clip=1.0", "learning.server.noise=0.01",
        'learning.server.inner={kind = "fedavgm", server_momentum = 0.5}',
    ),
    "top_k": ("learning.server.kind=top_k",),
    "remembered, smoothed": ("learning.server.kind=smoothed", "learning.server.inner.kind=remembered"),
    "limited": (
        "learning.server.kind=smoothed", 'learning.server.inner={kind = "limited", inner = {kind = "remembered"}}',
    ),
    "inverse": ("learning.server.kind=inverse_probability", "policy.name=random"),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_run_goes_on_from_a_checkpoint_bit_for_bit_and_is_verified(way: str, tmp_path: Path) -> None:
    scenario = small(*LEARNING, *WAYS[way])
    whole = goes_on_bit_for_bit(tmp_path, scenario, at=5)
    assert verify(whole).ok
    assert replay(whole).ok
    assert fs.read(whole).scenario == scenario


def test_a_rate_of_the_server_that_is_too_high_is_named() -> None:
    with pytest.raises(EngineError, match=r"learning\.server\.eta: training diverged in round \d with 1e\+39"):
        fs.simulate(small(*LEARNING, "learning.server.kind=fedadam", "learning.server.eta=1e39"))


def test_one_of_ones_own_is_run_and_named_where_it_fails(tmp_path: Path) -> None:
    """tests/test_contracts.py tries all else that one may do wrong."""
    file = tmp_path / "own.py"
    file.write_text(
        "from feelstream.learning.server import ServerUpdate\n"
        "class First(ServerUpdate):\n"
        "    def step(self, theta, updates, context, state, rng):\n        return theta + updates[0], state\n"
        "class Late(First):\n    def init(self, parameters):\n        return {'v': 1 / 0}\n"
    )
    simulate_in(tmp_path / "run", small(*LEARNING, f"learning.server.kind={file}:First"))
    assert "what the user's own server update does" in verify(tmp_path / "run").not_checked
    with pytest.raises(FeelstreamError, match=r"'.*own\.py:Late' failed before the first round: .*line 7"):
        fs.simulate(small(*LEARNING, f"learning.server.kind={file}:Late"))


@pytest.mark.parametrize(
    "server",
    [
        Gaussian(clip=1.0, noise=0.5, inner=FedAdam()), TopK(inner=Quantise(inner=Median())), Quantise(bits_each=2),
        TrimmedMean(trim=0.0), Remembered(discount=1.0),
    ],
    ids=lambda each: each.plugin_name(),
)  # fmt: skip
def test_every_way_keeps_the_contract(server: ServerUpdate) -> None:
    assert [result.problem for result in check(server) if not result.ok] == []


@pytest.mark.parametrize("shape", [(1, 2), (40, 21_841), (3, 2**17 + 1), (2**18 + 1, 3), (70_000, 5), (20, 1)])
def test_a_weighted_sum_by_blocks_is_bit_for_bit_the_sum_at_once(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape)
    updates, weights = rng.normal(size=shape).astype(np.float32), rng.random(shape[0])
    assert np.array_equal(weighted(weights, updates), (weights[:, None] * updates).sum(axis=0))
