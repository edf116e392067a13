"""Scheduled around Flower's strategies: they average and evaluate as if nobody had chosen the nodes for them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deployed_clients import CLASSES, FAST, K, LoopGrid
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp.mod import adaptiveclipping_mod, fixedclipping_mod
from flwr.serverapp import strategy as flower
from flwr.serverapp.strategy import Result, Strategy

import feelstream as fs
from feelstream.errors import FeelstreamError, RunError
from feelstream.flower import Device, Scheduled, ScheduledFedAvg
from feelstream.flower.local_grid import Answer
from feelstream.flower.wire import QUERY

ALL = ["policy.size=4", "radio.fading=none"]  # everyone is scheduled and gets through: what FedAvg does by itself
# A network with batch normalisation has scalars that count, and some have masks.
BATCH_NORM = {
    "w": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
    "norm.num_batches_tracked": np.array(3, np.int64),
    "scale": np.array(0.5, np.float32),
    "mask": np.array([True, False, True]),
}
STEPS = (1.0, 1.75, 2.25, 6.0)  # of each device; no two distances are alike, so that Krum has no ties
FEW: dict[str, Any] = {"min_train_nodes": 1, "min_evaluate_nodes": 1, "min_available_nodes": 1}
INNER: dict[str, Callable[[], Strategy]] = {
    "FedAvg": lambda: flower.FedAvg(**FEW),
    "FedProx": lambda: flower.FedProx(proximal_mu=0.1, **FEW),
    "FedAvgM": lambda: flower.FedAvgM(server_momentum=0.5, **FEW),
    "FedAdam": lambda: flower.FedAdam(**FEW),
    "FedYogi": lambda: flower.FedYogi(**FEW),
    "FedAdagrad": lambda: flower.FedAdagrad(**FEW),
    "FedMedian": lambda: flower.FedMedian(**FEW),
    "FedTrimmedAvg": lambda: flower.FedTrimmedAvg(beta=0.25, **FEW),
    "Krum": lambda: flower.Krum(num_malicious_nodes=0, **FEW),
    "MultiKrum": lambda: flower.MultiKrum(num_malicious_nodes=0, num_nodes_to_select=2, **FEW),
    "DP, server fixed": lambda: flower.DifferentialPrivacyServerSideFixedClipping(flower.FedAvg(**FEW), 1e-12, 1e3, K),
    "DP, server adaptive": lambda: flower.DifferentialPrivacyServerSideAdaptiveClipping(
        flower.FedAvg(**FEW), 1e-12, K, initial_clipping_norm=1e3
    ),
    "DP, client fixed": lambda: flower.DifferentialPrivacyClientSideFixedClipping(flower.FedAvg(**FEW), 1e-12, 1e3, K),
    "DP, client adaptive": lambda: flower.DifferentialPrivacyClientSideAdaptiveClipping(
        flower.FedAvg(**FEW), 1e-12, K, initial_clipping_norm=1e3
    ),
}
MODS = {"DP, client fixed": fixedclipping_mod, "DP, client adaptive": adaptiveclipping_mod}
OPTIONS: dict[str, Any] = {"classes": CLASSES, "wait_s": 0.0}


def federation(kind: str = "") -> LoopGrid:
    """Devices that hold the same amount of data and move the model by different steps; they also evaluate."""
    grid = LoopGrid()
    for device in range(K):
        grid.add(10 + device, {"partition-id": device}, _answer_of(device, MODS.get(kind)))
    return grid


def _answer_of(device: int, mod: Callable[..., Message] | None) -> Answer:
    """One app for both servers: what it does for Flower's strategy alone, and for ours."""

    def plain(message: Message, context: Context) -> Message:
        if message.metadata.message_type == "evaluate":
            metrics = MetricRecord({"accuracy": 0.5 + device / 10, "num-examples": 4})
            return Message(RecordDict({"metrics": metrics}), reply_to=message)
        told = message.content.metric_records.get("feelstream.server")
        held = [2, 1, 0] if told is None else [2 * told["round"], told["round"], 0]
        if message.metadata.message_type == QUERY:
            return Device(context, message, held, f_hz=1.2e9, beta=1.0, meter=None).answer()
        received = message.content.array_records["arrays"]
        arrays = ArrayRecord({name: Array(_moved(array.numpy(), STEPS[device])) for name, array in received.items()})
        metrics = MetricRecord({"loss": STEPS[device], "num-examples": 3})
        if told is None:
            return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
        return Device(context, message, held, f_hz=1.2e9, beta=1.0, meter=None).answer(arrays, metrics)

    def answer(context: Context, message: Message) -> Message | None:
        if mod is None or message.metadata.message_type != "train":
            return plain(message, context)
        return mod(message, context, plain)

    return answer


