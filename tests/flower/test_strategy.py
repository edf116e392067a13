"""ScheduledFedAvg against nodes that vanish, return, lie, fall silent and measure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from deployed_clients import (
    BUDGET_J,
    CLASSES,
    FAST,
    START,
    K,
    client,
    grid_of,
    growing,
    model,
    played,
    rows,
    silent_in_training,
)
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid

import feelstream as fs
from feelstream.errors import RunError, ScenarioError
from feelstream.flower import ScheduledFedAvg
from feelstream.flower.local_grid import Answer, LocalGrid
from feelstream.flower.wire import QUERY, REPORT
from feelstream.policies import POLICIES
from feelstream.run.files import write_atomically

OPTIONS: dict[str, Any] = {"classes": CLASSES, "wait_s": 0.0, "give_up_after": None}


def strategy(*overrides: str, **options: Any) -> ScheduledFedAvg:
    scenario = fs.preset("tiny", [*FAST, *overrides])
    return ScheduledFedAvg(scenario, **OPTIONS | options)


def queries(grid: LocalGrid) -> int:
    return sum(message.metadata.message_type == QUERY for message in grid.sent)


def test_the_average_is_weighted_by_stored_samples() -> None:
    grid = grid_of(client(lambda t: [30, 0, 0], 1.0), client(lambda t: [0, 10, 0], 5.0))
    result = strategy().start(grid, model(), num_rounds=1)
    expected = (30 * 1.0 + 10 * 5.0) / 40
    np.testing.assert_allclose(result.arrays["w"].numpy(), expected)
    assert result.arrays["steps"].numpy().tolist() == [round(expected)]
    assert result.arrays["steps"].numpy().dtype == np.int64
    assert result.train_metrics_clientapp[1]["loss"] == pytest.approx(expected)


@pytest.mark.parametrize(
    "answers",
    [
        [],
        [client(lambda t: [0, 0, 0])] * K,
        [silent_in_training(client(growing))] * K,
        [lambda context, message: None] * K,
    ],
    ids=["nobody there", "no samples", "no reply", "deaf"],
)
def test_an_empty_round_changes_nothing_and_the_run_goes_on(answers: list[Answer], tmp_path: Path) -> None:
    result = strategy(out=tmp_path / "run").start(grid_of(*answers), model(), num_rounds=3)
    np.testing.assert_array_equal(result.arrays["w"].numpy(), START["w"])
    assert fs.read(tmp_path / "run").rounds["transmitted"].sum() == 0
    assert fs.verify(tmp_path / "run").ok


def test_a_silent_trainer_is_charged_for_computing(tmp_path: Path) -> None:
    grid = grid_of(silent_in_training(client(growing)), client(growing))
    settings = "radio.fading=none", "system.reliability=ignored"
    strategy(*settings, out=tmp_path / "run").start(grid, model(), num_rounds=2)
    silent = rows(tmp_path / "run", 0)
    computing = 1e-27 * 419328000 * 1.2e9**2
    assert silent["scheduled"].all()
    assert not silent["transmitted"].any()
    np.testing.assert_allclose(silent["e_cmp_j"], computing)
    np.testing.assert_allclose(silent["queue_next_j"], [computing - BUDGET_J, 2 * (computing - BUDGET_J)])
    assert fs.verify(tmp_path / "run").ok


DEPLOYABLE = [name for name in POLICIES.names() if not POLICIES.lookup(name)().probes]  # type: ignore[attr-defined]


def test_a_policy_that_asks_for_reports_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"policy\.name: 'gradient_norm' asks devices for gain, gradient_norm"):
        ScheduledFedAvg(fs.preset("tiny", ["policy.name=gradient_norm"]), **OPTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("policy", DEPLOYABLE)
def test_no_policy_minds_silence_and_absence(policy: str, tmp_path: Path) -> None:
    grid = grid_of(silent_in_training(client(growing)), client(growing))  # and two that never come
    changes = [f"policy.name={policy}", "policy.size=2", "system.energy_budget_j=1.0"]
    played(fs.preset("tiny", [*FAST[:2], FAST[3], *changes]), grid, 4, tmp_path / "run", give_up_after=None)
    assert not rows(tmp_path / "run").filter(pl.col("device") != 1)["transmitted"].any()
    assert rows(tmp_path / "run", 1)["transmitted"].any()


def garbage(context: Context, message: Message) -> Message:
    nonsense = ConfigRecord({"name": "0", "stored-labels": [-1], "f-hz": 3.0})
    return Message(RecordDict({REPORT: nonsense}), reply_to=message)


def test_a_bad_report_keeps_a_device_out(tmp_path: Path) -> None:
    grid = grid_of(garbage, client(growing))
    strategy(out=tmp_path / "run").start(grid, model(), num_rounds=2)
    assert not rows(tmp_path / "run", 0)["feasible"].any()
    assert rows(tmp_path / "run", 1)["transmitted"].all()
    assert fs.verify(tmp_path / "run").ok


def test_nobody_can_take_the_name_of_one_who_answers(tmp_path: Path) -> None:
    grid = grid_of(client(lambda t: [1, 0, 0], 1.0))
    grid.add(99, {"partition-id": 0}, client(lambda t: [1000, 0, 0], 100.0))
    grid.add(98, {"device-name": "unlisted"}, client(growing, 100.0))
    result = strategy(max_report_age=0).start(grid, model(), num_rounds=2)
    np.testing.assert_allclose(result.arrays["w"].numpy(), 2.0)


def test_a_device_that_returns_keeps_its_queue(tmp_path: Path) -> None:
    devices = grid_of(client(growing), client(growing))

    class Watched(ScheduledFedAvg):
        def configure_train(self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid) -> Any:
            if server_round == 2:
                devices.remove(10)
            if server_round == 4:  # back, as another node and without its memory
                devices.add(77, {"partition-id": 0}, client(growing))
            return super().configure_train(server_round, arrays, config, grid)

    scenario = fs.preset("tiny", FAST)
    Watched(scenario, out=tmp_path / "run", **OPTIONS).start(devices, model(), num_rounds=5)
    device = rows(tmp_path / "run", 0)
    assert device["transmitted"].to_list() == [True, False, False, True, True]
    queue, budget = device["queue_next_j"].to_list(), BUDGET_J
    assert queue[2] == pytest.approx(queue[0] - 2 * budget)
    assert device["queue_j"].to_list()[3] == queue[2]
    assert device["report_age"].to_list()[:3] == [0, 1, 2]
    assert fs.verify(tmp_path / "run").ok


def test_a_device_that_returns_need_not_wait_for_its_old_node_to_be_given_up() -> None:
    grid = grid_of(lambda context, message: None)  # crashed, but still in Flower's list
    chosen = strategy(max_report_age=0)
    chosen.deployment.directory.update([10])
    chosen.deployment.directory.introduce(10, "0")
    grid.add(77, {"partition-id": 0}, client(growing))
    list(chosen.configure_train(1, model(), ConfigRecord(), grid))
    assert chosen.deployment.directory.node_of[0] == 77


def test_reports_ride_on_replies_and_only_the_others_are_asked(tmp_path: Path) -> None:
    grid = grid_of(*[client(growing)] * K)
    options = {"max_report_age": 2, "out": tmp_path / "run"}
    strategy("policy.size=2", "policy.V=0.0001", **options).start(grid, model(), num_rounds=8)
    # Asked: everyone in the first round, and after that those whose last report is three rounds old; they report then.
    asked = K
    for device in range(K):
        reported = 1
        sent = rows(tmp_path / "run", device)["transmitted"].to_list()
        for round in range(1, 9):
            if round - reported > 2:
                asked, reported = asked + 1, round
            if sent[round - 1]:
                reported = round
    assert queries(grid) == asked
    assert asked < 8 * K
    assert rows(tmp_path / "run")["report_age"].max() == 2
    assert fs.verify(tmp_path / "run").ok


def test_everyone_is_asked_when_no_report_may_be_old() -> None:
    grid = grid_of(*[client(growing)] * K)
    strategy(max_report_age=0).start(grid, model(), num_rounds=3)
    assert queries(grid) == 3 * K


def test_node_ids_decide_nothing(tmp_path: Path) -> None:
    tables = []
    for name, ids in {"a": [5, 6, 7, 8], "b": [902, 13, 411, 2]}.items():
        grid = LocalGrid()
        for device, node in enumerate(ids):
            grid.add(node, {"partition-id": device}, client(growing))  # all alike: ties everywhere
        strategy(out=tmp_path / name, seed=4).start(grid, model(), num_rounds=4)
        tables.append(fs.read(tmp_path / name).devices)
    assert tables[0].equals(tables[1])


def test_measured_energies_fill_the_queue(tmp_path: Path) -> None:
    measured = {"t_cmp_s": 1.5, "e_cmp_j": 0.25, "t_tr_s": 0.5, "e_tr_j": 0.125}
    grid = grid_of(client(growing, after=measured), client(growing))
    strategy(out=tmp_path / "run").start(grid, model(), num_rounds=2)
    metered = rows(tmp_path / "run", 0)
    assert metered["e_cmp_j_measured"].all()
    np.testing.assert_allclose(metered["queue_next_j"], [0.375 - BUDGET_J, 2 * (0.375 - BUDGET_J)])
    assert fs.verify(tmp_path / "run").ok


def test_who_is_late_by_its_own_clock_is_dropped(tmp_path: Path) -> None:
    grid = grid_of(client(growing, after={"t_cmp_s": 5.0, "e_cmp_j": 0.25}), client(growing, 2.0))
    result = strategy(out=tmp_path / "run").start(grid, model(), num_rounds=1)
    np.testing.assert_allclose(result.arrays["w"].numpy(), 2.0)
    late = rows(tmp_path / "run", 0)
    assert not late["transmitted"].any()
    assert late["e_cmp_j"].to_list() == [0.25]
    assert fs.verify(tmp_path / "run").ok


class PulledPlugError(Exception):
    """The server's machine is gone."""


