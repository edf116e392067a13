"""A deployment on the server's side: it owns the scheduler, the directory of nodes, and what is said to them.

One round is

    nodes           = deployment.begin(t, grid)                 ask whom we must, and let the policy choose
    messages        = deployment.calls_for_training(nodes, …)   what the strategy says, and what the scheduler adds
    record, updates = deployment.settle(t, replies)             check them, settle the round; those that count remain
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
from flwr.app import Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from numpy.typing import NDArray

from feelstream.arrays import Nested
from feelstream.errors import FeelstreamError
from feelstream.flower.directory import Directory
from feelstream.flower.metrics import Values, alike, checked_metrics
from feelstream.flower.names import NameRules
from feelstream.flower.patience import Patience, shortened
from feelstream.flower.records import USUAL_NAMES, Names, Record, alike_records, most_common, others, the_one
from feelstream.flower.report import REPORT, SERVER, DeviceReport, ReportError
from feelstream.flower.reporting import Reporting, content_of, nobody_replied
from feelstream.flower.scheduler import Scheduler
from feelstream.flower.settings import DeploymentSettings
from feelstream.flower.stragglers import KEPT, LateReply, Stragglers
from feelstream.flower.updates import Model, checked_update, write_model
from feelstream.loop.round import RoundRecord
from feelstream.scenario import Scenario

log = logging.getLogger("flwr.feelstream")  # beside Flower's own messages
USUAL = 10  # times what a device would store if it received what others do is the most that it may weigh


@dataclass(frozen=True)
class Update:
    """A reply that has passed every check so far."""

    message: Message
    report: DeviceReport
    arrays: dict[str, NDArray]
    metrics: Values
    keys: Names = USUAL_NAMES  # under which the reply had them
    others: dict[str, Record] = field(default_factory=dict)


class Deployment:
    """Scheduler, directory and messages of one run."""

    def __init__(
        self,
        scenario: Scenario,
        settings: DeploymentSettings,
        weight_key: str = "num-examples",
        one_of_each: bool = True,
    ) -> None:
        """weight_key: the metric that weighs an update; one_of_each: the strategy takes one set of arrays a reply."""
        self.scenario, self.settings, self.weight_key, self.one_of_each = scenario, settings, weight_key, one_of_each
        devices = scenario.system.devices
        self.scheduler = Scheduler(
            scenario, settings.classes, settings.seed, settings.max_report_age, settings.measured, settings.passes,
            settings.plans,
        )  # fmt: skip
        self.directory = Directory(NameRules(settings.names, devices), settings.bind_names)
        self.reporting = Reporting(self.scheduler, self.directory, settings)
        self.patience = Patience(settings.give_up_after, scenario.system.rounds, self.directory.name)
        self.stragglers = Stragglers(devices, settings.deadline_s, settings.adaptive_timeout)
        self.cut: set[int] = set()  # devices that were not waited for in the last round
        self._weighed_down: set[int] = set()  # devices of which it was logged that they claim too many samples
        self._model: Model = {}  # of the round under way
        self._called: list[tuple[int, Message]] = []  # its calls for training, by device

    def begin(self, t: int, grid: Grid) -> list[int]:
        """The nodes to train in round t, in the order of their devices."""
        if self.scheduler.open:  # a wrapper around us threw the last round's replies away
            self.settle(self.scheduler.round, [])
        if t != self.scheduler.begin():
            raise FeelstreamError(f"round {t} cannot come now; the scheduler is at {self.scheduler.round}")
        self.reporting.renew(grid)
        if self.settings.first is not None:
            self.scheduler.keep_out(self.stragglers.busy)
        schedule = [int(device) for device in self.scheduler.schedule(self.directory.connected())]
        log.info("round %d: training on %s", t, shortened([self.directory.name(device) for device in schedule]))
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
            server = self.reporting.server_record(device)
            f_hz = self.scheduler.chosen_f_hz(device)
            if f_hz is not None:
                server["chosen-f-hz"] = f_hz
            ttl = self.settings.deadline_s * (1 if self.settings.late == "waste" else 1 + KEPT)
            message = Message(RecordDict({**content, SERVER: server}), node, MessageType.TRAIN, ttl=ttl)
            self._called.append((device, message))
        return [message for _, message in self._called]

    def settle(self, t: int, replies: Iterable[Message], cut: Iterable[int] = ()) -> tuple[RoundRecord, list[Message]]:
        """Check what came back and settle the round: its record, and the updates that count, by device.

        A reply that cannot be used costs its sender the round, and is logged once with the reason.
        cut: nodes that were not waited for, as enough others had replied.
        """
        self.cut = {device for node in cut if (device := self.directory.device(node)) is not None}
        updates, failures = self._checked(t, replies)
        failures = {device: reason for device, reason in failures.items() if device not in self.cut}
        metrics, refused = alike({device: update.metrics for device, update in updates.items()})
        kept, lacking = alike_records({device: u.others for device, u in updates.items() if device not in refused})
        refused |= lacking
        for device, reason in refused.items():
            failures[device] = self._drop(t, device, reason)
            del updates[device]
        not_waited_for = None if self.settings.first is None else self.cut
        record = self.scheduler.settle({device: update.report for device, update in updates.items()}, not_waited_for)
        senders = record.decision.schedule[record.transmission.sent]
        self.patience.judge(record, failures, self._why_nobody, self.cut)
        arrays, found = most_common([update.keys for update in updates.values()])
        counted = []
        for device in map(int, senders):
            update = updates[device]
            if not self.settings.check_updates:
                update.message.content.pop(REPORT, None)
                counted.append(update.message)
            elif metrics[device][self.weight_key]:  # an update that weighs nothing would still sway a median
                update.message.content = RecordDict(
                    {**kept[device], found: metrics[device], arrays: write_model(update.arrays)}
                )
                counted.append(update.message)
        return record, counted

    def _checked(self, t: int, replies: Iterable[Message]) -> tuple[dict[int, Update], dict[int, str]]:
        """The replies by device that pass every check of their own, and why those of others are of no use."""
        # A reply says whom it comes from, so it is not asked: the message that it answers tells.
        called = {message.metadata.message_id: device for device, message in self._called}
        updates: dict[int, Update] = {}
        failures: dict[int, str] = {}
        for reply in replies:
            if nobody_replied(reply):
                continue
            device = called.pop(reply.metadata.reply_to_message_id, None)
            if device is None:
                self._drop(t, None, "nobody asked for it")
                continue
            try:
                updates[device] = self._read_update(device, reply)
            except ReportError as problem:
                failures[device] = self._drop(t, device, str(problem))
        late = f"no reply within the deadline of {self.settings.deadline_s:g} s"
        silent = [self.directory.name(device) for device in called.values() if device not in self.cut]
        if silent:
            log.warning("round %d: %s from %s", t, late, shortened(silent))
        return updates, failures | dict.fromkeys(called.values(), late)

    def _read_update(self, device: int, reply: Message) -> Update:
        content, report = self.reporting.read(reply, device)
        report = self.scheduler.check(device, report)
        stored = int(report.stored_labels.sum(dtype=np.int64))
        if not self.settings.check_updates:
            return Update(reply, report, {}, {})
        arrays = the_one(content.array_records, "arrays", "arrays", self.one_of_each)
        found = the_one(content.metric_records, "metrics", "metrics", self.one_of_each)
        record = content.metric_records[found] if found is not None else None
        metrics = checked_metrics(record, self.weight_key, self._counted(device, stored), self._most_examples)
        model = checked_update(content.array_records[arrays] if arrays is not None else None, self._model)
        names = arrays or USUAL_NAMES[0], found or USUAL_NAMES[1]
        return Update(reply, report, model, metrics, names, others(content, {arrays, found}))

    @property
    def _most_examples(self) -> float | None:
        """The most samples that anyone may claim as a weight, where the option states it."""
        most = self.settings.max_examples
        return None if most == "auto" else most

    def _counted(self, device: int, stored: int) -> int:
        """How many of the samples that a device says it stores may count.

        By default at most USUAL times what it would hold at the lower median of all devices' samples per round, so
        that nobody takes over the average by claiming more than any device could have received.
        """
        if self.settings.max_examples != "auto":
            return stored
        most = ceil(USUAL * self.scheduler.usual_samples(device))
        if stored > most and device not in self._weighed_down:
            self._weighed_down.add(device)
            log.warning(
                "round %d: device %s says that it stores %d samples; %d count, %d times what is usual "
                "(max_examples sets another limit)",
                *(self.scheduler.round, self.directory.name(device), stored, most, USUAL),
            )
        return min(stored, most)

    def late_updates(self, t: int, late: Iterable[LateReply], on_time: Sequence[Message]) -> list[Message]:
        """Of replies to calls of earlier rounds those that can be averaged, each with 1/(1 + its age) of its weight.

        The reports in them are old, and left aside: what a device holds counts as used when it is in time. Each must
        look as the replies that were in time do.
        """
        shape, kept = _shape(on_time[0]) if on_time else None, list[Message]()
        for reply in late:
            try:
                update = self._read_late(reply)
                shape = shape or _shape(update)
                if _shape(update) != shape:
                    raise ReportError("its records are not those of the other replies")
            except ReportError as problem:
                self._drop(t, reply.device, f"{problem} (it is of round {t - reply.age})")
                continue
            name = self.directory.name(reply.device)
            log.info("round %d: the update of device %s for round %d is used", t, name, t - reply.age)
            kept.append(update)
        return kept

    def _read_late(self, reply: LateReply) -> Message:
        content, message = content_of(reply.message), reply.message
        arrays = the_one(content.array_records, "arrays", "arrays", self.one_of_each)
        key = the_one(content.metric_records, "metrics", "metrics", self.one_of_each)
        record = content.metric_records[key] if key is not None else None
        stored = self._counted(reply.device, int(self.scheduler.stored_labels[reply.device].sum(dtype=np.int64)))
        metrics = checked_metrics(record, self.weight_key, stored, self._most_examples)
        model = checked_update(content.array_records[arrays] if arrays is not None else None, self._model)
        weight = metrics[self.weight_key]
        if not isinstance(weight, int | float) or not weight > 0:
            raise ReportError("it weighs nothing")
        found = MetricRecord({**dict(sorted(metrics.items())), self.weight_key: weight / (1 + reply.age)})
        message.content = RecordDict({key or "metrics": found, arrays or "arrays": write_model(model)})
        return message

    def evaluations(self, t: int, replies: Iterable[Message]) -> list[Message]:
        """The replies to evaluation that can be averaged, metrics made alike."""
        found: dict[int, tuple[Message, Values]] = {}
        for reply in replies:
            node = reply.metadata.src_node_id
            device = self.directory.device(node)
            try:
                content = content_of(reply)
                own = any(self.weight_key in record for record in content.metric_records.values())
                if not own:
                    raise ReportError(f"metric '{self.weight_key}' is missing")
                # Clients evaluate on data of their own, of any amount: only the option limits what it may weigh.
                key = the_one(content.metric_records, "metrics", "metrics", single=True)
                record = content.metric_records[key] if key is not None else None
                found[node] = reply, checked_metrics(record, self.weight_key, 2**53, self._most_examples)
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

    def _drop(self, t: int, device: int | None, reason: str) -> str:
        log.warning("round %d: the reply of device %s is dropped: %s", t, self.directory.name(device), reason)
        return reason

    def _why_nobody(self) -> str:
        """Why nobody could be scheduled."""
        scheduler, connected = self.scheduler, self.directory.connected()
        if not self.directory.nodes:
            return "no node is connected"
        if not self.reporting.anyone_known:
            why = self.reporting.why_unknown
            return (
                f"no device has reported{f' ({why})' if why else ''}; "
                'each ClientApp needs a handler @app.query("feelstream"), and a name of this run'
            )
        if not scheduler.stored_labels[connected].any():
            return "no connected device holds any data"
        return f"no connected device has reported within the last {self.settings.max_report_age} rounds"

    def snapshot(self) -> Nested:
        return {
            "scheduler": self.scheduler.snapshot(),
            "directory": self.directory.snapshot(),
            "asking": self.reporting.asking.snapshot(),
            "patience": self.patience.snapshot(),
            "stragglers": self.stragglers.snapshot(),
            "metered": np.array(sorted(self.reporting.meters), np.int64),
            "meters": np.array([meter for _, meter in sorted(self.reporting.meters.items())], np.str_),
        }

    def restore(self, state: Nested) -> None:
        self.scheduler.restore(state["scheduler"])
        self.directory.restore(state["directory"])
        self.reporting.asking.restore(state["asking"])
        self.patience.restore(state["patience"])
        self.stragglers.restore(state["stragglers"])
        self.reporting.meters = dict(zip(state["metered"].tolist(), map(str, state["meters"]), strict=True))

    def describe(self) -> dict[str, Any]:
        """What run.json says of it."""
        settings = self.settings
        return {
            "names": list(self.directory.names),
            "deadline_s": settings.deadline_s,
            "max_report_age": settings.max_report_age,
            "measured": list(settings.measured),
            "passes": self.scheduler.passes,
            "plans": settings.plans,
            "first": settings.first,
            "late": settings.late,
        }


def _shape(message: Message) -> tuple[set[str], set[str]]:
    """The names of its records, and of what it has measured."""
    return set(message.content), {key for record in message.content.metric_records.values() for key in record}
