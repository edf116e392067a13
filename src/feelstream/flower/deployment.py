"""A deployment round by round: it plays in a run directory as a simulation does, and goes on after a restart."""

from __future__ import annotations

import platform
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result
from numpy.typing import NDArray

from feelstream.errors import FeelstreamError, RunError
from feelstream.flower.exchange import exchange
from feelstream.learning.contract import Evaluation
from feelstream.run import play_in
from feelstream.run.files import write_atomically
from feelstream.run.manifest import FORMAT, named_files
from feelstream.scenario import Scenario
from feelstream.scheduling import RoundRecord
from feelstream.version import __version__

if TYPE_CHECKING:
    from feelstream.flower.strategy import Evaluate, ScheduledFedAvg

MODEL = "model.npz"


class Deployment:
    """The strategy, the model and the grid of one run: what `feelstream.run.player.Player` asks for."""

    evaluation_timeout_s = 3600.0

    def __init__(
        self,
        strategy: ScheduledFedAvg,
        scenario: Scenario,
        grid: Grid,
        arrays: ArrayRecord,
        train_config: ConfigRecord | None,
        evaluate_config: ConfigRecord | None,
        evaluate_fn: Evaluate | None,
    ) -> None:
        self.strategy, self.scenario, self.grid, self.evaluate_fn = strategy, scenario, grid, evaluate_fn
        self.train_config = ConfigRecord() if train_config is None else train_config
        self.evaluate_config = ConfigRecord() if evaluate_config is None else evaluate_config
        self.result = Result(arrays=arrays)
        self.round = 0
        self.timings = {"schedule": 0.0, "train": 0.0, "settle": 0.0, "evaluate": 0.0}

    def step(self) -> RoundRecord:
        t, strategy, result, clock = self.round + 1, self.strategy, self.result, perf_counter()
        messages = list(strategy.configure_train(t, result.arrays, self.train_config, self.grid))
        clock = self._lap("schedule", clock)
        replies = exchange(self.grid, messages, strategy.deadline_s)
        clock = self._lap("train", clock)
        arrays, metrics = strategy.aggregate_train(t, replies.values())
        result.arrays = result.arrays if arrays is None else arrays
        if metrics is not None:
            result.train_metrics_clientapp[t] = metrics
        clock = self._lap("settle", clock)
        self._evaluate_on_clients(t)
        record = strategy.record
        assert record is not None  # aggregate_train has just settled the round
        learning = self.scenario.learning
        if self.evaluate_fn and (t % learning.eval_every == 0 or t == self.scenario.system.rounds):
            record = replace(record, evaluation=self._evaluate(t))
        self._lap("evaluate", clock)
        self.round = t
        return record

    def _lap(self, phase: str, since: float) -> float:
        now = perf_counter()
        self.timings[phase] += now - since
        return now

    def _evaluate_on_clients(self, t: int) -> None:
        messages = list(self.strategy.configure_evaluate(t, self.result.arrays, self.evaluate_config, self.grid))
        replies = exchange(self.grid, messages, self.evaluation_timeout_s) if messages else {}
        metrics = self.strategy.aggregate_evaluate(t, list(replies.values())) if replies else None
        if metrics is not None:
            self.result.evaluate_metrics_clientapp[t] = metrics

    def _evaluate(self, t: int) -> Evaluation:
        metrics = self.evaluate_fn(t, self.result.arrays) if self.evaluate_fn else None
        if metrics is None or not all(isinstance(metrics.get(name), int | float) for name in ("loss", "accuracy")):
            raise FeelstreamError("evaluate_fn must return a MetricRecord with the numbers 'loss' and 'accuracy'")
        self.result.evaluate_metrics_serverapp[t] = metrics
        return Evaluation(loss=_number(metrics, "loss"), accuracy=_number(metrics, "accuracy"))

    def about(self) -> dict[str, Any]:
        """What run.json says of this run."""
        strategy = self.strategy
        packages = {name: version(name) for name in ("numpy", "scipy", "polars", "flwr")}
        return {
            "format": FORMAT,
            "feelstream": __version__,
            "status": "running",
            "seed": strategy.seed,
            "scenario": self.scenario.as_dict(),
            "files": named_files(self.scenario.as_dict()),
            "engine": {"name": "flower"},
            "data": {"name": self.scenario.data.dataset, "classes": strategy.classes},
            "deployment": {
                "names": list(strategy.names),
                "deadline_s": strategy.deadline_s,
                "max_report_age": strategy.max_report_age,
            },
            "versions": {"python": platform.python_version(), **packages},
            "timings": {},
            **strategy.about,
        }

    def snapshot(self) -> dict[str, NDArray]:
        return self.strategy.scheduler.snapshot() | self.strategy.directory.snapshot() | self._model()

    def restore(self, state: dict[str, NDArray]) -> None:
        self.strategy.scheduler.restore(state)
        self.strategy.directory.restore(state)
        self.result.arrays = _model(state)
        self.round = self.strategy.scheduler.round

    def keep_model(self, directory: Path) -> None:
        """Write the model as it is now beside the tables of the run."""
        write_atomically(directory / MODEL, lambda path: _save(path, self._model()))

    def _model(self) -> dict[str, NDArray]:
        return {f"model.{name}": array.numpy() for name, array in self.result.arrays.items()}


def play(deployment: Deployment, out: Path | None) -> Result:
    """All rounds; with a directory every round is stored before the next begins, and the last model is kept there."""
    if out is None:
        while deployment.round < deployment.scenario.system.rounds:
            deployment.step()
        return deployment.result
    play_in(
        out, deployment.scenario, deployment.strategy.seed, lambda: (deployment, deployment.about()),
        checkpoint_s=0.0, finish=deployment.keep_model,
    )  # fmt: skip
    if not deployment.round:  # the run was done before; nothing was played now
        file = out / MODEL
        if not file.is_file():
            raise RunError(f"{out} holds a run that is complete, but not its {MODEL}; choose another directory")
        with np.load(file, allow_pickle=False) as stored:
            deployment.result.arrays = _model(dict(stored))
    return deployment.result


def _save(path: Path, arrays: dict[str, NDArray]) -> None:
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def _model(state: dict[str, NDArray]) -> ArrayRecord:
    prefix = "model."
    return ArrayRecord({k.removeprefix(prefix): Array(a) for k, a in state.items() if k.startswith(prefix)})


def _number(metrics: MetricRecord, name: str) -> float:
    value = metrics[name]
    assert isinstance(value, int | float)
    return float(value)
