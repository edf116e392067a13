"""Flower apps in the world of a scenario: any strategy and `Scheduled`, by the grid and by `feelstream flower try`."""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.mod import arrays_size_mod
from flwr.serverapp.strategy import FedAdam, FedAvg
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

import feelstream as fs
from feelstream.cli import app as commands
from feelstream.flower import Scheduled, WorldGrid, world_subset
from feelstream.flower.world_grid import policy_of
from feelstream.policies.base import Decision
from feelstream.report import results_in

K, T, SEED, STOCK = 6, 8, 3, Path(__file__).parents[1] / "support" / "stock_app"
BASE = [f"system.devices={K}", f"system.rounds={T}", "data.samples=600", "policy.size=2", "learning.engine=none"]
STRESS = ["radio.bandwidth_hz=1e6", "radio.received_power_dbm=-36.02"]
AWAY = ["world.availability.kind=markov", "world.availability.p_leave=0.4"]
WORLDS = {
    "plain": [],
    "late": STRESS,
    "use once, lossy": ["data.buffer.kind=use_once", "radio.block_bits=1e4", "data.eligible=with_data"],
    "fails": [*AWAY, "world.faults.kind=random", "data.arrivals.kind=bursts"],
    "batteries": ["world.harvest.kind=packets", "world.harvest.start=1.0"],
}
PROJECT = """
project.name = "stock"
[tool.flwr.app]
components = {serverapp = "server_app:app", clientapp = "client_app:app"}
config = {num-server-rounds = 4, fraction-evaluate = 1.0, local-epochs = 1, result = []}
"""


def client_app(trained: list[tuple[int, int]], labels: list[int] | None = None) -> ClientApp:
    """A client as in Flower's quickstarts, with 40 samples; trained: device and samples of every training."""
    client = ClientApp(mods=[arrays_size_mod])

    @client.train()
    def train(message: Message, context: Context) -> Message:
        (weights,) = message.content.array_records["arrays"].to_numpy_ndarrays()
        data, device = np.arange(40), int(context.node_config["partition-id"])
        held = data if labels is None else world_subset(data, message, labels or None)
        trained.append((device, len(held)))
        metrics = MetricRecord({"num-examples": len(held) + 1, "train_loss": 9.0})
        return Message(RecordDict({"arrays": ArrayRecord([weights + 1]), "metrics": metrics}), reply_to=message)

    @client.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        metrics = MetricRecord({"num-examples": 1, "eval_loss": 0.25, "eval_acc": 0.5})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    return client


def start(strategy: Any, grid: WorldGrid, rounds: int = T, **more: Any) -> Any:
    return strategy.start(grid, ArrayRecord([np.zeros((4, 3), np.float32)]), num_rounds=rounds, **more)


def sampling(**more: Any) -> FedAvg:
    random.seed(0)
    return FedAvg(fraction_train=0.5, min_train_nodes=1, min_evaluate_nodes=1, min_available_nodes=1, **more)


class Watched(WorldGrid):
    """Notes to which devices a model was sent in each round."""

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        batch = list(messages)
        numbers = super().push_messages(batch)
        if batch and batch[0].metadata.message_type == "train" and not self.over:
            called = {message.metadata.dst_node_id - 1 for message in batch}
            self.batches = {**getattr(self, "batches", {}), self._simulation.round: called}
        return numbers


