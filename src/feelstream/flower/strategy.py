"""ScheduledFedAvg: federated averaging in which a feelstream policy says who trains.

It takes FedAvg's place in a ServerApp. Selection needs what devices report (device.py is their side); reports ride on
training replies, and only nodes that have not been heard of for a while are asked before a round.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from feelstream.errors import FeelstreamError
from feelstream.flower.averaging import average, average_metrics, checked_update
from feelstream.flower.deployment import Deployment, play
from feelstream.flower.directory import Directory
from feelstream.flower.exchange import exchange
from feelstream.flower.report import QUERY, SERVER, Report, ReportError, device_name
from feelstream.flower.scheduler import Scheduler
from feelstream.policies import Policy
from feelstream.scenario import Scenario
from feelstream.scenario import files as scenario_files
from feelstream.scheduling import RoundRecord

log = logging.getLogger("flwr.feelstream")  # beside Flower's own messages
Evaluate = Callable[[int, ArrayRecord], MetricRecord | None]


class ScheduledFedAvg(Strategy):
    """Federated averaging over the devices that a policy schedules, with energy queues and a round deadline."""

    def __init__(
        self,
        system: Scenario | str | Path | Mapping[str, Any],
        policy: Policy | str | None = None,
        *,
        classes: int = 10,
        seed: int = 0,
        out: str | Path | None = None,
        deadline_s: float = 60.0,
        query_timeout_s: float = 30.0,
        max_report_age: int = 5,
        names: Sequence[str] | None = None,
        min_available_nodes: int = 1,
        wait_s: float = 120.0,
        evaluation: Strategy | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """Describe the federation; the ServerApp then calls `start`, as with any strategy.

        system: devices, budgets, CPU and radio constants: a Scenario, a preset's name, a TOML file, or its tables.
            A name, file or table that does not set data.eligible gets with_data: only devices with data are scheduled.
        policy: a policy or its name, in place of the scenario's.
        classes: length of the label counts that devices report.
        out: run directory; a server that is started again with the same one goes on where it stopped.
        deadline_s: wall-clock time for a training reply; query_timeout_s: the same for a report.
        max_report_age: rounds for which a report is good enough; older ones are asked for. 0: ask everyone each round.
        names: the devices' names in order; default "0", "1", …, which are Flower's partition-ids.
        min_available_nodes, wait_s: begin when so many nodes are connected, or after so many seconds.
        evaluation: a Flower strategy that does client-side evaluation (its configure_ and aggregate_evaluate are used).
        about: more to note in run.json.
        """
        self.scenario = _resolve(system, policy)
        devices = self.scenario.system.devices
        names = [str(number) for number in range(devices)] if names is None else list(names)
        if len(names) != devices:
            raise FeelstreamError(f"names must list system.devices = {devices} names, not {len(names)}")
        self.classes, self.seed, self.names, self.about = classes, seed, names, dict(about or {})
        self.out = Path(out) if out is not None else None
        self.deadline_s, self.query_timeout_s, self.max_report_age = deadline_s, query_timeout_s, max_report_age
        self.min_available_nodes, self.wait_s, self.evaluation = min_available_nodes, wait_s, evaluation
        self._begin(self.scenario)

    def _begin(self, scenario: Scenario) -> None:
        """Forget everything: no queue, nothing heard of anyone."""
        self.scheduler = Scheduler(scenario, self.classes, self.seed, self.max_report_age)
        self.directory = Directory(self.names)
        self.record: RoundRecord | None = None  # of the last round
        self._arrays = ArrayRecord()

    def summary(self) -> None:
        """Log the settings."""
        log.info("policy %s, %d devices", self.scenario.policy.plugin_name(), len(self.names))
        log.info("reports are good for %d rounds, replies for %g s", self.max_report_age, self.deadline_s)

    def start(  # pyright: ignore[reportIncompatibleMethodOverride]  (num_rounds may come from the scenario)
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int | None = None,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Evaluate | None = None,
    ) -> Result:
        """Run the federation to its end, or on from where an earlier server stopped.

        timeout: for client-side evaluation only; training has `deadline_s`. evaluate_fn: called after every
        learning.eval_every rounds and the last; its "accuracy" and "loss" go into the trace.
        """
        scenario = _with_rounds(self.scenario, num_rounds, evaluates=evaluate_fn is not None)
        self._begin(scenario)
        self.summary()
        self._wait(grid)
        deployment = Deployment(self, scenario, grid, initial_arrays, train_config, evaluate_config, evaluate_fn)
        deployment.evaluation_timeout_s = timeout
        return play(deployment, self.out)

    def _wait(self, grid: Grid) -> None:
        end = monotonic() + self.wait_s
        while len(list(grid.get_node_ids())) < self.min_available_nodes and monotonic() < end:
            sleep(0.5)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask whom we know too little of, let the policy decide, and write to those it chose."""
        if server_round != self.scheduler.begin():
            raise FeelstreamError(f"round {server_round} cannot come now; the scheduler is at {self.scheduler.round}")
        self._arrays = arrays
        nodes = self.directory.meet(grid.get_node_ids())
        self._ask([node for node in nodes if self._must_ask(node)], grid)
        schedule = self.scheduler.schedule(self.directory.connected())
        log.info("round %d: training on %s", server_round, [self.names[device] for device in schedule])
        config = ConfigRecord({**config, "server-round": server_round})
        messages = []
        for device in map(int, schedule):
            node = self.directory.node(device)
            assert node is not None  # only connected devices are feasible
            content = RecordDict({"arrays": arrays, "config": config, SERVER: self._told(device)})
            messages.append(Message(content, node, MessageType.TRAIN, ttl=self.deadline_s))
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Check what came back, settle the round, and average by stored samples; (None, None) if nobody got through."""
        reports: dict[int, Report] = {}
        contents: dict[int, RecordDict] = {}
        for reply in replies:
            device = self.directory.device(reply.metadata.src_node_id)
            try:
                content, report = self._read(reply, device)
                assert device is not None
                reports[device] = self.scheduler.check(device, report)
                checked_update(content, self._arrays)
                contents[device] = content
            except ReportError as problem:
                reports.pop(-1 if device is None else device, None)
                log.warning("round %d: reply of device %s dropped: %s", server_round, self._name(device), problem)
        self.record = self.scheduler.settle(reports)
        schedule, sent = self.record.decision.schedule, self.record.transmission.sent
        senders = [int(device) for device in schedule[sent]]
        if not senders:
            return None, None
        stored = np.array([reports[device].stored_labels.sum(dtype=np.int64) for device in senders])
        chosen = [contents[device] for device in senders]
        return average(self._arrays, chosen, stored), average_metrics(chosen, stored)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Left to the strategy given as `evaluation`; without one, clients evaluate nothing."""
        return self.evaluation.configure_evaluate(server_round, arrays, config, grid) if self.evaluation else []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        return self.evaluation.aggregate_evaluate(server_round, replies) if self.evaluation else None

    def _must_ask(self, node: int) -> bool:
        device = self.directory.device(node)
        return device is None or bool(self.scheduler.unknown[device])

    def _ask(self, nodes: list[int], grid: Grid) -> None:
        """Query reports. A node that only now says who it is may have reported against a history it was not told."""
        again: list[int] = []
        answers = self._query(nodes, grid)
        silent = set(nodes) - answers.keys()
        for node in sorted(answers):
            stranger = self.directory.device(node) is None
            if not self._hear(node, answers[node], silent, final=not stranger) and stranger:
                again.append(node)
        known = [node for node in again if self.directory.device(node) is not None]
        answers = self._query(known, grid)
        for node in sorted(answers):
            self._hear(node, answers[node], silent, final=True)

    def _query(self, nodes: list[int], grid: Grid) -> dict[int, Message]:
        messages = [
            Message(
                RecordDict({SERVER: self._told(self.directory.device(node))}), node, QUERY, ttl=self.query_timeout_s
            )
            for node in nodes
        ]
        return exchange(grid, messages, self.query_timeout_s)

    def _hear(self, node: int, answer: Message, silent: set[int], final: bool) -> bool:
        device = self.directory.device(node)
        try:
            name = device_name(_content(answer))
            device = self.directory.introduce(node, name, silent)
            self.scheduler.hear(device, self._read(answer, device)[1])
        except ReportError as problem:
            if device is not None and final:
                self.scheduler.exclude(device, str(problem))
            else:
                log.warning("round %d: node %d not believed: %s", self.scheduler.round, node, problem)
            return False
        return True

    def _read(self, message: Message, device: int | None) -> tuple[RecordDict, Report]:
        content = _content(message)
        if device is None:
            raise ReportError("its node is not known")
        name = device_name(content)
        if name != self.names[device]:
            raise ReportError(f"it calls itself '{name[:40]}'")
        return content, self.scheduler.bounds.read(content)

    def _told(self, device: int | None) -> ConfigRecord:
        """What every message tells a device of the scheduler's side."""
        scheduler = self.scheduler
        return ConfigRecord(
            {
                "round": scheduler.round,
                "used-round": 0 if device is None else int(scheduler.used_round[device]),
                "buffer": scheduler.scenario.data.buffer.plugin_name(),
                "frequency-hz": list(scheduler.bounds.frequency_hz),
                "gain-range": list(scheduler.bounds.gain),
            }
        )

    def _name(self, device: int | None) -> str:
        return "?" if device is None else self.names[device]


