"""The rounds of a deployment: what Flower's own loop does and prints, in a run directory that survives a restart."""

from __future__ import annotations

import io
import json
import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy
from numpy.typing import NDArray

from feelstream.arrays import Nested, flatten, unflatten
from feelstream.errors import BusyError, RunError
from feelstream.evaluation import Measured
from feelstream.flower.deployment import Deployment
from feelstream.flower.exchange import Waited, exchange
from feelstream.flower.inner import Inner
from feelstream.flower.reopening import STATE, reopen
from feelstream.flower.round_lines import lines, round_line
from feelstream.loop.round import RoundRecord
from feelstream.run import play_in
from feelstream.run.callbacks import Callback, tell
from feelstream.run.files import read_arrays, sole_writer, write_arrays, write_atomically
from feelstream.run.manifest import Manifest
from feelstream.run.trace import Rows

log = logging.getLogger("flwr")  # the lines that Flower's own loop prints
Evaluate = Callable[[int, ArrayRecord], MetricRecord | None]
MODEL = "model.npz"
ROUND_LOG, METERS = "rounds.jsonl", "meters.json"  # in `logs`
POLL_S = 0.5
HISTORIES = ("train_metrics_clientapp", "evaluate_metrics_clientapp", "evaluate_metrics_serverapp")


class Rounds:
    """One run of a strategy's hooks on a grid: what `feelstream.run.checkpoint.Player` asks for."""

    def __init__(
        self,
        hooks: Strategy,
        deployment: Deployment,
        inner: Inner,
        grid: Grid,
        arrays: ArrayRecord,
        *,
        train_config: ConfigRecord | None,
        evaluate_config: ConfigRecord | None,
        evaluate_fn: Evaluate | None,
        evaluation_timeout_s: float,
        about: Mapping[str, Any],
    ) -> None:
        self.hooks, self.deployment, self.inner, self.grid = hooks, deployment, inner, grid
        self.scenario, self.evaluate_fn, self._about = deployment.scenario, evaluate_fn, dict(about)
        self.train_config = ConfigRecord() if train_config is None else train_config
        self.evaluate_config = ConfigRecord() if evaluate_config is None else evaluate_config
        self.evaluation_timeout_s = evaluation_timeout_s
        self.result = Result(arrays=arrays)
        self.round = 0
        self.logs: Path | None = None  # the directory for logs, where the run has one
        self._noted: dict[int, str] = {}  # meters, as they were last written there
        self.timings = {"schedule": 0.0, "train": 0.0, "settle": 0.0, "evaluate": 0.0}

    @property
    def model(self) -> None:
        """The arrays of a federation have names and shapes of their own: `keep` stores them."""

    def step(self) -> RoundRecord:
        t, hooks, result, begin = self.round + 1, self.hooks, self.result, perf_counter()
        clock = begin
        if t == 1:
            self._evaluate_first()
        log.info("")
        log.info("[ROUND %s/%s]", t, self.scenario.system.rounds)
        messages = list(hooks.configure_train(t, result.arrays, self.train_config, self.grid))
        clock = self._lap("schedule", clock)
        deployment, waited = self.deployment, Waited()
        device_of = {m.metadata.dst_node_id: self._device(m.metadata.dst_node_id) for m in messages}
        timeout_s = deployment.stragglers.timeout_s(list(device_of.values()))
        replies = exchange(self.grid, messages, timeout_s, first=deployment.settings.first, waited=waited)
        clock = self._lap("train", clock)
        late = deployment.stragglers.late(t, self.grid)
        deployment.stragglers.waited(t, waited, device_of, timeout_s)
        cut = waited.unanswered.values() if waited.enough else ()
        record, updates = deployment.settle(t, replies.values(), cut)
        if deployment.settings.late == "use":
            updates += deployment.late_updates(t, late, updates)
        arrays, metrics = hooks.aggregate_train(t, updates)
        result.arrays = result.arrays if arrays is None else arrays
        if metrics is not None:
            log.info("\t└──> Aggregated MetricRecord: %s", metrics)
            result.train_metrics_clientapp[t] = metrics
        clock = self._lap("settle", clock)
        self._evaluate_on_clients(t)
        record = replace(record, measured=self._evaluate(t))
        self._lap("evaluate", clock)
        self.round = t
        line = round_line(record, deployment, perf_counter() - begin, timeout_s, [each.device for each in late])
        lines.info("%s", line)
        self._note(line)
        return record

    def _note(self, line: str) -> None:
        """Beside the run, and no part of it: what depends on the clock on the wall, and which meters are in use."""
        if self.logs is None:
            return
        self.logs.mkdir(exist_ok=True)
        with (self.logs / ROUND_LOG).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        reporting, name = self.deployment.reporting, self.deployment.directory.name
        if reporting.meters != self._noted:
            self._noted = dict(reporting.meters)
            text = json.dumps(
                {name(k): meter for k, meter in sorted(self._noted.items())}, indent=1, ensure_ascii=False
            )
            write_atomically(self.logs / METERS, lambda path: path.write_text(text, encoding="utf-8"))

    def _device(self, node: int) -> int:
        device = self.deployment.directory.device(node)
        assert device is not None  # only devices are called
        return device

    def _lap(self, phase: str, since: float) -> float:
        now = perf_counter()
        self.timings[phase] += now - since
        return now

    def _evaluate_first(self) -> None:
        if self.evaluate_fn:
            metrics = self.evaluate_fn(0, self.result.arrays)
            log.info("Initial global evaluation results: %s", metrics)
            if metrics is not None:
                self.result.evaluate_metrics_serverapp[0] = metrics

    def _evaluate_on_clients(self, t: int) -> None:
        messages = list(self.hooks.configure_evaluate(t, self.result.arrays, self.evaluate_config, self.grid))
        if not messages:
            return
        replies = exchange(self.grid, messages, self.evaluation_timeout_s)
        metrics = self.hooks.aggregate_evaluate(t, list(replies.values()))
        if metrics is not None:
            log.info("\t└──> Aggregated MetricRecord: %s", metrics)
            self.result.evaluate_metrics_clientapp[t] = metrics

    def _evaluate(self, t: int) -> Measured:
        """What the server's own evaluation found, as far as the trace has columns for it."""
        if self.evaluate_fn is None:
            return Measured()
        log.info("Global evaluation")
        metrics = self.evaluate_fn(t, self.result.arrays)
        log.info("\t└──> MetricRecord: %s", metrics)
        if metrics is None:
            return Measured()
        self.result.evaluate_metrics_serverapp[t] = metrics
        loss, accuracy = metrics.get("loss"), metrics.get("accuracy")
        if not isinstance(loss, int | float) or not isinstance(accuracy, int | float):
            return Measured()
        possible = isfinite(loss) and loss >= 0 and 0 <= accuracy <= 1
        return Measured({"accuracy": float(accuracy), "loss": float(loss)} if possible else {})

    def about(self) -> Manifest:
        """What run.json says of this run."""
        settings, packages = self.deployment.settings, ("numpy", "scipy", "polars", "flwr")
        fields: dict[str, Any] = {
            "engine": {"name": "flower", "strategy": self.inner.settings},
            "data": {"name": self.scenario.data.dataset, "classes": settings.classes},
            "deployment": self.deployment.describe(),
            **self._about,
        }
        return Manifest.begin(self.scenario, settings.seed, packages=packages, **fields)

    def snapshot(self) -> Nested:
        histories = {name: {t: dict(record) for t, record in getattr(self.result, name).items()} for name in HISTORIES}
        return {
            "round": np.array(self.round),
            "deployment": self.deployment.snapshot(),
            "inner": self.inner.snapshot(),
            "model": self._model(),
            "histories": np.frombuffer(json.dumps(histories).encode(), np.uint8),
        }

    def restore(self, state: Nested) -> None:
        self.deployment.restore(state["deployment"])
        self.inner.restore(state["inner"])
        self.result.arrays = ArrayRecord({name: Array(array) for name, array in state["model"].items()})
        histories = json.loads(state["histories"].tobytes())
        for name in HISTORIES:
            found = {int(t): MetricRecord(metrics) for t, metrics in histories[name].items()}
            getattr(self.result, name).update(found)
        self.round = int(state["round"])

    def keep(self, directory: Path) -> None:
        """Write the model as it is now beside the tables of the run, and what more rounds would need."""
        write_arrays(directory / STATE, flatten(self.snapshot()))
        write_arrays(directory / MODEL, {f"model.{name}": array for name, array in self._model().items()})

    def _model(self) -> dict[str, NDArray]:
        return {name: array.numpy() for name, array in self.result.arrays.items()}