@pytest.fixture(autouse=True)
def _no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strategies that wait for nodes look for them once a second."""
    monkeypatch.setattr("flwr.serverapp.strategy.strategy_utils.sleep", lambda _: None)


@pytest.mark.parametrize("world", WORLDS)
def test_counts_and_energy_are_those_of_a_simulation_of_the_same_schedule(world: str, tmp_path: Path) -> None:
    scenario, trained = fs.preset("tiny", [*BASE, *WORLDS[world]]), list[tuple[int, int]]()
    grid = Watched(scenario, client_app(trained), seed=SEED, name="FedAvg")
    result = start(sampling(), grid)
    run = grid.finish(tmp_path / "run")
    assert max(map(len, grid.batches.values())) > 1

    def schedule(observation: Any) -> Decision:
        able = observation.available & (observation.compute_time_s < observation.system.time_s)
        ids = np.array([k for k in sorted(grid.batches.get(observation.round, ())) if able[k]], np.int64)
        return Decision(ids, observation.plan(len(ids), able))

    again = fs.simulate(scenario.with_(policy=policy_of("again", K, schedule)), seed=SEED)
    assert again.devices is not None
    assert run.devices is not None
    assert_frame_equal(run.devices, again.devices)
    columns = again.rounds.drop("accuracy", "loss").columns
    assert_frame_equal(run.rounds.select(columns), again.rounds.select(columns))
    assert len(result.train_metrics_clientapp) == (run.rounds["transmitted"] > 0).sum()
    scheduled = run.devices.filter("scheduled")
    assert sorted(trained) == [(k, 40) for k in sorted(scheduled["device"])]
    assert run.evaluations is not None
    assert run.evaluations["value"].drop_nulls().to_list() == [41.0] * len(scheduled)
    accuracy = "accuracy" if run.rounds["accuracy"].null_count() == 0 else "app_accuracy"
    assert run.rounds[-1, accuracy] == pytest.approx(0.5)
    assert fs.verify(tmp_path / "run").ok


@pytest.mark.parametrize("policy", ["lyapunov", "random"])
def test_scheduled_does_what_the_simulator_does(policy: str, tmp_path: Path) -> None:
    scenario = fs.preset("tiny", [*BASE, *STRESS, "data.buffer.kind=use_once", f"policy.name={policy}"])
    grid = WorldGrid(scenario, client_app([]), seed=SEED)
    exact: Any = {"max_report_age": 0, "enough_reports": 1.0, "passes": False, "max_examples": None}
    start(Scheduled(sampling(), scenario, seed=SEED, out=tmp_path / "run", **exact), grid)
    found, simulated = fs.read(tmp_path / "run").devices, fs.simulate(scenario, seed=SEED).devices
    assert grid.scheduled
    assert found is not None
    assert simulated is not None
    columns = ["round", "device", "stored", "fresh", "scheduled", "transmitted", "e_cmp_j", "e_tr_j", "queue_next_j"]
    assert_frame_equal(found.select(columns), simulated.select(columns))


def test_devices_may_report_cells_in_a_world(tmp_path: Path) -> None:
    """What the server has settled for a sketch comes with questions, and reports after training know it too."""
    sketch = ["data.features.kind=sketch", "data.features.cells=5", "data.features.reference_samples=200"]
    scenario = fs.preset("tiny", [*BASE, *sketch])
    start(Scheduled(sampling(), scenario, out=tmp_path / "run"), WorldGrid(scenario, client_app([]), seed=SEED))
    run = fs.read(tmp_path / "run")
    assert run.rounds["transmitted"].sum() > 0
    assert fs.verify(run).ok


def test_late_replies_come_late() -> None:
    grid = WorldGrid(fs.preset("tiny", [*BASE, *STRESS]), client_app([]), seed=SEED)
    model, came = RecordDict({"arrays": ArrayRecord([np.zeros(2)])}), list[tuple[int, int]]()
    for _ in range(T // 2):
        numbers = list(grid.push_messages([Message(model, node, "train") for node in grid.get_node_ids()]))
        on_time = sum(not reply.has_error() for reply in grid.pull_messages(numbers))
        list(grid.push_messages([Message(model, 1, "train")]))
        came.append((on_time, on_time + len(list(grid.pull_messages(numbers)))))
    rounds = grid.finish().rounds[::2]
    assert came == list(rounds.select("transmitted", "scheduled").iter_rows())
    assert rounds["transmitted"].sum() < rounds["scheduled"].sum()


def test_a_strategy_that_waits_for_nodes_lets_rounds_go_by() -> None:
    grid = WorldGrid(fs.preset("tiny", [*BASE, *AWAY, "system.rounds=40"]), client_app([]), seed=SEED)
    start(FedAdam(fraction_evaluate=0.0, min_available_nodes=K - 2), grid, rounds=3)
    rounds = grid.finish().rounds
    assert rounds["scheduled"][-1] > 0
    assert len(rounds) > 3
    assert (rounds["scheduled"] > 0).sum() == 3
    few = WorldGrid(fs.preset("tiny", BASE), client_app([]))
    with pytest.raises(fs.FeelstreamError, match=r"waits for more nodes than the scenario has: 6 \(system.devices\)"):
        start(FedAvg(min_available_nodes=K + 1), few)


@pytest.mark.parametrize(("asked", "played"), [(3, 3), (T + 2, T)])
def test_the_shorter_of_num_rounds_and_the_scenario_counts(asked: int, played: int, tmp_path: Path) -> None:
    grid = WorldGrid(fs.preset("tiny", BASE), client_app([]))
    tested = {1: MetricRecord({"loss": 2.0, "accuracy": 0.25}), played: MetricRecord({"loss": 1.0, "accuracy": 0.75})}
    start(sampling(fraction_evaluate=0.0), grid, asked, evaluate_fn=lambda t, _: tested.get(t))
    rounds = grid.finish(tmp_path / "run").rounds
    assert len(rounds) == played
    assert rounds.filter(pl.col("app_accuracy").is_not_null())["app_accuracy"].to_list() == [0.25, 0.75]
    assert fs.verify(tmp_path / "run").ok


def test_arrivals_count_for_a_client_that_asks(caplog: pytest.LogCaptureFixture) -> None:
    trained = list[tuple[int, int]]()
    grid = WorldGrid(fs.preset("tiny", BASE), client_app(trained, labels=[]), seed=SEED)
    start(sampling(), grid)
    run = grid.finish()
    assert run.devices is not None
    assert sorted(trained) == sorted(run.devices.filter("scheduled").select("device", "stored").iter_rows())
    lacking = WorldGrid(fs.preset("tiny", BASE), client_app([], labels=[77] * 40), seed=SEED)
    start(sampling(), lacking)
    assert (
        "the ClientApp failed: device 5 has samples of label 0 by the scenario, and its client has none" in caplog.text
    )


def test_an_exception_is_an_error_reply_and_if_nobody_trains_the_end() -> None:
    client = ClientApp()

    @client.train()
    def train(message: Message, context: Context) -> Message:
        raise ValueError(f"there is no partition {context.node_config['partition-id']}")

    grid = WorldGrid(fs.preset("tiny", BASE), client, seed=SEED)
    replies = list(grid.send_and_receive([Message(RecordDict(), 1, "train"), Message(RecordDict(), 99, "train")]))
    assert [reply.error.code for reply in replies] == [2]
    with pytest.raises(
        fs.FeelstreamError, match=r"no client could train: ValueError: there is no partition 0 \(the sc"
    ):
        grid.finish()


def test_a_subset_is_of_the_devices_own_data() -> None:
    """By arrival it begins again after the last sample, by label each label does; elsewhere it is all of the data."""
    found: list[Any] = []
    client, labels, data = ClientApp(), np.array([*range(10), *range(10), 0]), np.arange(21)

    @client.train()
    def train(message: Message, context: Context) -> Message:
        found.extend([*world_subset((data, data.tolist()), message), world_subset(data, message, labels)])
        return Message(message.content, reply_to=message)

    model = RecordDict({"arrays": ArrayRecord([np.zeros(2)])})
    grid = WorldGrid(fs.preset("tiny", BASE), client, seed=SEED)
    for _ in range(T):
        grid.send_and_receive([Message(model, 1, "train")])
    devices = grid.finish().devices
    assert devices is not None
    for row in (trained := devices.filter("scheduled")).iter_rows(named=True):
        rows, as_list, by_label = (found.pop(0) for _ in range(3))
        assert rows.tolist() == as_list == [i % 21 for i in range(row["stored"])]
        held = np.add(row["used_labels"], row["fresh_labels"])
        assert np.bincount(labels[by_label], minlength=10).tolist() == held.tolist()
    assert trained["stored"].max() == 600 // K  # all of its shard
    assert world_subset(data, Message(model, 1, "train")) is data


@pytest.fixture
def stock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    shutil.copytree(STOCK, tmp_path / "stock", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "stock" / "pyproject.toml").write_text(PROJECT)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("task", "server_app", "client_app"):
        sys.modules.pop(name, None)
    yield tmp_path / "stock"
    for name in ("task", "server_app", "client_app"):
        sys.modules.pop(name, None)


def try_(app: Path, *words: str, out: str = "runs/first") -> Any:
    settings = [word for field in BASE for word in ("--set", field)]
    command = ["flower", "try", str(app), "--scenario", "tiny", "--out", str(app.parent / out), *settings, *words]
    return CliRunner().invoke(commands, command, catch_exceptions=True)


def test_an_app_is_tried_and_compared(stock: Path) -> None:
    assert try_(stock, "--run-config", "num-server-rounds=3", "--json").exit_code == 0
    assert try_(stock, "--run-config", "num-server-rounds=3", "--name", "again", out="runs/second").exit_code == 0
    results = results_in(stock.parent / "runs")
    assert [arm.label for arm in results.plan.arms] == ["stock", "again"]
    assert results.rounds()["accuracy"].null_count() == 0
    assert len(results.rounds()) == 6


MISTAKES = {
    "it has no pyproject.toml": ("pyproject.toml", None, ()),
    "lacks 'components'": ("pyproject.toml", PROJECT.replace("components", "parts"), ()),
    "must be TOML": ("pyproject.toml", PROJECT, ("--run-config", "a b")),
    "the app has no setting 'rounds'": ("pyproject.toml", PROJECT, ("--run-config", "rounds=3")),
    "the app failed: ValueError: too many": ("task.py", "raise ValueError('too many')", ()),
    "name: 'lyapunov' is a policy of ours": ("pyproject.toml", PROJECT, ("--name", "lyapunov")),
}


@pytest.mark.parametrize("said", MISTAKES)
def test_what_is_wrong_is_said_in_a_sentence(said: str, stock: Path) -> None:
    file, text, words = MISTAKES[said]
    (stock / file).unlink()
    if text is not None:
        (stock / file).write_text(text)
    problem = try_(stock, *words).exception
    assert isinstance(problem, fs.FeelstreamError)
    assert said in str(problem)