def _moved(values: np.ndarray, step: float) -> np.ndarray:
    return np.asarray(values if values.dtype == bool else (values + step).astype(values.dtype))


def record(values: dict[str, np.ndarray]) -> ArrayRecord:
    return ArrayRecord({name: Array(np.asarray(array)) for name, array in values.items()})


@pytest.mark.slow
@pytest.mark.parametrize("kind", INNER)
def test_with_everyone_scheduled_it_is_the_inner_strategy(kind: str, tmp_path: Path) -> None:
    """Floats only, so that Flower's own run of the strategy is the independent computation."""
    start = record({"w": BATCH_NORM["w"], "b": np.zeros(3, np.float32)})
    alone: Result = INNER[kind]().start(federation(kind), start, num_rounds=3)
    strategy = Scheduled(INNER[kind](), fs.preset("tiny", [*FAST, *ALL]), out=tmp_path / "run", **OPTIONS)
    result = strategy.start(federation(kind), start, num_rounds=3)
    for name in start:
        np.testing.assert_allclose(result.arrays[name].numpy(), alone.arrays[name].numpy(), atol=1e-6)
    assert result.train_metrics_clientapp.keys() == alone.train_metrics_clientapp.keys()
    for t, metrics in alone.train_metrics_clientapp.items():
        assert dict(result.train_metrics_clientapp[t]) == pytest.approx(dict(metrics))
    assert result.evaluate_metrics_clientapp.keys() == alone.evaluate_metrics_clientapp.keys() == {1, 2, 3}
    assert fs.verify(tmp_path / "run").ok


def scheduled(inner: Strategy, *changes: str, **options: Any) -> Scheduled:
    return Scheduled(inner, fs.preset("tiny", [*FAST, *ALL, *changes]), **OPTIONS | options)


@pytest.mark.parametrize("kind", [kind for kind in INNER if kind not in MODS])  # Flower's mods subtract truth values
def test_scalars_counters_and_masks_survive(kind: str) -> None:
    result = scheduled(INNER[kind]()).start(federation(kind), record(BATCH_NORM), num_rounds=2)
    for name, before in BATCH_NORM.items():
        after = result.arrays[name].numpy()
        assert (after.dtype, after.shape) == (before.dtype, before.shape)
    np.testing.assert_array_equal(result.arrays["mask"].numpy(), BATCH_NORM["mask"])
    if kind == "FedAvg":
        assert result.arrays["scale"].numpy() == pytest.approx(0.5 + 2 * np.mean(STEPS))
        # Clients truncate: 4, 4, 5, 9 are 5.5 on average, so 6; from there 7, 7, 8, 12 are 8.5, so 8.
        assert result.arrays["norm.num_batches_tracked"].numpy() == 8


def test_the_inner_strategys_idea_of_how_many_nodes_counts_for_nothing() -> None:
    grid = federation()
    picky = flower.FedAvg(fraction_train=0.25, fraction_evaluate=0.0, min_available_nodes=100)
    scheduled(picky, "policy.size=2").start(grid, record(BATCH_NORM), num_rounds=1)
    assert sum(message.metadata.message_type == "train" for message in grid.sent) == 2
    with pytest.raises(FeelstreamError, match="fraction_train=0"):
        Scheduled(flower.FedAvg(fraction_train=0.0), "tiny")


class PulledPlugError(Exception):
    """The server's machine is gone."""


