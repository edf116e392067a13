"""A Flower app in the world of a scenario: time, energy, channels, availability and faults, without a network.

    grid = WorldGrid("my-devices.toml", client_app, seed=0)
    strategy.start(grid, arrays, num_rounds=100)          # any Flower strategy
    run = grid.finish("runs/first")                       # an ordinary run directory

Device k is the node with partition-id k, whose ClientApp runs in this process; a round is one batch of train messages.
The grid plays a `Simulation` whose policy schedules the nodes of the batch: arrivals, admission, energy, queues and
trace are those of `simulate`, and the strategy receives what arrived there. A device that is out of reach, or cannot
compute within the round, is not scheduled: its call is answered by an error.

`Scheduled` decides and settles by itself, and keeps its own run directory. The grid gives it what devices would tell:
reports with the world's counts, frequencies and gains, and no reply where there is a fault. `world_subset` is for a
client that is to train on what the world has brought its device so far, in place of all its data.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from math import isfinite
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl
from flwr.app import Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from numpy.typing import ArrayLike, NDArray

from feelstream.arrays import Nested, Reals
from feelstream.columns import REAL
from feelstream.errors import FeelstreamError, RunError, sentence
from feelstream.evaluation import Evaluator, Measured
from feelstream.flower.exchange import KEPT
from feelstream.flower.local_grid import LocalGrid
from feelstream.flower.replay import device_of
from feelstream.flower.wire import FITTED, QUERY, REPORT, SERVER
from feelstream.loop.round import RoundRecord
from feelstream.loop.simulation import Simulation
from feelstream.model.system import System
from feelstream.model.transmission import Transmission
from feelstream.policies import POLICIES, Policy
from feelstream.policies.base import Decision, Observation
from feelstream.run import Run, dataset_of, read, trace, with_numbers
from feelstream.run.manifest import Manifest
from feelstream.scenario import Scenario
from feelstream.scenario import files as scenario_files

log = logging.getLogger("flwr")  # Flower's own lines, by which a strategy says what it has measured
CLIENT_RAISED, NODE_UNAVAILABLE = 2, 5  # codes of Flower's errors
REPLIES = f"{__name__}:Replies"
POLLS = 10  # of the nodes without a message in between: the app waits for some that are not there
MEASURES = {"accuracy": (("accuracy", "acc"), 1.0), "loss": (("loss",), np.inf)}  # ends of their names, and the most


class Held(NamedTuple):
    """What a device holds by the world: its arrivals, counted from 0, and how many samples of each label."""

    device: int
    arrivals: NDArray[np.int64]
    labels: NDArray[np.int32]


held: dict[str, Held] = {}  # by the id of the message that a client is at work on


class Replies(Evaluator):
    """Stands in learning.evaluators for the app: `examples` is what the reply of each device says that it weighs."""

    def evaluate(self, context: Any, state: Nested) -> tuple[dict[str, Any], Nested]:
        return {}, state


def policy_of(name: str, devices: int, choose: Callable[[Observation], Decision]) -> Policy:
    """The policy that a strategy is, under this name."""

    class Sampled(Policy):
        tag: ClassVar[str] = name

        def select(self, state: Nested, observation: Observation, rng: np.random.Generator) -> Decision:
            return choose(observation)

        def transmit(self, observation: Observation, decision: Decision, gain: Reals) -> Transmission:
            """As any other; a policy with one of its own may schedule who is not in time by the planned rate."""
            return super().transmit(observation, decision, gain)

        def most_power_w(self, system: System, beta: Reals) -> Reals:
            return super().most_power_w(system, beta)

    if name in POLICIES.names():
        raise RunError(f"name: '{name}' is a policy of ours, and the strategy needs a name of its own")
    return Sampled(size=devices)


class WorldGrid(LocalGrid):
    """A Grid whose nodes are the devices of a scenario."""

    def __init__(
        self,
        scenario: Scenario | str | Path,
        client_app: ClientApp,
        *,
        seed: int = 0,
        run_config: Mapping[str, Any] | None = None,
        name: str = "app",
    ) -> None:
        """scenario: its policy and learning do not matter; run_config: what clients find in their context; name: how
        reports call the strategy."""
        super().__init__()
        found = with_numbers(scenario if isinstance(scenario, Scenario) else scenario_files.load(scenario))
        self.devices, self.client_app, self.seed = found.system.devices, client_app, seed
        self.scenario = Scenario.of({**found.tables(), "policy": policy_of(name, self.devices, self._decide)})
        self.run_config, self.dataset = dict(run_config or {}), dataset_of(found)
        self._about = {"name": "app", "app": name, "run_config": deepcopy(self.run_config)}
        self._simulation = Simulation(self.scenario, seed, self.dataset, None)
        self._rows = trace.Rows(self.scenario.trace.level == "full", trace.facts_of(self.scenario))
        for k in range(self.devices):
            self.add(k + 1, {"partition-id": k, "num-partitions": self.devices}, self._answer)
            self.contexts[k + 1].run_config = self.run_config
        self.scheduled = False  # whether `Scheduled` drives
        self.over = False  # whether the app has asked for more rounds than there are
        self._before: Nested | None = None  # the world before a round that has begun and is not played yet
        self._there = self._able = np.ones(self.devices, bool)  # in that round: who is in reach, and who can be called
        self._called: list[int] = []
        self._late: dict[str, int] = {}  # by message: the round in which its reply comes
        self._measured: list[dict[str, float]] = []  # by round
        self._evaluated, self._polls, self._trained, self._failure = False, 0, False, ""
        log.addFilter(self._hear)

    # What Flower asks of a grid

    def get_node_ids(self) -> Iterable[int]:
        """The nodes that are in reach; where an app waits for more of them, rounds go by."""
        self._look_ahead()
        self._polls += 1
        if self._polls > POLLS and not self.scheduled:
            if self._there.all():
                raise RunError(
                    f"the app waits for more nodes than the scenario has: {self.devices} (system.devices); "
                    "set it higher, or let the strategy do with fewer"
                )
            if self._before is not None:
                self._rest()
                self._look_ahead()
                self._polls = POLLS - 2  # who waits already need not be waited for as long again
            else:  # there is no round left in which they could come
                self.over, self._there = True, np.ones(self.devices, bool)
        return (np.flatnonzero(self._there) + 1).tolist()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        if current_thread() is not main_thread():
            raise RunError("Flower's old Server sends each message by itself, and a round must be one batch")
        batch, self._polls, last = list(messages), 0, self.scenario.system.rounds
        told = [int(m.content.metric_records[SERVER]["round"]) for m in batch if _of_ours(m)]  # type: ignore[arg-type]
        self.scheduled |= bool(told)
        self.sent.clear()  # models are large, and rounds many
        while told and self._simulation.round + 1 < min(told[0], last):
            self._rest()  # a round in which it called nobody
        self._look_ahead()
        self._evaluated |= any(_kind(message) == "evaluate" for message in batch)
        calls = {message.metadata.dst_node_id - 1 for message in batch if _kind(message) == "train"}
        if not calls or self._simulation.round == last:
            if calls and not self.over:
                log.warning("the scenario ends after round %d: what is sent now is not answered", last)
            self.over |= bool(calls)
            return super().push_messages(batch)
        for number in [number for number, due in self._late.items() if due + KEPT <= self._simulation.round]:
            self._replies.pop(number, None)
            del self._late[number]
        record = self._play(calls)
        numbers = list(super().push_messages(batch))
        late = {*self._called} - {*record.decision.schedule[record.transmission.arrived].tolist()}
        for message, number in zip(batch, numbers, strict=True):
            if _kind(message) == "train" and not _of_ours(message) and message.metadata.dst_node_id - 1 in late:
                self._late[number] = self._simulation.round + 1
        self._close(record)
        return numbers

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        here = [number for number in message_ids if self._late.get(number, 0) <= self._simulation.round]
        return super().pull_messages(here)

    # The world

    def _look_ahead(self) -> None:
        """Begin the next round, so that it is known who is there; `_play` begins it again from before."""
        simulation, t = self._simulation, self._simulation.round + 1
        if self._before is None and t <= self.scenario.system.rounds:
            self._before = simulation.world.snapshot()
            simulation.world.use(simulation.senders)
            simulation.world.advance(t)
            observation, _ = simulation._observe(t)
            self._there = observation.available
            self._able = self._there & (observation.compute_time_s < observation.system.time_s)

    def _play(self, called: Iterable[int] = ()) -> RoundRecord:
        """The next round, with those of these devices as its schedule that can be called."""
        self._look_ahead()
        assert self._before is not None
        self._called = [k for k in sorted(called) if 0 <= k < self.devices and self._able[k]]
        self._simulation.world.restore(self._before)
        self._before, self._evaluated, self._examples = None, False, np.full(self.devices, np.nan)
        self._record = self._simulation.step()
        return self._record

    def _decide(self, observation: Observation) -> Decision:
        return Decision(np.array(self._called, np.int64), observation.plan(len(self._called), self._able))

    def _close(self, record: RoundRecord) -> None:
        """Into the trace, before the next round changes what the record is a view of."""
        self._rows.add(replace(record, measured=Measured({}, ((REPLIES, "examples", self._examples),))))
        self._measured.append({})

    def _rest(self) -> None:
        """Let a round go by."""
        self._close(self._play())
        self._measured[-1] |= self._measured[-2] if len(self._measured) > 1 else {}  # the model is as it was

    # The clients

    def _answer(self, context: Context, message: Message) -> Message | None:
        k, trains, world = message.metadata.dst_node_id - 1, _kind(message) == "train", self._simulation.world
        if self.over:
            return None
        if message.metadata.message_type == QUERY:
            return device_of(context, message, world, k, self.dataset).answer() if self._there[k] else None
        if trains and k not in self._called:
            why = f"device {k} is out of reach, or cannot compute within the round"
            return Message(Error(NODE_UNAVAILABLE, why), reply_to=message)
        held[message.metadata.message_id] = Held(k, world.stream.positions(k), world.stream.stored_labels[k].copy())
        message.content = deepcopy(message.content)  # what a client does to it is its own affair
        try:
            reply = self.client_app(message, context)
        except Exception as problem:
            self._failure = self._failure or sentence(problem)
            log.warning("device %d: the ClientApp failed: %s", k, sentence(problem))
            reply = Message(Error(CLIENT_RAISED, f"{type(problem)}:<'{problem}'>"), reply_to=message)
        finally:
            del held[message.metadata.message_id]
        if not trains or reply.has_error():
            return reply
        self._trained = True
        weights = [metrics.get("num-examples") for metrics in reply.content.metric_records.values()]
        self._examples[k] = next((weight for weight in weights if isinstance(weight, int | float)), np.nan)
        lost = self._record.transmission.lost
        if not world.gain[k] or (lost is not None and lost[self._called.index(k)]):
            return None
        if _of_ours(message):
            told = Context(1, k + 1, context.node_config, RecordDict(), {})  # the client's own state is not ours
            if FITTED in context.state:
                told.state[FITTED] = context.state[FITTED]
            report = device_of(told, message, world, k, self.dataset).report(gain=float(world.gain[k]))
            reply.content[REPORT] = report.to_record(str(k))
        return reply

    # What comes of it

    def _hear(self, record: logging.LogRecord) -> bool:
        """Note accuracy and loss where the strategy logs them: of evaluate_fn, or aggregated from clients."""
        args: Any = record.args
        found = args[0] if isinstance(args, tuple) and args else args  # logging unpacks a single mapping
        if isinstance(found, MetricRecord) and self._measured and ("Aggregated" not in record.msg or self._evaluated):
            for what, (ends, most) in MEASURES.items():
                for name, value in found.items():
                    if (
                        name.endswith(ends)
                        and isinstance(value, int | float)
                        and isfinite(value)
                        and 0 <= value <= most
                    ):
                        self._measured[-1][what] = float(value)
        return True

    def finish(self, out: str | Path | None = None) -> Run:
        """The run, stored in `out`. Not of an app with `Scheduled`, which has stored its own."""
        log.removeFilter(self._hear)
        rounds, data, measured = self._simulation.round, self.dataset, self._measured
        if self._failure and not self._trained:
            parts = f"the scenario's {self.devices} devices are partitions 0 to {self.devices - 1}"
            raise RunError(f"no client could train: {self._failure} ({parts})")
        if not rounds:
            raise RunError("the ServerApp has ended without a batch of train messages")
        whole = all(found.keys() == MEASURES.keys() for found in measured)
        learning = {"engine": "auto", "eval_every": 1, "evaluators": ("test", REPLIES) if whole else (REPLIES,)}
        scenario = Scenario.of({
            **self.scenario.tables(),
            "learning": self.scenario.learning.model_copy(update=learning),
            "system": self.scenario.system.model_copy(update={"rounds": rounds}),
        })  # fmt: skip
        manifest = Manifest.begin(
            scenario, self.seed,
            engine=self._about,
            data={"name": data.name, "digest": data.digest, "classes": data.classes, "samples": len(data.train_labels)},
            reference=self._simulation.system.reference,
            packages=("numpy", "scipy", "polars", "flwr"),
        )  # fmt: skip
        tables = self._rows.take()
        columns = {  # where not every round was evaluated, under another name
            what if whole else f"app_{what}": [found.get(what) for found in measured]
            for what in MEASURES if any(what in found for found in measured)
        }  # fmt: skip
        run = Run(
            scenario, self.seed, tables.rounds.with_columns(pl.Series(*column, REAL) for column in columns.items()),
            tables.devices, manifest, evaluations=tables.evaluations, constants=manifest.constants,
        )  # fmt: skip
        return run if out is None else read(run.save(out))


def _kind(message: Message) -> str:
    return message.metadata.message_type.partition(".")[0]


def _of_ours(message: Message) -> bool:
    """Whether `Scheduled` has sent it."""
    return SERVER in message.content.metric_records


def world_subset(data: Any, message: Message, labels: ArrayLike | None = None) -> Any:
    """The part of a device's own data that has arrived when it gets the message; outside of a WorldGrid, all of it.

    data: what has a row per sample (an array, tensor, list, data set with `select`), or a tuple of such, as (X, y).
    They arrive in their order, again and again. labels: the label of each; then it has as many of each label as the
    device has in the world, so that schedulers that go by labels see what clients train on.
    """
    world = held.get(message.metadata.message_id)
    if world is None:
        return data
    if labels is None:
        rows = world.arrivals % max(len(data[0] if isinstance(data, tuple) else data), 1)
    else:
        own = [np.flatnonzero(np.asarray(labels) == label) for label in range(len(world.labels))]
        for label, count in enumerate(world.labels):
            if count and not len(own[label]):
                raise FeelstreamError(
                    f"device {world.device} has samples of label {label} by the scenario, and its client has none"
                )
        rows = np.concatenate([np.resize(mine, count) for mine, count in zip(own, world.labels, strict=True)])
    return tuple(_rows_of(part, rows) for part in data) if isinstance(data, tuple) else _rows_of(data, rows)


def _rows_of(data: Any, rows: NDArray[np.int64]) -> Any:
    if hasattr(data, "select"):
        return data.select(rows)
    return data[rows] if hasattr(data, "shape") else [data[row] for row in rows.tolist()]
