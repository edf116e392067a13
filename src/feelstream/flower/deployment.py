"""A deployment on the server's side: it owns the scheduler, the directory of nodes, and what is said to them.

One round is

    nodes           = deployment.begin(t, grid)                 ask whom we must, and let the policy choose
    messages        = deployment.calls_for_training(nodes, …)   what the strategy says, and what the scheduler adds
    record, updates = deployment.settle(t, replies)             check them, settle the round; those that count remain
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from flwr.app import Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from numpy.typing import NDArray

from feelstream.arrays import Nested
from feelstream.errors import FeelstreamError
from feelstream.flower.asking import Asking
from feelstream.flower.directory import Directory, UnknownNameError
from feelstream.flower.exchange import exchange
from feelstream.flower.metrics import Values, alike, checked_metrics
from feelstream.flower.names import NameRules, Names
from feelstream.flower.report import MEASURED, QUERY, SERVER, DeviceReport, ReportError, device_name
from feelstream.flower.scheduler import Scheduler
from feelstream.flower.updates import Model, checked_update, write_model
from feelstream.scenario import Scenario
from feelstream.scheduling import RoundRecord

log = logging.getLogger("flwr.feelstream")  # beside Flower's own messages


class DeploymentError(FeelstreamError):
    """The federation cannot train; the message says why."""


@dataclass(frozen=True)
class DeploymentSettings:
    """How a deployment deals with its nodes; `Scheduled` explains each."""

    classes: int = 10
    seed: int = 0
    deadline_s: float = 60.0
    query_timeout_s: float = 30.0
    first_query_timeout_s: float = 120.0
    max_report_age: int = 5
    enough_reports: float = 0.9
    names: Names = None
    bind_names: bool = False
    give_up_after: int | None = 5
    max_examples: float | None = None
    max_priority: float = 1.0
    measured: tuple[str, ...] = MEASURED


@dataclass(frozen=True)
class Update:
    """A reply that has passed every check so far."""

    message: Message
    report: DeviceReport
    arrays: dict[str, NDArray]
    metrics: Values


class Deployment:
    """Scheduler, directory and messages of one run."""

    def __init__(self, scenario: Scenario, settings: DeploymentSettings, weight_key: str = "num-examples") -> None:
        self.scenario, self.settings, self.weight_key = scenario, settings, weight_key
        devices = scenario.system.devices
        self.scheduler = Scheduler(
            scenario, settings.classes, settings.seed, settings.max_report_age, settings.measured
        )
        self.directory = Directory(NameRules(settings.names, devices), settings.bind_names)
        self.asking = Asking(devices, settings.max_report_age)
        self.idle = 0  # rounds in a row in which nobody could be trained
        self._model: Model = {}  # of the round under way
        self._called: list[tuple[int, Message]] = []  # its calls for training, by device

    def begin(self, t: int, grid: Grid) -> list[int]:
        """The nodes to train in round t, in the order of their devices."""
        if self.scheduler.open:  # a wrapper around us threw the last round's replies away
            self.settle(self.scheduler.round, [])
        if t != self.scheduler.begin():
            raise FeelstreamError(f"round {t} cannot come now; the scheduler is at {self.scheduler.round}")
        nodes = self.directory.update(grid.get_node_ids())
        self.asking.forget(nodes)
        unknown = self.scheduler.unknown
        due = [node for node in nodes if (device := self.directory.device(node)) is None or unknown[device]]
        self._ask(self.asking.choose(due, t), grid)
        self._check_anyone_is_known(nodes)
        schedule = [int(device) for device in self.scheduler.schedule(self.directory.connected())]
        log.info("round %d: training on %s", t, _shortened([self.directory.name(device) for device in schedule]))
        chosen = [self.directory.node(device) for device in schedule]
        assert None not in chosen, "only connected devices are available"
        return chosen  # pyright: ignore[reportReturnType]

    def calls_for_training(self, nodes: Sequence[int], contents: Sequence[RecordDict], model: Model) -> list[Message]:
        """To each chosen node what the strategy says, and what the device needs to know of the scheduler.

        contents: as many as nodes, or none where the strategy calls nobody; model: what replies must look like.
        """
        self._model, self._called = model, []
        for node, content in zip(nodes, contents, strict=False):
            device = self.directory.device(node)
            assert device is not None
            server = self._server_record(self._used_round(device))
            f_hz = self.scheduler.chosen_f_hz(device)
            if f_hz is not None:
                server["chosen-f-hz"] = f_hz
            message = Message(
                RecordDict({**content, SERVER: server}), node, MessageType.TRAIN, ttl=self.settings.deadline_s
            )
            self._called.append((device, message))
        return [message for _, message in self._called]

    def settle(self, t: int, replies: Iterable[Message]) -> tuple[RoundRecord, list[Message]]:
        """Check what came back and settle the round: its record, and the updates that count, by device.

        A reply that cannot be used costs its sender the round, and is logged once with the reason.
        """
        updates, dropped = self._checked(t, replies)
        metrics, refused = alike({device: update.metrics for device, update in updates.items()})
        for device, reason in refused.items():
            dropped.append(self._drop(t, device, reason))
            del updates[device]
        record = self.scheduler.settle({device: update.report for device, update in updates.items()})
        senders = record.decision.schedule[record.transmission.sent]
        self._check_anyone_trains(record, dropped)
        counted = []
        for device in map(int, senders):
            if metrics[device][self.weight_key]:  # an update that weighs nothing would still sway a median
                update = updates[device]
                update.message.content = RecordDict({"metrics": metrics[device], "arrays": write_model(update.arrays)})
                counted.append(update.message)
        return record, counted

    def _checked(self, t: int, replies: Iterable[Message]) -> tuple[dict[int, Update], list[str]]:
        """The replies by device that pass every check of their own, and why the others are of no use."""
        # A reply says whom it comes from, so it is not asked: the message that it answers tells.
        called = {message.metadata.message_id: device for device, message in self._called}
        updates: dict[int, Update] = {}
        dropped: list[str] = []
        for reply in replies:
            device = called.pop(reply.metadata.reply_to_message_id, None)
            try:
                if device is None:
                    raise ReportError("nobody asked for it")
                updates[device] = self._read_update(device, reply)
            except ReportError as problem:
                dropped.append(self._drop(t, device, str(problem)))
        return updates, dropped + ["no reply within the deadline"] * len(called)

    def _read_update(self, device: int, reply: Message) -> Update:
        content, report = self._read(reply, device)
        report = self.scheduler.check(device, report)
        stored = int(report.stored_labels.sum(dtype=np.int64))
        metrics = checked_metrics(content, self.weight_key, stored, self.settings.max_examples)
        return Update(reply, report, checked_update(content, self._model), metrics)

    def evaluations(self, t: int, replies: Iterable[Message]) -> list[Message]:
        """The replies to evaluation that can be averaged, metrics made alike."""
        found: dict[int, tuple[Message, Values]] = {}
        for reply in replies:
            node = reply.metadata.src_node_id
            device = self.directory.device(node)
            try:
                content = _content(reply)
                stored = 0 if device is None else int(self.scheduler.stored_labels[device].sum())
                # Clients evaluate on data of their own, of any amount: only the option limits what it may weigh.
                own = any(self.weight_key in record for record in content.metric_records.values())
                if not own:
                    raise ReportError(f"metric '{self.weight_key}' is missing")
                most = self.settings.max_examples
                found[node] = reply, checked_metrics(content, self.weight_key, max(stored, 2**53), most)
            except ReportError as problem:
                self._drop(t, device, str(problem))
        metrics, refused = alike({node: values for node, (_, values) in found.items()})
        for node, reason in refused.items():
            self._drop(t, self.directory.device(node), reason)
        kept = []
        for node, record in metrics.items():
            if record[self.weight_key]:
                found[node][0].content = RecordDict({"metrics": record})
                kept.append(found[node][0])
        return kept

    def known_nodes(self, grid: Grid) -> list[int]:
        """The connected nodes that are devices of this run."""
        return [node for node in self.directory.update(grid.get_node_ids()) if self.directory.device(node) is not None]

    def _ask(self, nodes: list[int], grid: Grid) -> None:
        """Query reports. A node that only now says who it is may have reported against an unknown history."""
        again: list[int] = []
        answers, errors = self._query(nodes, grid)
        silent = frozenset(nodes) - answers.keys()
        for node in silent:
            self.asking.failed(node, self.scheduler.round, errors.get(node, "no answer"))
        for node in sorted(answers):
            stranger = self.directory.device(node) is None
            if not self._accept(node, answers[node], silent, final=not stranger) and stranger:
                again.append(node)
        known = [node for node in again if self.directory.device(node) is not None]
        answers, _ = self._query(known, grid)
        for node in sorted(answers):
            self._accept(node, answers[node], silent, final=True)

    def _query(self, nodes: list[int], grid: Grid) -> tuple[dict[int, Message], dict[int, str]]:
        """The answers of these nodes, and what others said in place of one."""
        # Clients that have never answered may have to be started first, as by Flower's simulation engine.
        known = bool((self.scheduler.report_round > 0).any())
        timeout_s = self.settings.query_timeout_s if known else self.settings.first_query_timeout_s
        contents: dict[int, RecordDict] = {}  # nearly everyone receives the same
        messages = []
        for node in nodes:
            used_round = self._used_round(self.directory.device(node))
            if used_round not in contents:
                contents[used_round] = RecordDict({SERVER: self._server_record(used_round)})
            messages.append(Message(contents[used_round], node, QUERY, ttl=timeout_s))
        answers = exchange(grid, messages, timeout_s, self.settings.enough_reports)
        errors = {node: str(a.error.reason)[:200] for node, a in answers.items() if a.has_error()}
        for node, reason in errors.items():
            log.warning("round %d: node %d could not report: %s", self.scheduler.round, node, reason)
        return {node: answer for node, answer in answers.items() if node not in errors}, errors

    def _accept(self, node: int, answer: Message, silent: frozenset[int], final: bool) -> bool:
        device, t = self.directory.device(node), self.scheduler.round
        try:
            device = self.directory.introduce(node, device_name(_content(answer)), silent)
            self.scheduler.accept(device, self._read(answer, device)[1])
        except ReportError as problem:
            if device is not None and not final:
                return False
            if device is not None:
                self.scheduler.exclude(device, str(problem))
            else:
                log.warning("round %d: the report of node %d is refused: %s", t, node, problem)
            self.asking.failed(node, t, "an unknown name" if isinstance(problem, UnknownNameError) else str(problem))
            return False
        self.asking.succeeded(node)
        return True

    def _read(self, message: Message, device: int) -> tuple[RecordDict, DeviceReport]:
        content = _content(message)
        name = device_name(content)
        if name != self.directory.names[device]:
            raise ReportError(f"it calls itself '{name[:40]}'")
        report = self.scheduler.bounds.read(content)
        priority = self.directory.rules.priority(name)  # the operator's word counts before the node's
        if priority is None and report.priority is not None:
            priority = min(report.priority, self.settings.max_priority)
        return content, report if priority == report.priority else replace(report, priority=priority)

    def _used_round(self, device: int | None) -> int:
        return 0 if device is None else int(self.scheduler.used_round[device])

    def _server_record(self, used_round: int) -> MetricRecord:
        """What every message tells a device of the scheduler's side."""
        scheduler = self.scheduler
        return MetricRecord(
            {
                "round": scheduler.round,
                "used-round": used_round,
                "classes": self.settings.classes,
                "deletes": int(not scheduler.bounds.never_deletes),
                "frequency-hz": list(scheduler.bounds.frequency_hz),
                "gain-range": list(scheduler.bounds.gain),
            }
        )

    def _drop(self, t: int, device: int | None, reason: str) -> str:
        log.warning("round %d: the reply of device %s is dropped: %s", t, self.directory.name(device), reason)
        return reason

    def _check_anyone_is_known(self, nodes: Sequence[int]) -> None:
        """Where every node answered and none of the answers is of use, waiting does not help."""
        if not nodes or self.settings.give_up_after is None or (self.scheduler.report_round > 0).any():
            return
        wrong = self.asking.reasons["an unknown name"]
        if wrong == len(nodes):
            rules = self.directory.rules
            wanted = f"fit '{rules.pattern}'" if rules.pattern else f"are {_shortened(rules.listed)}"
            raise DeploymentError(
                f"none of the {wrong} connected nodes has a name of this run; the names {wanted}: "
                "set device-name or partition-id in --node-config, or `names` on the server"
            )

    def _check_anyone_trains(self, record: RoundRecord, dropped: list[str]) -> None:
        """Too many rounds in a row without an update end the run: nobody wants a model that was never trained."""
        able = bool(record.observation.available.any())
        if record.transmission.sent.any() or (
            able and not len(record.decision.schedule)
        ):  # a policy may choose to rest
            self.idle = 0
            return
        self.idle += 1
        limit = self.settings.give_up_after
        if limit is not None and self.idle >= limit:
            raise DeploymentError(f"nobody could be trained for {self.idle} rounds: {self._reason(record, dropped)}")

    def _reason(self, record: RoundRecord, dropped: list[str]) -> str:
        if dropped:
            reason = Counter(dropped).most_common(1)[0][0]
            return f"{reason} (the wall-clock limit is {self.settings.deadline_s:g} s)"
        scheduler, connected = self.scheduler, self.directory.connected()
        if not self.directory.nodes:
            return "no node is connected"
        if not (scheduler.report_round > 0).any():
            common = self.asking.reasons.most_common(1)
            why = f" ({common[0][0]})" if common else ""
            return (
                f"no device has reported{why}; "
                'each ClientApp needs a handler @app.query("feelstream"), and a name of this run'
            )
        if not scheduler.stored_labels[connected].any():
            return "no connected device holds any data"
        if len(record.decision.schedule):
            return "every scheduled device took longer than system.round_s"
        return f"no connected device has reported within the last {self.settings.max_report_age} rounds"

    def snapshot(self) -> Nested:
        return {
            "scheduler": self.scheduler.snapshot(),
            "directory": self.directory.snapshot(),
            "asking": self.asking.snapshot(),
            "idle": np.array(self.idle),
        }

    def restore(self, state: Nested) -> None:
        self.scheduler.restore(state["scheduler"])
        self.directory.restore(state["directory"])
        self.asking.restore(state["asking"])
        self.idle = int(state["idle"])

    def describe(self) -> dict[str, Any]:
        """What run.json says of it."""
        settings = self.settings
        return {
            "names": list(self.directory.names),
            "deadline_s": settings.deadline_s,
            "max_report_age": settings.max_report_age,
            "measured": list(settings.measured),
        }


def _content(message: Message) -> RecordDict:
    if message.has_error():
        raise ReportError(f"Flower says: {message.error.reason}")
    return message.content


def _shortened(names: Sequence[str]) -> str:
    shown = ", ".join(names[:20])
    return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown or "nobody"
