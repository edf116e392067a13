"""The rounds of a deployment: what Flower's own loop does and prints, in a run directory that survives a restart.

Every round is a line of JSON for whatever reads logs, by the logger `flwr.feelstream.rounds`:

{"round": 7, "at": "2026-01-31T12:00:00+00:00", "seconds": 12.5, "scheduled": ["north", "south"],
 "transmitted": ["north"], "failed": {"south": "no reply within the deadline of 60 s"}, "not_waited_for": [],
 "late": [], "timeout_s": 60.0, "energy_j": 3.25, "wasted_j": 1.5,
 "queue_max_j": 0.5, "reliability_min": 0.5, "meters": {"RAPL": 2}, "meters_stuck": []}
"""

from __future__ import annotations

import io
import json
import logging
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from math import isfinite
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import TYPE_CHECKING, Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result

from feelstream.arrays import Nested, flatten, unflatten
from feelstream.errors import BusyError, RunError, sentence_and_place
from feelstream.evaluation import Measured
from feelstream.flower.exchange import exchange
from feelstream.loop.round import RoundRecord
from feelstream.run import play_in
from feelstream.run.callbacks import Callback, tell
from feelstream.run.checkpoint import Checkpoint
from feelstream.run.files import check_digest, read_arrays, sole_writer, write_arrays, write_atomically
from feelstream.run.manifest import Manifest, check_same_run
from feelstream.run.run import read_stored
from feelstream.run.trace import Rows, Tables

if TYPE_CHECKING:
    from feelstream.flower.strategy import Scheduled

log = logging.getLogger("flwr")  # the lines that Flower's own loop prints
lines = logging.getLogger("flwr.feelstream.rounds")
Evaluate = Callable[[int, ArrayRecord], MetricRecord | None]
MODEL = "model.npz"
STATE = "state.npz"  # what a complete deployment keeps, so that it can go on
ROUND_LOG, METERS = "rounds.jsonl", "meters.json"  # in `logs`
POLL_S = 0.5
HISTORIES = ("train_metrics_clientapp", "evaluate_metrics_clientapp", "evaluate_metrics_serverapp")


