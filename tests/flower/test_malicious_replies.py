"""No reply ends a run: each is refused with a reason, and the model is that of the honest."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from deployed_clients import CLASSES, FAST, client, grid_of, growing, model, rows
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, MetricRecord
from flwr.serverapp import strategy as flower
from malicious_replies import BAD, HARMLESS, ODD_MEASUREMENTS, Change, metrics, report

import feelstream as fs
from feelstream.flower import Scheduled
from feelstream.flower.estimates import Readings
from feelstream.flower.fleet import DeploymentError
from feelstream.flower.local_grid import Answer


def hostile(change: Change) -> Answer:
    def answer(context: Context, message: Message) -> Message | None:
        reply = client(growing, 50.0)(context, message)
        assert reply is not None
        changed = change(reply) if message.metadata.message_type == "train" else reply
        return Message(changed, reply_to=message) if isinstance(changed, Error) else changed

    return answer


def run(answers: list[Answer], rounds: int = 2, inner: flower.Strategy | None = None, **options: Any) -> Any:
    scenario = fs.preset("tiny", [*FAST, "policy.size=3", "radio.fading=none"])
    strategy = Scheduled(
        inner or flower.FedAvg(fraction_evaluate=0.0), scenario, classes=CLASSES, wait_s=0.0, **options
    )
    return strategy.start(grid_of(*answers), model(), num_rounds=rounds)


HONEST = [client(growing, 2.0), client(growing, 4.0)]
NOBODY: Answer = lambda context, message: None  # noqa: E731


def test_there_are_enough_of_them() -> None:
    assert len(BAD) >= 60


QUICK = (
    "not a number",
    "wider",
    "complex",
    "an array too few",
    "no array",
    "another's name",
    "an error",
    "a negative gain",
)
ALL = [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in BAD]


@pytest.mark.parametrize("kind", ALL)
def test_a_malicious_reply_is_refused_and_the_honest_count(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="flwr.feelstream"):
        result = run([hostile(BAD[kind]), *HONEST], out=tmp_path / "run")
    np.testing.assert_allclose(result.arrays["w"].numpy(), 6.0)  # 3 a round, as if the other were not there
    assert result.arrays["steps"].numpy().tolist() == [6]
    first = rows(tmp_path / "run", 0)
    assert first["scheduled"].any()
    assert not first["transmitted"].any()
    (dropped,) = [line for line in caplog.messages if "reply dropped: " in line]
    assert dropped.endswith(" (device 0)")
    assert len(dropped) < 400
    assert fs.verify(tmp_path / "run").ok


@pytest.mark.parametrize("kind", ["complex", "float64 beyond float32", "an infinite weight", "two sets of arrays"])
def test_other_strategies_are_spared_as_well(kind: str) -> None:
    spoiled = run([hostile(BAD[kind]), *HONEST], inner=flower.FedAdam(fraction_evaluate=0.0))
    clean = run([NOBODY, *HONEST], inner=flower.FedAdam(fraction_evaluate=0.0))
    np.testing.assert_array_equal(spoiled.arrays["w"].numpy(), clean.arrays["w"].numpy())


def claiming(held: int) -> Answer:
    return client(lambda t: [held, 0, 0], 50.0)


# The honest store 3 samples, as all do in the first round, so the steps 50, 2 and 4 count alike.
@pytest.mark.parametrize(
    ("greedy", "options", "counts"),
    [
        *((hostile(metrics({"loss": 1.0, "num-examples": n})), {}, 3) for n in (10**12, 10**300, 1e308)),
        (claiming(1000), {"max_examples": 3}, 3),
        *((claiming(n), {}, 30) for n in (10**6, 2**31 - 1)),  # ten times the median
    ],
)
def test_nobody_takes_over_the_average_by_what_it_claims(greedy: Answer, options: Any, counts: int) -> None:
    result = run([greedy, *HONEST], rounds=1, **options)
    expected = (counts * 50 + 3 * 2 + 3 * 4) / (counts + 6)
    np.testing.assert_allclose(result.arrays["w"].numpy(), expected, rtol=1e-6)


def test_other_names_of_records_end_no_run_and_the_update_counts() -> None:
    """Flower looks in every reply where the first one has its records, and the hostile device is the first."""

    def renamed(reply: Message) -> Message:
        reply.content["mine"] = reply.content.pop("metrics")
        reply.content["metrics"] = ConfigRecord({"loss": 1.0})
        reply.content["weights"] = reply.content.pop("arrays")
        return reply

    result = run([hostile(renamed), *HONEST], rounds=1)
    np.testing.assert_allclose(result.arrays["w"].numpy(), (50 + 2 + 4) / 3, rtol=1e-6)
    assert set(result.train_metrics_clientapp[1]) == {"loss"}


def test_extra_metrics_of_one_are_left_out() -> None:
    chatty = hostile(metrics({"loss": 1.0, "pi": 3.0}))
    result = run([chatty, *HONEST], rounds=1)
    assert set(result.train_metrics_clientapp[1]) == {"loss"}


@pytest.mark.parametrize("kind", HARMLESS)
def test_what_does_no_harm_costs_no_update(kind: str) -> None:
    result = run([hostile(HARMLESS[kind]), *HONEST], rounds=1)
    np.testing.assert_allclose(result.arrays["w"].numpy(), (50 + 2 + 4) / 3, rtol=1e-6)
    assert ("loss" in result.train_metrics_clientapp[1]) == (kind == "a field too many")


def test_finite_updates_whose_average_overflows_leave_the_model() -> None:
    huge = np.full((2, 2), np.finfo(np.float32).max)

    def push(reply: Message) -> Message:
        reply.content["arrays"] = ArrayRecord({"w": Array(huge), "steps": Array(np.array([0]))})
        return reply

    class Doubling(flower.FedAvg):
        def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
            arrays, found = super().aggregate_train(server_round, replies)
            assert arrays is not None
            doubled = {name: Array(array.numpy().astype(float) * 2) for name, array in arrays.items()}
            return ArrayRecord(doubled), found

    with pytest.raises(DeploymentError, match="made no model of them"):  # since no other round made one either
        run([hostile(push)] * 3, 1, Doubling(fraction_evaluate=0.0))
    result = run([hostile(push)] * 3, 1, Doubling(fraction_evaluate=0.0), give_up_after=None)
    np.testing.assert_array_equal(result.arrays["w"].numpy(), 0.0)


@pytest.mark.parametrize("kind", ODD_MEASUREMENTS)
def test_a_broken_meter_costs_no_update(kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="flwr.feelstream"):
        result = run([hostile(ODD_MEASUREMENTS[kind]), *HONEST], rounds=1, out=tmp_path / "run")
    np.testing.assert_allclose(result.arrays["w"].numpy(), (50 + 2 + 4) / 3, rtol=1e-6)
    assert re.search(r"measurement left aside: .*must lie between .* \(device 0\)", caplog.text)
    devices = rows(tmp_path / "run")
    assert devices["transmitted"][0]
    assert not any(devices[f"{name}_measured"][0] for name in ("t_cmp_s", "e_cmp_j", "t_tr_s", "e_tr_j"))
    assert fs.verify(tmp_path / "run").ok


def test_one_absurd_reading_neither_excludes_a_device_nor_stops_the_others(tmp_path: Path) -> None:
    """With V = auto the fleet has one queue: 9e5 J in it would let nobody train for ever."""

    readings_j = iter([9e5])

    def glitch(reply: Message) -> Message | Error:
        return report(e_cmp_j=next(readings_j, 0.3))(reply)

    changes = [*FAST[:2], *FAST[3:5], "policy.V=auto", "policy.cardinality=cap", "system.energy_budget_j=0.3"]
    scenario = fs.preset("tiny", [*changes, "policy.size=3", "radio.fading=none"])
    strategy = Scheduled(
        flower.FedAvg(fraction_evaluate=0.0), scenario, classes=CLASSES, wait_s=0.0, out=tmp_path / "run"
    )
    strategy.start(grid_of(hostile(glitch), *HONEST), model(), num_rounds=30)
    devices = rows(tmp_path / "run")
    first = devices.filter(pl.col("device") == 0)
    computing_j = 1e-27 * 419328000 * 1.2e9**2
    assert 10 * computing_j <= first["e_cmp_j"].max() < 11 * computing_j  # LEAP times that and sending # pyright: ignore
    assert first["transmitted"][-10:].any()
    assert devices.filter((pl.col("device") > 0) & (pl.col("round") > 20))["transmitted"].any()


@pytest.mark.parametrize("stuck_j", [0.0, 1e-300])
def test_a_meter_that_is_stuck_does_not_capture_the_schedule(
    stuck_j: float, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its device would look as if training were free; it gets no more turns than the others."""
    spending = [client(growing, float(k), after={"t_cmp_s": 0.5, "e_cmp_j": 0.6}) for k in range(4)]
    answers = [hostile(report(t_cmp_s=0.5, e_cmp_j=stuck_j)), *spending[1:]]
    changes = [*FAST[:2], *FAST[3:5], "policy.V=auto", "policy.size=1", "system.energy_budget_j=0.1"]
    scenario = fs.preset("tiny", [*changes, "radio.fading=none"])
    strategy = Scheduled(
        flower.FedAvg(fraction_evaluate=0.0), scenario, classes=CLASSES, wait_s=0.0, out=tmp_path / "run"
    )
    strategy.start(grid_of(*answers), model(), num_rounds=40)
    devices = rows(tmp_path / "run")
    turns = devices.group_by("device", maintain_order=True).agg(pl.col("scheduled").sum())["scheduled"].to_list()
    assert turns[0] <= 16
    later = devices.filter((pl.col("device") == 0) & pl.col("scheduled") & (pl.col("round") > 4))
    assert (later["e_cmp_j"] > 0.1).all()
    assert not later["e_cmp_j_measured"].any()
    assert "reads next to nothing" in caplog.text
    assert '"meters_stuck": ["0"]' in (tmp_path / "run/logs/rounds.jsonl").read_text()
    assert fs.verify(tmp_path / "run").ok


