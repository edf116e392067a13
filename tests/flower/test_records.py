"""Whatever a client sends reaches the strategy inside as Flower would hand it over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from deployed_clients import CLASSES, FAST, START, growing, model
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import adaptiveclipping_mod, fixedclipping_mod
from flwr.serverapp import strategy as flower

import feelstream as fs
from feelstream.flower import Device, Scheduled
from feelstream.flower.fleet import DeploymentError
from feelstream.flower.local_grid import Answer, LocalGrid
from feelstream.flower.updates import read_model, write_model

Trained = Callable[[ArrayRecord], RecordDict]


def app(trained: Trained, mods: list[Any] | None = None) -> Answer:
    """A ClientApp whose training gives these records."""
    found = ClientApp(mods=mods)

    @found.query("feelstream")
    def report(message: Message, context: Context) -> Message:
        return Device(context, message, growing(1), f_hz=1.2e9, beta=1.0, meter=None).answer()

    @found.train()
    def train(message: Message, context: Context) -> Message:
        device = Device(context, message, growing(1), f_hz=1.2e9, beta=1.0, meter=None)
        return device.reply(trained(message.content.array_records["arrays"]))

    return lambda context, message: found(message, context)


def started(inner: flower.Strategy, *answers: Answer, arrays: ArrayRecord | None = None, **options: Any) -> Any:
    grid = LocalGrid()
    for device, answer in enumerate(answers):
        grid.add(10 + device, {"partition-id": device}, answer)
    scenario = fs.preset("tiny", [*FAST, "policy.size=3", "radio.fading=none"])
    strategy = Scheduled(inner, scenario, classes=CLASSES, wait_s=0.0, **options)
    return strategy.start(grid, arrays or model(), num_rounds=2)


def moved(arrays: ArrayRecord, step: float = 1.0) -> ArrayRecord:
    return ArrayRecord({name: Array((a.numpy() + step).astype(a.numpy().dtype)) for name, a in arrays.items()})


def scaffold_like(arrays: ArrayRecord) -> RecordDict:
    return RecordDict(
        {
            "arrays": moved(arrays),
            "control": ArrayRecord({"c": Array(np.ones(3))}),
            "metrics": MetricRecord({"num-examples": 3, "loss": 1.0}),
            "timings": MetricRecord({"epoch-s": 0.5}),
            "train_metadata": ConfigRecord({"library": "torch"}),
        }
    )


class Scaffold(flower.FedAvg):
    """Sums the second set of arrays up, and averages the first as ever."""

    control, seen = 0.0, ()

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        replies = list(replies)
        for reply in replies:
            self.control += reply.content.array_records["control"]["c"].numpy().sum()
            self.seen = sorted(reply.content)
            reply.content = RecordDict({key: reply.content[key] for key in ("arrays", "metrics")})
        return super().aggregate_train(server_round, replies)


def test_all_records_reach_a_strategy_that_asks_for_them() -> None:
    inner = Scaffold(fraction_evaluate=0.0)
    result = started(inner, app(scaffold_like), app(scaffold_like))
    assert inner.seen == ["arrays", "control", "metrics", "timings", "train_metadata"]
    assert inner.control == 2 * 2 * 3
    np.testing.assert_allclose(result.arrays["w"].numpy(), 2.0)


def test_one_reply_that_lacks_a_record_is_refused() -> None:
    inner = Scaffold(fraction_evaluate=0.0)
    plain = app(lambda arrays: RecordDict({"arrays": moved(arrays, 50.0), "metrics": MetricRecord({"loss": 1.0})}))
    started(inner, app(scaffold_like), app(scaffold_like), plain)
    assert inner.control == 2 * 2 * 3


def test_texts_pass_flowers_own_strategies_and_reach_the_functions_of_metrics() -> None:
    libraries = []

    def collect(contents: list[RecordDict], key: str) -> MetricRecord:
        libraries.extend(content.config_records["train_metadata"]["library"] for content in contents)
        return MetricRecord({"replies": len(contents)})

    def trained(arrays: ArrayRecord) -> RecordDict:
        found = scaffold_like(arrays)
        return RecordDict({key: found[key] for key in ("arrays", "metrics", "train_metadata")})

    started(flower.FedAvg(fraction_evaluate=0.0, train_metrics_aggr_fn=collect), app(trained), app(trained))
    assert libraries == ["torch"] * 4


class Growing(flower.FedAvg):
    """A model of trees, as bytes: what comes is added to it."""

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        sent = [reply.content.array_records["arrays"]["0"].numpy() for reply in replies]
        self.grown = np.concatenate([getattr(self, "grown", np.zeros(0, np.uint8)), *sent])
        return ArrayRecord([self.grown]), MetricRecord()


def test_a_model_may_grow_where_updates_are_not_checked() -> None:
    def trained(arrays: ArrayRecord) -> RecordDict:
        return RecordDict({"arrays": ArrayRecord([np.frombuffer(b"tree", np.uint8)]), "metrics": MetricRecord()})

    empty = ArrayRecord([np.zeros(0, np.uint8)])
    inner = Growing(fraction_evaluate=0.0)
    result = started(inner, app(trained), app(trained), arrays=empty, check_updates=False)
    assert result.arrays["0"].numpy().tobytes() == b"tree" * 4
    with pytest.raises(DeploymentError, match=r"array '0' is uint8 \(4,\), not uint8 \(0,\)"):
        started(Growing(fraction_evaluate=0.0), app(trained), arrays=empty)


@pytest.mark.parametrize("strategy", [flower.FedXgbBagging, flower.FedXgbCyclic])
def test_updates_of_flowers_tree_strategies_are_not_checked(strategy: Any) -> None:
    scenario = fs.preset("tiny", FAST)
    assert not Scheduled(strategy(), scenario, classes=CLASSES).inner.check_updates
    assert Scheduled(flower.FedAvg(), scenario, classes=CLASSES).inner.check_updates


@pytest.mark.parametrize("kind", ["Fixed", "Adaptive"])
def test_modifiers_of_a_whole_app_let_the_question_through(kind: str) -> None:
    """`ClientApp(mods=[…])`, as Flower's page on differential privacy has it."""
    mod = fixedclipping_mod if kind == "Fixed" else adaptiveclipping_mod
    wrapper = getattr(flower, f"DifferentialPrivacyClientSide{kind}Clipping")
    start = ArrayRecord({"w": Array(START["w"])})
    averaging = flower.FedAvg(fraction_evaluate=0.0, min_train_nodes=1, min_available_nodes=1)
    inner = wrapper(averaging, 1e-12, *([1e3, 2] if kind == "Fixed" else [2]))

    def trained(arrays: ArrayRecord) -> RecordDict:
        return RecordDict({"arrays": moved(arrays, 0.01), "metrics": MetricRecord({"num-examples": 3})})

    result = started(inner, app(trained, [mod]), app(trained, [mod]), arrays=start)
    np.testing.assert_allclose(result.arrays["w"].numpy(), 0.02, atol=1e-5)


def test_the_model_is_read_once_and_the_strategy_inside_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    for name, done in (("read", read_model), ("write", write_model)):
        counted = lambda model, name=name, done=done: calls.append(name) or done(model)  # noqa: E731
        monkeypatch.setattr(f"feelstream.flower.inner.{name}_model", counted)

    def trained(arrays: ArrayRecord) -> RecordDict:
        return RecordDict({"arrays": moved(arrays), "metrics": MetricRecord({"num-examples": 3})})

    start = ArrayRecord({"w": Array(START["w"])})
    started(flower.FedAvg(fraction_evaluate=0.0), app(trained), app(trained), arrays=start)
    assert calls == ["read"]  # what the strategy inside makes is checked, and sent as it is