class Rounds:
    """One run of a strategy's hooks on a grid: what `feelstream.run.checkpoint.Player` asks for."""

    model = None  # the arrays of a federation have names and shapes of their own: `keep` stores them

    def __init__(
        self,
        strategy: Scheduled,
        grid: Grid,
        arrays: ArrayRecord,
        train_config: ConfigRecord | None,
        evaluate_config: ConfigRecord | None,
        evaluate_fn: Evaluate | None,
        evaluation_timeout_s: float,
    ) -> None:
        self.hooks, self.deployment, self.inner, self.grid = strategy, strategy.deployment, strategy.inner, grid
        self.scenario, self.seed = self.deployment.scenario, strategy.options.seed
        self.train_config = train_config or ConfigRecord()
        self.evaluate_config, self.evaluation_timeout_s = evaluate_config or ConfigRecord(), evaluation_timeout_s
        self.evaluate_fn, self.result = evaluate_fn, Result(arrays=arrays)
        self.round = 0
        self.callbacks: Sequence[Callback] = [Tolerant(callback) for callback in strategy.callbacks]
        self.logs: Path | None = None  # the directory for logs, where the run has one
        self._noted: dict[int, str] = {}  # meters, as they were last written there
        self.timings = {"schedule": 0.0, "train": 0.0, "settle": 0.0, "evaluate": 0.0}

    def step(self) -> RoundRecord:
        t, hooks, result, deployment = self.round + 1, self.hooks, self.result, self.deployment
        laps = [perf_counter()]
        if t == 1 and self.evaluate_fn:
            found = self.evaluate_fn(0, result.arrays)
            log.info("Initial global evaluation results: %s", found)
            if found is not None:
                result.evaluate_metrics_serverapp[0] = found
        log.info("")
        log.info("[ROUND %s/%s]", t, self.scenario.system.rounds)
        messages = list(hooks.configure_train(t, result.arrays, self.train_config, self.grid))
        laps.append(perf_counter())
        replies = deployment.calls.send(t, self.grid, messages, deployment.directory.device_of)
        laps.append(perf_counter())
        arrays, metrics = hooks.aggregate_train(t, replies)
        deployment.close([])  # the hooks of a subclass may have dropped the replies
        assert deployment.record is not None
        result.arrays = result.arrays if arrays is None else arrays
        if metrics is not None:
            log.info("\t└──> Aggregated MetricRecord: %s", metrics)
            result.train_metrics_clientapp[t] = metrics
        laps.append(perf_counter())
        self._evaluate_on_clients(t)
        record = replace(deployment.record, measured=self._evaluate(t))
        laps.append(perf_counter())
        for phase, before, after in zip(self.timings, laps, laps[1:], strict=False):
            self.timings[phase] += after - before
        self.round = t
        self._note(record, laps[-1] - laps[0])
        return record

    def _line(self, record: RoundRecord, seconds: float) -> dict[str, Any]:
        """What the round was: when, how long, who and why not, what it cost. Energy is the sum over all devices."""
        deployment, schedule, sent = self.deployment, record.decision.schedule, record.transmission.sent
        name, failed, calls = deployment.directory.name, deployment.patience.failed, deployment.calls
        reliability = record.observation.reliability
        return {
            "round": record.observation.round,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(seconds, 3),
            "scheduled": [name(k) for k in schedule.tolist()],
            "transmitted": [name(k) for k in schedule[sent].tolist()],
            "failed": {name(k): failed.get(k, "") for k in schedule[~sent].tolist() if k not in calls.cut},
            "not_waited_for": [name(k) for k in sorted(calls.cut)],
            "late": [name(device) for device, _, _ in calls.late],
            "timeout_s": round(calls.limit_s, 3),
            "energy_j": float(record.energy_j.sum()),
            "wasted_j": float(record.energy_j[schedule[~sent]].sum()),
            "queue_max_j": float(record.queue_next_j.max()),
            "reliability_min": 1.0 if reliability is None else float(reliability.min()),
            "meters": dict(Counter(deployment.fleet.meters.values())),
            "meters_stuck": [name(k) for k in deployment.scheduler.estimates.stuck],
        }

    def _note(self, record: RoundRecord, seconds: float) -> None:
        """Tell of the round, beside the run and no part of it: what depends on the clock on the wall, and the meters
        in use.
        """
        line, names, meters = self._line(record, seconds), self.deployment.directory.names, self.deployment.fleet.meters
        text = json.dumps(line, ensure_ascii=False)
        lines.info("%s", text)
        if self.logs is not None:
            self.logs.mkdir(exist_ok=True)
            with (self.logs / ROUND_LOG).open("a", encoding="utf-8") as file:
                file.write(f"{text}\n")
            if meters != self._noted:
                self._noted = dict(meters)
                text = json.dumps({names[k]: meters[k] for k in sorted(meters)}, indent=1, ensure_ascii=False)
                write_atomically(self.logs / METERS, lambda path: path.write_text(text, encoding="utf-8"))
        if self.callbacks:
            reliability = record.observation.reliability
            known = np.ones(len(record.energy_j)) if reliability is None else reliability
            columns = {"energy_j": record.energy_j, "queue_j": record.queue_next_j, "reliability": known}
            devices = {"name": list(names), **{name: values[: len(names)] for name, values in columns.items()}}
            for callback in self.callbacks:
                callback.on_deployed(line, devices)

    def _evaluate_on_clients(self, t: int) -> None:
        messages = list(self.hooks.configure_evaluate(t, self.result.arrays, self.evaluate_config, self.grid))
        if not messages:
            return
        replies = exchange(self.grid, messages, self.evaluation_timeout_s).replies
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
        packages, scheduler = ("numpy", "scipy", "polars", "flwr"), self.deployment.scheduler
        fields: dict[str, Any] = {
            "engine": {"name": "flower", "strategy": self.inner.settings},
            "data": {"name": self.scenario.data.dataset, "classes": scheduler.bounds.classes},
            "reference": scheduler.system.reference,
            "deployment": self.deployment.describe(),
            **self.hooks.about,
        }
        return Manifest.begin(self.scenario, self.seed, packages=packages, **fields)

    def snapshot(self) -> Nested:
        histories = {name: {t: dict(record) for t, record in getattr(self.result, name).items()} for name in HISTORIES}
        return {
            "round": np.array(self.round),
            "deployment": self.deployment.snapshot(),
            "inner": self.inner.snapshot(),
            "model": dict(self.inner.model(self.result.arrays)),
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
        model = self.inner.model(self.result.arrays)
        write_arrays(directory / MODEL, {f"model.{name}": array for name, array in model.items()})


class Tolerant(Callback):
    """A callback whose mistakes end no run, once it has begun: real devices have worked for it."""

    def __init__(self, callback: Callback) -> None:
        self._callback, self._said = callback, ""
        self.on_start = callback.on_start
        for hook in ("on_deployed", "on_round", "on_end"):
            setattr(self, hook, partial(self._try, hook))

    def _try(self, hook: str, *what: Any) -> None:
        try:
            getattr(self._callback, hook)(*what)
        except Exception as problem:
            level = logging.DEBUG if self._said == str(problem) else logging.ERROR  # it may fail in every round
            self._said = str(problem)
            log.log(level, "the callback %s failed: %s", type(self._callback).__name__, sentence_and_place(problem))


def run_all(rounds: Rounds, out: Path | None) -> Result:
    """All rounds; with a directory every round is stored before the next begins, and the last model is kept there."""
    begin, callbacks = perf_counter(), rounds.callbacks
    for callback in callbacks:
        callback.on_start(rounds.scenario, rounds.seed)
    if out is None:
        rows = Rows(full=False, facts=())
        while rounds.round < rounds.scenario.system.rounds:
            record = rounds.step()
            tell(callbacks, record, rows.add(record))
    else:
        _wait_for_the_last_writer(out, rounds.deployment.options.waiting.wait_s)
        reopen(out, rounds.about())
        rounds.logs = out / "logs"
        run = play_in(
            out, rounds.scenario, rounds.seed, lambda: (rounds, rounds.about()), checkpoint_s=0.0, finish=rounds.keep,
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


def reopen(out: Path, about: Manifest) -> None:
    """Let the run in `out` go on if `about` describes it with more rounds; leave anything else as it is.

    Progress is laid out first and run.json written last, so a kill in between leaves the complete run.
    """
    if not (out / "run.json").is_file():
        return
    with sole_writer(out):
        stored = Manifest.read(out)
        before, now = stored.scenario["system"]["rounds"], about.scenario["system"]["rounds"]
        if before == now:
            return
        same = {**stored.scenario, "system": {**stored.scenario["system"], "rounds": now}}
        fields = {"scenario": same, "resolved": about.resolved, "status": "running", "digests": {}}
        longer = stored.model_copy(update=fields)
        check_same_run(out, longer, about.as_dict())
        if now < before:
            raise RunError(f"{out} holds a run of {before} rounds; num_rounds = {now} would cut it short")
        if stored.complete:
            _lay_out(out, stored, longer)
        longer.write(out)


def _lay_out(out: Path, stored: Manifest, longer: Manifest) -> None:
    """The complete run as one that is under way: its tables as the first part, its last state as the checkpoint."""
    if not (out / STATE).is_file():
        raise RunError(f"{out} holds a run that is complete, but not its {STATE}, so it cannot go on")
    progress, full = out / "progress", stored.scenario["trace"]["level"] == "full"
    shutil.rmtree(progress, ignore_errors=True)
    progress.mkdir()
    rounds = read_stored(out, "rounds.parquet", stored)
    devices = read_stored(out, "devices.parquet", stored) if full else None
    check_digest(out / STATE, stored.digests.get(STATE))
    Checkpoint(progress, longer.identity).add(Tables(rounds, devices), unflatten(read_arrays(out / STATE)))