@pytest.mark.parametrize("kind", ["FedAdam", "FedAvgM", "DP, client adaptive"])
def test_a_restart_keeps_what_the_inner_strategy_has_learnt(kind: str, tmp_path: Path) -> None:
    class Doomed(Scheduled):
        def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
            if server_round == 3:
                raise PulledPlugError
            return super().aggregate_train(server_round, replies)

    start, out = record({"w": BATCH_NORM["w"]}), tmp_path / "run"
    once = scheduled(INNER[kind]()).start(federation(kind), start, num_rounds=4)
    doomed = Doomed(INNER[kind](), fs.preset("tiny", [*FAST, *ALL]), out=out, **OPTIONS)
    with pytest.raises(PulledPlugError):
        doomed.start(federation(kind), start, num_rounds=4)
    with pytest.raises(RunError, match="another engine"):
        scheduled(flower.FedAvg(**FEW), out=out).start(federation(kind), start, num_rounds=4)
    again = scheduled(INNER[kind](), out=out).start(federation(kind), start, num_rounds=4)
    np.testing.assert_allclose(again.arrays["w"].numpy(), once.arrays["w"].numpy(), atol=1e-7)
    assert again.train_metrics_clientapp == once.train_metrics_clientapp  # of all rounds, not only of the last ones
    assert fs.verify(out).ok


def test_lists_of_a_strategy_survive_a_restart(tmp_path: Path) -> None:
    class Diary(flower.FedAvg):
        def __init__(self) -> None:
            super().__init__(**FEW)
            self.entries: list[dict[str, float]] = []

        def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
            self.entries.append({"round": server_round})
            return super().aggregate_train(server_round, replies)

    start = record({"w": BATCH_NORM["w"]})
    for rounds in (2, 4):
        inner = Diary()
        scheduled(inner, out=tmp_path / "run").start(federation(), start, num_rounds=rounds)
    assert [entry["round"] for entry in inner.entries] == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["server", "client"])
def test_flowers_privacy_may_also_be_around_it(kind: str, tmp_path: Path) -> None:
    wrapper = getattr(flower, f"DifferentialPrivacy{kind.capitalize()}SideFixedClipping")
    start, mods = record({"w": BATCH_NORM["w"]}), "DP, client fixed" if kind == "client" else ""
    result = wrapper(scheduled(flower.FedAvg(**FEW)), 1e-12, 1e3, K).start(federation(mods), start, num_rounds=2)
    np.testing.assert_allclose(result.arrays["w"].numpy(), BATCH_NORM["w"] + 2 * np.mean(STEPS), atol=1e-5)
    outer = wrapper(scheduled(flower.FedAvg(**FEW), out=tmp_path / "run"), 1e-12, 1e3, K)
    with pytest.raises(FeelstreamError, match="put it inside"):
        outer.start(federation(mods), start, num_rounds=2)


def test_a_round_thrown_away_by_a_wrapper_is_one_without_replies() -> None:
    class Deaf(flower.FedAvg):
        """A wrapper that never passes a reply on."""

        def __init__(self, strategy: Strategy) -> None:
            super().__init__(fraction_evaluate=0.0)
            self.strategy = strategy
            self.configure_train = strategy.configure_train  # type: ignore[method-assign]

        def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
            return None, None

    inside = scheduled(flower.FedAvg(**FEW))
    Deaf(inside).start(federation(), record({"w": BATCH_NORM["w"]}), num_rounds=3)
    assert (inside.deployment.scheduler.server.queue_j > 0).all()  # all were charged for computing
    assert inside.deployment.patience.lost == 2


