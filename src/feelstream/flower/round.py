"""A deployed round, from whom to ask to what is averaged: a generator that the strategy's hooks resume.

    nodes           = deployment.begin(t, grid)             as far as the choice of whom to train
    messages        = deployment.messages(nodes, …)         what the strategy says, and what the scheduler adds
    updates         = deployment.close(replies)             and on, to the updates that count; its record is kept

What nobody could be trained by is logged as an error with its reason, and a federation that does not train ends with
an error: nobody wants a model that was never trained.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
from flwr.app import Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid

from feelstream.arrays import Flags
from feelstream.errors import FeelstreamError
from feelstream.flower.directory import Directory, Notices, by_reason, shortened
from feelstream.flower.exchange import KEPT, Calls
from feelstream.flower.fleet import DeploymentError, Fleet
from feelstream.flower.inner import Inner
from feelstream.flower.kept import Kept
from feelstream.flower.scheduler import Scheduler
from feelstream.flower.settings import Options
from feelstream.flower.updates import Update, checked_metrics, is_finite, read_update, together
from feelstream.flower.wire import (
    FITTED,
    REPORT,
    SERVER,
    Counts,
    DeviceReport,
    ReportError,
    content_of,
    device_name,
    nobody_replied,
)
from feelstream.loop.round import RoundRecord
from feelstream.scenario import Scenario

log = logging.getLogger("flwr.feelstream")  # beside Flower's own messages
USUAL_SHARE = 10  # times what a device would store if it received what others do is the most that it may weigh
LONGEST = 10  # times the limit: with thousands of devices not everyone need fail before it is clear that nobody can


class Deployment(Kept):
    """Scheduler, fleet and messages of one run."""

    kept = ("fleet", "patience", "calls")

    def __init__(self, scenario: Scenario, options: Options, inner: Inner) -> None:
        self.scenario, self.options, self.inner = scenario, options, inner
        who, waiting, k = options.devices, options.waiting, scenario.system.devices
        self.deadline_s = waiting.deadline_s or scenario.system.round_s
        self.directory = Directory(who.names, k, bool(who.bind_names))
        self.notices = Notices(self.directory.name)
        self.scheduler = Scheduler(
            scenario, who.classes, options.seed, who.max_report_age, who.passes, options.measuring, self.notices
        )
        self.fleet = Fleet(self.scheduler, self.directory, options)
        self.calls = Calls(k, self.deadline_s, waiting.adaptive_timeout, waiting.first)
        self.patience = Patience(waiting.give_up_after, scenario.system.rounds, self.directory.name)
        self.record: RoundRecord | None = None  # of the last round that was settled
        self._playing: Generator[list[int], Iterable[Message], list[Message]] | None = None
        self._nodes: list[int] = []  # that train in the round under way
        self._called: list[Message] = []  # its calls for training

    # What the hooks call

    def begin(self, t: int, grid: Grid) -> list[int]:
        """The nodes to train in round t, in the order of their devices.

        A strategy around ours may ask twice, which is the same round, or throw the last round's replies away, which is
        then one without replies.
        """
        if not self.plays(t):
            self.close([])
            playing = self.play_round(t, grid)
            self._nodes = next(playing)
            self._playing = playing
        return self._nodes

    def messages(self, nodes: Sequence[int], contents: Sequence[RecordDict]) -> list[Message]:
        """To each chosen node what the strategy says, and what the device needs to know of the scheduler.

        contents: as many as nodes, or none where the strategy calls nobody.
        """
        scheduler, sent = self.scheduler, []
        ttl = self.deadline_s * (1 if self.options.waiting.late == "waste" else 1 + KEPT)
        for node, content in zip(nodes, contents, strict=False):
            device = self.directory.device_of[node]
            used_round, f_hz = int(scheduler.used_round[device]), scheduler.chosen_hz.get(device)
            records = {**content, SERVER: scheduler.bounds.told(scheduler.round, used_round, f_hz)}
            if self.fleet.fitted is not None and device in self.patience.failed:  # it may have lost its state
                records[FITTED] = self.fleet.fitted
            sent.append(Message(RecordDict(records), node, MessageType.TRAIN, ttl=ttl))
        self._called += sent
        return sent

    def close(self, replies: Iterable[Message]) -> list[Message]:
        """Settle the round under way: the updates that count, by device."""
        if self._playing is None:
            return []
        playing, self._playing = self._playing, None
        try:
            playing.send(replies)
        except StopIteration as done:
            return done.value
        raise AssertionError("a round has two parts")

    def plays(self, t: int) -> bool:
        """Whether round t is under way."""
        return self._playing is not None and t == self.scheduler.round

    # The round

    def play_round(self, t: int, grid: Grid) -> Generator[list[int], Iterable[Message], list[Message]]:
        """Round t: yields the nodes to train, is sent their replies, and returns the updates that count."""
        scheduler, directory, calls = self.scheduler, self.directory, self.calls
        if t != scheduler.round + 1:
            raise FeelstreamError(f"round {t} cannot come now; the scheduler is at {scheduler.round}")
        self.fleet.wait(grid)
        scheduler.begin()
        calls.forget()
        self._called = []
        self.fleet.ask(grid, calls.busy)
        if calls.first is not None:
            scheduler.excluded[calls.busy] = True
        schedule = scheduler.schedule(directory.connected()).tolist()
        log.debug("round %d: training on %s", t, shortened([directory.names[device] for device in schedule]))
        replies = yield [directory.node_of[device] for device in schedule]
        reports, updates, failures = self._read(t, replies)
        self.record = scheduler.settle(reports, None if calls.first is None else calls.cut)
        self.notices.tell(t)
        self.patience.judge(self.record, failures, self.fleet.why_nobody, calls.cut)
        sent = self.record.decision.schedule[self.record.transmission.sent].tolist()
        counted = [updates[device] for device in sent if device in updates]
        return counted + (self._late_updates(t, counted) if self.options.waiting.late == "use" else [])

    def _read(
        self, t: int, replies: Iterable[Message]
    ) -> tuple[dict[int, DeviceReport], dict[int, Message], dict[int, str]]:
        """By device: the reports that pass every check, the updates with them that can be averaged, and why the others
        cannot be used. That costs a sender the round, and is logged with the reason.
        """
        # A reply says whom it comes from, so it is not asked: the message that it answers tells.
        called = {m.metadata.message_id: self.directory.device_of[m.metadata.dst_node_id] for m in self._called}
        reports: dict[int, DeviceReport] = {}
        updates: dict[int, Update] = {}
        failures: dict[int, str] = {}
        for reply in replies:
            if nobody_replied(reply):
                continue
            device = called.get(reply.metadata.reply_to_message_id)
            if device is None or device in updates or device in failures:
                self._drop(t, None, "nobody asked for it")
                continue
            try:
                content = content_of(reply)
                if (name := device_name(content)) != self.directory.names[device]:
                    raise ReportError(f"it calls itself '{name[:40]}'")
                report = self.scheduler.check(device, self.fleet.read(content, device))
                held = report.stored_labels
                updates[device] = self._update(reply, device, held) if self.inner.check_updates else Update(reply, {})
                reports[device] = report
            except ReportError as problem:
                failures[device] = self._drop(t, device, str(problem))
        late = f"no reply within the deadline of {self.deadline_s:g} s"
        silent = [k for k in dict.fromkeys(called.values()) if k not in {*updates, *failures, *self.calls.cut}]
        if self.inner.check_updates:
            usable, refused = together(updates, self.inner.weight_key)
            for device, reason in refused.items():
                failures[device] = self._drop(t, device, reason)
                del reports[device]
        else:
            usable = {device: update.message for device, update in updates.items()}
            for message in usable.values():
                message.content.pop(REPORT, None)
        for device in silent:
            self.notices.add(t, "no update", device, late)
        return reports, usable, failures | dict.fromkeys(silent, late)

    def _update(self, reply: Message, device: int, held: Counts) -> Update:
        """What a reply holds beside its report; held: label counts of what the device stores.

        Where the options state no limit, a device's samples count up to USUAL_SHARE times what it would hold at the
        lower median of all devices' samples per round, so that nobody takes over the average by claiming more than any
        device could have received.
        """
        stored, most = int(held.sum(dtype=np.int64)), self.options.trust.max_examples
        if most == "auto":
            most, usual = None, ceil(USUAL_SHARE * self.scheduler.usual_samples(device))
            if stored > usual:
                reason = f"it says that it stores {stored} samples; {usual} count, {USUAL_SHARE} times what is usual"
                self.notices.add(self.scheduler.round, "less weight than claimed, by max_examples", device, reason)
            stored = min(stored, usual)
        return read_update(reply, self.inner.known, self.inner.weight_key, stored, most, self.inner.one_of_each)

    def _late_updates(self, t: int, on_time: Sequence[Message]) -> list[Message]:
        """Of replies to calls of earlier rounds those that can be averaged, each with 1/(1 + its age) of its weight.

        The reports in them are old, and left aside: what a device holds counts as used when it is in time. Each must
        look as the replies that were in time do.
        """
        shape, kept = _shape(on_time[0].content) if on_time else None, list[Message]()
        weight_key = self.inner.weight_key
        for device, age, reply in self.calls.late:
            try:
                update = self._update(reply, device, self.scheduler.stored_labels[device])
                weight = update.metrics[weight_key]
                if not isinstance(weight, int | float) or not weight > 0:
                    raise ReportError("it weighs nothing")
                metrics = MetricRecord(dict(sorted(update.metrics.items())) | {weight_key: weight / (1 + age)})
                arrays, found = update.keys
                content = RecordDict({found: metrics, arrays: update.arrays})  # type: ignore[dict-item]
                shape = shape or _shape(content)
                if _shape(content) != shape:
                    raise ReportError("its records are not those of the other replies")
            except ReportError as problem:
                self._drop(t, device, f"{problem} (it is of round {t - age})")
                continue
            reply.content = content
            log.debug("round %d: the update of device %s for round %d is used", t, self.directory.name(device), t - age)
            kept.append(reply)
        return kept

    def evaluations(self, t: int, replies: Iterable[Message]) -> list[Message]:
        """The replies to evaluation that can be averaged, metrics made alike."""
        found: dict[int, Update] = {}
        most, device_of, weight_key = self.options.trust.max_examples, self.directory.device_of, self.inner.weight_key
        for reply in replies:
            node = reply.metadata.src_node_id
            try:
                records = content_of(reply).metric_records
                if len(records) != 1:
                    raise ReportError(f"it carries {len(records)} sets of metrics, not one")
                record = next(iter(records.values()))
                if weight_key not in record:
                    raise ReportError(f"metric '{weight_key}' is missing")
                # Clients evaluate on data of their own, of any amount: only the option limits what it may weigh.
                values = checked_metrics(record, weight_key, 2**53, None if most == "auto" else most)
                if not all(map(is_finite, values.values())):
                    raise ReportError("a metric is not finite")
                found[node] = Update(reply, values)
            except ReportError as problem:
                self._drop(t, device_of.get(node), str(problem))
        kept, refused = together(found, weight_key)
        for node, reason in refused.items():
            self._drop(t, device_of.get(node), reason)
        self.notices.tell(t)
        return list(kept.values())

    def known_nodes(self, grid: Grid) -> list[int]:
        """The connected nodes that are devices of this run."""
        return [node for node in self.directory.update(grid.get_node_ids()) if node in self.directory.device_of]

    def _drop(self, t: int, device: int | None, reason: str) -> str:
        self.notices.add(t, "reply dropped", device, reason)
        return reason

    def describe(self) -> dict[str, Any]:
        """What run.json says of it."""
        options = self.options
        return {
            "names": list(self.directory.names),
            "deadline_s": self.deadline_s,
            "max_report_age": options.devices.max_report_age,
            "measured": list(options.measuring.fields),
            "passes": self.scheduler.passes,
            "plans": options.measuring.plans,
            "first": options.waiting.first,
            "late": options.waiting.late,
            "options": options.model_dump(mode="json", exclude={"devices": {"names"}, "seed": True}),
        }


def _shape(content: RecordDict) -> tuple[set[str], set[str]]:
    """The names of its records, and of what it has measured."""
    return set(content), {key for record in content.metric_records.values() for key in record}


class Patience(Kept):
    """Lost rounds in a row, and why each device has failed since it last trained.

    A round is lost if devices could have been scheduled or none could, and no update was received; a policy that
    chooses to rest loses none. After `limit` lost rounds in a row the run ends, once no device is left that has not
    failed since anybody last trained; and at the latest after the last round if nobody has trained in the whole run.
    """

    kept = ("lost", "modelless", "trained", "failed")

    def __init__(self, limit: int | None, rounds: int, name: Callable[[int | None], str]) -> None:
        """limit: None never ends a run; rounds: of the whole run; name: of a device."""
        self.limit, self.rounds, self.name = limit, rounds, name
        self.lost = 0
        self.modelless = 0  # rounds in a row whose updates made no model
        self.trained = False  # whether the run has ever made a model of updates
        self.failed: dict[int, str] = {}

    def judge(
        self,
        record: RoundRecord,
        failures: Mapping[int, str],
        otherwise: Callable[[], str],
        cut: Collection[int] = (),
    ) -> None:
        """Close a round. failures: scheduled devices whose reply is of no use, and why; otherwise: why nobody could be
        scheduled at all; cut: devices that were not waited for, which have not failed."""
        schedule, sent, t = record.decision.schedule, record.transmission.sent, record.observation.round
        for device in schedule[sent].tolist():
            self.failed.pop(device, None)
        late = dict.fromkeys(schedule[~sent].tolist(), "it took longer than system.round_s")
        self.failed |= {device: why for device, why in (late | dict(failures)).items() if device not in cut}
        able = record.observation.available
        rests = not len(schedule) and bool(record.decision.plan.feasible.any())  # a policy may choose to
        if sent.any() or rests:
            self.lost = 0
            return
        self.lost += 1
        reason = by_reason(self.failed, self.name)
        if not len(schedule):
            reason = "no device can be in time" if able.any() else otherwise()
        if self.lost == 1:
            log.error("round %d: nobody could be trained: %s", t, reason)
        over = t >= self.rounds and not self.trained
        if self.limit is not None and (over or self._exhausted(able, self.limit)):
            raise DeploymentError(f"nobody could be trained for {self.lost} rounds: {reason}")

    def _exhausted(self, able: Flags, limit: int) -> bool:
        untried = any(device not in self.failed for device in np.flatnonzero(able).tolist())
        return self.lost >= (LONGEST * limit if untried else limit)

    def aggregated(self, t: int, made: bool) -> None:
        """Updates were received in round t; made: whether the strategy inside made a model of them."""
        self.trained |= made
        self.modelless = 0 if made else self.modelless + 1
        if made:
            return
        log.error("round %d: the strategy inside made no model of the updates, so that it stays as it was", t)
        over = t >= self.rounds and not self.trained
        if self.limit is not None and (over or self.modelless >= self.limit):
            raise DeploymentError(
                f"updates were received for {self.modelless} rounds, but the strategy inside made no model of them"
            )