def test_who_is_of_a_cheaper_class_is_not_taken_for_stuck() -> None:
    readings, kinds = Readings(6), np.array([0, 0, 0, 1, 1, 1])
    ratios = {0: 0.05, 1: 0.06, 2: 0.055, 3: 1.0, 4: 1.1, 5: 0.9}
    assert readings.stuck(ratios, kinds) == []
    assert readings.stuck(ratios, np.zeros(6, np.int64)) == [0, 1, 2]
    assert readings.stuck(ratios | {5: 0.05}, kinds) == [5]
    assert readings.stuck({0: 0.05, 1: 1.0}, kinds) == []  # who of the two is wrong?


def test_who_always_exaggerates_is_charged_a_bounded_amount() -> None:
    readings = Readings(4)
    for _ in range(6):
        assert readings.charged(0, 1e6, 1.0) <= 10 * 10 * 3.0
        assert readings.charged(1, 3.0, 1.0) == 3.0
        readings.add({0: 1e6, 1: 3.0, 2: 3.0, 3: 3.0})
    assert readings.charged(0, 1e6, 1.0) == 300.0
    assert readings.charged(1, 1e6, 1.0) == 30.0


def test_a_strategy_that_raises_ends_the_run_with_its_own_error() -> None:
    def stumble(contents: Any, key: str) -> MetricRecord:
        raise ZeroDivisionError("nobody expected that")

    with pytest.raises(ZeroDivisionError, match="nobody expected that"):
        run(HONEST, 20, flower.FedAvg(fraction_evaluate=0.0, train_metrics_aggr_fn=stumble))