def test_a_wrapper_may_call_every_hook_twice() -> None:
    class Stuttering(flower.FedAvg):
        def __init__(self, strategy: Scheduled) -> None:
            super().__init__(fraction_evaluate=0.0)
            self.strategy = strategy

        def configure_train(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Iterable[Message]:
            first = list(self.strategy.configure_train(server_round, arrays, config, grid))
            again = list(self.strategy.configure_train(server_round, arrays, config, grid))
            assert [m.metadata.dst_node_id for m in again] == [m.metadata.dst_node_id for m in first]
            return again

        def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
            received = list(replies)
            first = self.strategy.aggregate_train(server_round, received)
            assert self.strategy.aggregate_train(server_round, received) == first
            return first

    start, plain, inside = (
        record({"w": BATCH_NORM["w"]}),
        scheduled(flower.FedAvg(**FEW)),
        scheduled(flower.FedAvg(**FEW)),
    )
    once = plain.start(federation(), start, num_rounds=3)
    twice = Stuttering(inside).start(federation(), start, num_rounds=3)
    np.testing.assert_array_equal(twice.arrays["w"].numpy(), once.arrays["w"].numpy())
    queue_j = inside.deployment.scheduler.server.queue_j
    np.testing.assert_array_equal(queue_j, plain.deployment.scheduler.server.queue_j)  # every turn is charged once


def test_a_wrapper_may_change_its_mind() -> None:
    """It passes on the replies of the second round only, and of that some twice."""
    inside, grid, start = (
        scheduled(flower.FedAvg(**FEW), "system.reliability=ignored"),
        federation(),
        record(BATCH_NORM),
    )
    grid.send_and_receive(list(inside.configure_train(1, start, ConfigRecord(), grid)))
    replies = list(grid.send_and_receive(list(inside.configure_train(2, start, ConfigRecord(), grid))))
    assert inside.aggregate_train(1, replies) == (None, None)  # too late
    arrays, _ = inside.aggregate_train(2, [*replies, *replies])
    assert arrays is not None
    np.testing.assert_allclose(arrays["w"].numpy(), BATCH_NORM["w"] + np.mean(STEPS), rtol=1e-6)
    with pytest.raises(FeelstreamError, match="round 7 cannot come now"):
        inside.configure_train(7, start, ConfigRecord(), grid)


def test_options_of_the_average_are_flowers() -> None:
    seen = []

    def collect(contents: list[RecordDict], key: str) -> MetricRecord:
        seen.append((len(contents), key))
        return MetricRecord({"mine": 7})

    scenario = fs.preset("tiny", [*FAST, *ALL])
    strategy = ScheduledFedAvg(scenario, train_metrics_aggr_fn=collect, weighted_by_key="loss", **OPTIONS)
    result = strategy.start(federation(), record({"w": BATCH_NORM["w"]}), num_rounds=1)
    assert seen == [(K, "loss")]
    assert result.train_metrics_clientapp[1]["mine"] == 7
    weighted = sum(step * step for step in STEPS) / sum(STEPS)  # each step weighted by its loss, which is the step
    np.testing.assert_allclose(result.arrays["w"].numpy(), BATCH_NORM["w"] + weighted, rtol=1e-6)
    with pytest.raises(FeelstreamError, match="option 'min_nodes'"):
        ScheduledFedAvg(scenario, min_nodes=3)


def test_the_log_is_what_flower_prints(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="flwr"):
        scheduled(flower.FedAvg(**FEW)).start(
            federation(), record(BATCH_NORM), num_rounds=2, evaluate_fn=lambda t, arrays: MetricRecord({"loss": 1.0})
        )
    said = [entry.getMessage() for entry in caplog.records]
    for line in ("Starting Scheduled strategy:", "[ROUND 1/2]", "[ROUND 2/2]", "Global evaluation", "Final results:"):
        assert said.count(line) == (2 if line == "Global evaluation" else 1)
    assert "Initial global evaluation results: {'loss': 1.0}" in said
    assert "aggregate_train: Received 4 results and 0 failures" in said


def test_a_complete_run_can_be_told_to_go_on(tmp_path: Path) -> None:
    start = record(BATCH_NORM)
    evaluate = lambda t, arrays: MetricRecord({"loss": float(t), "accuracy": 0.5})  # noqa: E731
    whole = scheduled(INNER["FedAdam"](), out=tmp_path / "whole")
    once = whole.start(federation(), start, num_rounds=5, evaluate_fn=evaluate)
    out = tmp_path / "parts"
    for rounds in (2, 5):
        twice = scheduled(INNER["FedAdam"](), out=out).start(
            federation(), start, num_rounds=rounds, evaluate_fn=evaluate
        )
    np.testing.assert_array_equal(twice.arrays["w"].numpy(), once.arrays["w"].numpy())
    assert fs.read(out).rounds.equals(fs.read(tmp_path / "whole").rounds)
    assert fs.read(out).devices.equals(fs.read(tmp_path / "whole").devices)  # type: ignore[union-attr]
    assert twice.evaluate_metrics_serverapp == once.evaluate_metrics_serverapp
    assert fs.verify(out).ok
    with pytest.raises(RunError, match="would cut it short"):
        scheduled(INNER["FedAdam"](), out=out).start(federation(), start, num_rounds=4, evaluate_fn=evaluate)