def test_a_restarted_server_goes_on_with_queues_and_model(tmp_path: Path) -> None:
    class Doomed(ScheduledFedAvg):
        def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
            if server_round == 3:
                raise PulledPlugError
            return super().aggregate_train(server_round, replies)

    answers = [client(growing), client(lambda t: [0, t, 3 * t], 3.0), client(lambda t: [1, 1, 1])]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    once = strategy("policy.size=2", out=whole).start(grid_of(*answers), model(), num_rounds=5)
    grid = grid_of(*answers)
    scenario = fs.preset("tiny", [*FAST, "policy.size=2"])
    with pytest.raises(PulledPlugError):
        Doomed(scenario, out=broken, **OPTIONS).start(grid, model(), num_rounds=5)
    with pytest.raises(RunError, match="another scenario"):
        strategy("policy.size=1", out=broken).start(grid, model(), num_rounds=5)
    twice = strategy("policy.size=2", out=broken).start(grid, model(), num_rounds=5)
    for name in START:
        np.testing.assert_array_equal(twice.arrays[name].numpy(), once.arrays[name].numpy())
    assert fs.read(whole).rounds.equals(fs.read(broken).rounds)
    assert fs.verify(broken).ok
    done = strategy("policy.size=2", out=broken).start(LocalGrid(), model(), num_rounds=5)  # nothing left to do
    np.testing.assert_array_equal(done.arrays["w"].numpy(), once.arrays["w"].numpy())