def test_a_strategy_that_makes_no_model_is_an_error() -> None:
    class Nothing(flower.FedAvg):
        def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
            return None, None

    with pytest.raises(DeploymentError, match="for 2 rounds, but the strategy inside made no model"):
        run(HONEST, 2, Nothing(fraction_evaluate=0.0))


EVALUATIONS: dict[str, dict[str, Any]] = {
    "nan": {"accuracy": float("nan"), "num-examples": 4},
    "weight missing": {"accuracy": 1.0},
    "weight negative": {"accuracy": 1.0, "num-examples": -4},
    "weight infinite": {"accuracy": 1.0, "num-examples": float("inf")},
    "other metrics": {"precision": 1.0, "num-examples": 4},
    "a list": {"accuracy": [1.0], "num-examples": 4},
}


@pytest.mark.parametrize("kind", EVALUATIONS)
def test_a_malicious_evaluation_is_left_out(kind: str) -> None:
    def evaluating(found: dict[str, Any]) -> Answer:
        def answer(context: Context, message: Message) -> Message | None:
            if message.metadata.message_type == "evaluate":
                content = message.content
                content = type(content)({"metrics": MetricRecord(found)})
                return Message(content, reply_to=message)
            return client(growing)(context, message)

        return answer

    honest = evaluating({"accuracy": 0.5, "num-examples": 4})
    result = run([evaluating(EVALUATIONS[kind]), honest, honest], 1, flower.FedAvg())
    assert result.evaluate_metrics_clientapp[1]["accuracy"] == 0.5