def _content(message: Message) -> RecordDict:
    if message.has_error():
        raise ReportError(f"Flower says: {message.error.reason}")
    return message.content


def _resolve(system: Scenario | str | Path | Mapping[str, Any], policy: Policy | str | None) -> Scenario:
    if isinstance(system, Scenario):
        scenario = system
    else:
        scenario = scenario_files.from_dict(system) if isinstance(system, Mapping) else scenario_files.load(system)
        if "eligible" not in scenario.data.model_fields_set:
            # A server that knows the counts asks nobody who holds nothing; the paper's reading must be asked for.
            scenario = scenario_files.from_dict(scenario.as_dict(), ["data.eligible=with_data"])
    if policy is None:
        return scenario
    if isinstance(policy, str):
        return scenario_files.from_dict(scenario.as_dict(), [f"policy.name={policy}"])
    return Scenario.model_validate({**dict(scenario), "policy": policy})


def _with_rounds(scenario: Scenario, rounds: int | None, evaluates: bool) -> Scenario:
    """The scenario as it is really run: so many rounds, and learning only as far as the server can see it."""
    tables = scenario.as_dict()
    tables["system"]["rounds"] = rounds or scenario.system.rounds
    if not evaluates:
        tables["learning"]["engine"] = "none"
    elif scenario.learning.engine == "none":
        tables["learning"]["engine"] = "auto"
    return scenario_files.from_dict(tables)