@pytest.mark.parametrize("cut", ["model.npz", "run.json"])
def test_a_server_killed_while_it_writes_its_last_files_loses_nothing(
    cut: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(path: Path, *args: Any) -> str:
        if path.name == cut and (path.parent / "rounds.parquet").exists():
            raise PulledPlugError
        return write_atomically(path, *args)

    answers, out = [client(growing), client(lambda t: [0, t, 3 * t], 3.0)], tmp_path / "run"
    once = strategy().start(grid_of(*answers), model(), num_rounds=3)
    with monkeypatch.context() as patched:
        for module in ("feelstream.run.files", "feelstream.flower.play"):
            patched.setattr(f"{module}.write_atomically", write)
        with pytest.raises(PulledPlugError):
            strategy(out=out).start(grid_of(*answers), model(), num_rounds=3)
    with pytest.raises(RunError, match="unfinished"):
        fs.read(out)
    for _ in range(2):  # finishes the run, then only reads it
        again = strategy(out=out).start(LocalGrid(), model(), num_rounds=3)
        np.testing.assert_array_equal(again.arrays["w"].numpy(), once.arrays["w"].numpy())
    assert fs.verify(out).ok


def test_a_run_without_its_model_is_not_taken_for_a_trained_one(tmp_path: Path) -> None:
    strategy(out=tmp_path / "run").start(grid_of(client(growing)), model(), num_rounds=1)
    (tmp_path / "run" / "model.npz").unlink()
    with pytest.raises(RunError, match=r"not its model\.npz"):
        strategy(out=tmp_path / "run").start(LocalGrid(), model(), num_rounds=1)


def test_accuracy_is_stored_where_the_server_evaluates(tmp_path: Path) -> None:
    def evaluate(round: int, arrays: ArrayRecord) -> MetricRecord:
        return MetricRecord({"accuracy": 0.5, "loss": float(arrays["w"].numpy().mean())})

    chosen = strategy("learning.eval_every=2", out=tmp_path / "run")
    chosen.start(grid_of(client(growing)), model(), num_rounds=3, evaluate_fn=evaluate)
    assert fs.read(tmp_path / "run").rounds["loss"].to_list() == [1.0, 2.0, 3.0]
    assert fs.verify(tmp_path / "run").ok


@pytest.mark.parametrize("found", [None, MetricRecord({"perplexity": 3.0}), MetricRecord({"loss": 1, "accuracy": 97})])
def test_the_server_may_evaluate_what_it_likes(found: MetricRecord | None, tmp_path: Path) -> None:
    chosen = strategy(out=tmp_path / "run")
    result = chosen.start(grid_of(client(growing)), model(), 2, evaluate_fn=lambda round, arrays: found)
    assert list(result.evaluate_metrics_serverapp) == ([] if found is None else [0, 1, 2])
    assert fs.read(tmp_path / "run").rounds["accuracy"].to_list() == [None, None]
    assert fs.verify(tmp_path / "run").ok


def test_policy_and_names_can_be_given(tmp_path: Path) -> None:
    names = ["north", "south", "east", "west"]
    grid = LocalGrid()
    grid.add(3, {"device-name": "east"}, client(growing))
    chosen = strategy(policy="random", names=names, out=tmp_path / "run")
    chosen.start(grid, model(), num_rounds=1)
    assert rows(tmp_path / "run", 2)["transmitted"].all()
    about = fs.read(tmp_path / "run").about
    assert about["deployment"]["names"] == names
    assert about["scenario"]["policy"]["name"] == "random"