def run_all(rounds: Rounds, out: Path | None, callbacks: Sequence[Callback] = ()) -> Result:
    """All rounds; with a directory every round is stored before the next begins, and the last model is kept there."""
    begin, seed = perf_counter(), rounds.deployment.settings.seed
    for callback in callbacks:
        callback.on_start(rounds.scenario, seed)
    if out is None:
        rows = Rows(full=False, facts=())
        while rounds.round < rounds.scenario.system.rounds:
            record = rounds.step()
            tell(callbacks, record, rows.add(record))
    else:
        _wait_for_the_last_writer(out, rounds.deployment.settings.wait_s)
        reopen(out, rounds.about())
        rounds.logs = out / "logs"
        run = play_in(
            out, rounds.scenario, seed, lambda: (rounds, rounds.about()), checkpoint_s=0.0, finish=rounds.keep,
            callbacks=callbacks,
        )  # fmt: skip
        for callback in callbacks:
            callback.on_end(run)
        if not rounds.round:  # the run was done before; nothing was run now
            _read_complete(rounds, out)
            _tell(out)
            return rounds.result
    log.info("")
    log.info("Strategy execution finished in %.2fs", perf_counter() - begin)
    log.info("")
    log.info("Final results:")
    log.info("")
    for line in io.StringIO(str(rounds.result)):
        log.info("\t%s", line.rstrip("\n"))
    log.info("")
    if out is not None:
        _tell(out)
    return rounds.result


def _wait_for_the_last_writer(out: Path, wait_s: float) -> None:
    """A server whose SuperLink was killed goes on for half a minute until it notices, and keeps the lock so long."""
    end, said = monotonic() + wait_s, False
    while True:
        try:
            with sole_writer(out):
                return
        except BusyError:
            if monotonic() >= end:
                raise
        if not said:
            log.info("another process is still writing to %s; waiting up to %g s for its end", out, wait_s)
            said = True
        sleep(POLL_S)


def _tell(out: Path) -> None:
    log.info("The run is stored in %s", out)
    log.info("To check it on this machine: feelstream verify %s", shlex.quote(str(out)))
    log.info("")


def _read_complete(rounds: Rounds, out: Path) -> None:
    total = rounds.scenario.system.rounds
    log.info("%s holds this run, complete after %d rounds; more are run if num_rounds is raised", out, total)
    for name in (MODEL, STATE):
        if not (out / name).is_file():
            raise RunError(f"{out} holds a run that is complete, but not its {name}; choose another directory")
    rounds.restore(unflatten(read_arrays(out / STATE)))
