"""Reports before a round: whom to ask, what was answered, and whether there is anyone to schedule at all."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from time import monotonic, sleep

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid
from flwr.supercore.differential_privacy import KEY_CLIPPING_NORM

from feelstream.flower.asking import Asking
from feelstream.flower.authentication import authenticated
from feelstream.flower.directory import Directory, UnknownNameError
from feelstream.flower.exchange import exchange
from feelstream.flower.patience import DeploymentError, shortened
from feelstream.flower.report import MODS, QUERY, SERVER, DeviceReport, ReportError, device_name
from feelstream.flower.scheduler import Scheduler
from feelstream.flower.settings import DeploymentSettings

log = logging.getLogger("flwr.feelstream")  # beside Flower's own messages
UNKNOWN_NAME = "an unknown name"
POLL_S = 0.5
NO_REPLY = (ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE, ErrorCode.NODE_UNAVAILABLE)


class Reporting:
    """Asks nodes for reports, and hands those that can be accepted to the scheduler."""

    def __init__(self, scheduler: Scheduler, directory: Directory, settings: DeploymentSettings) -> None:
        self.scheduler, self.directory, self.settings = scheduler, directory, settings
        self.asking = Asking(scheduler.system.devices, settings.max_report_age)
        self._refused: dict[int, str] = {}  # by node: why its last answer was of no use
        self.meters: dict[int, str] = {}  # by device: what it measures its energy with, as was logged and stored

    def renew(self, grid: Grid) -> None:
        """Ask whoever has to be asked before this round; the first one waits for somebody to schedule."""
        end = monotonic() + self.settings.wait_s
        if self.directory.bind_names is None:
            self.directory.bind_names = authenticated(grid)
        nodes = self._ask_due(grid)
        while nodes and not self.anyone_known:
            if all(self.asking.was_asked(node) for node in nodes) and not self._another_comes(nodes, grid, end):
                self._check_answers(nodes)
                return
            nodes = self._ask_due(grid)

    @property
    def anyone_known(self) -> bool:
        """Whether any device has ever reported."""
        return bool((self.scheduler.report_round > 0).any())

    def _ask_due(self, grid: Grid) -> list[int]:
        """Ask those whose report is due; all connected nodes."""
        nodes, t, unknown = self.directory.update(grid.get_node_ids()), self.scheduler.round, self.scheduler.unknown
        self.asking.forget(nodes)
        self._refused = {node: reason for node, reason in self._refused.items() if node in set(nodes)}
        device = {node: self.directory.device(node) for node in nodes}
        due = [node for node, number in device.items() if number is not None and unknown[number]]
        strangers = [node for node, number in device.items() if number is None]
        # Strangers have a share of their own: however many there are, the devices of this run are asked in time.
        self._ask(sorted(self.asking.choose(due, t) + self.asking.choose(strangers, t)), grid)
        return nodes

    def _another_comes(self, nodes: Sequence[int], grid: Grid, end: float) -> bool:
        """Whether a node connects that was not there, in the time for which one waits for the first node of all.

        Nodes that are not of this run, be they mistakes or a flood, are as good as none.
        """
        if self.asking.reasons[UNKNOWN_NAME] < len(nodes) or monotonic() >= end:
            return False
        log.error("round %d: %s; waiting for others", self.scheduler.round, self._only_strangers(len(nodes)))
        before = frozenset(nodes)
        while (left_s := end - monotonic()) > 0:
            sleep(min(POLL_S, left_s))
            if not before.issuperset(grid.get_node_ids()):
                return True
        return False

    def _check_answers(self, nodes: Sequence[int]) -> None:
        """Where every node answered and none of the answers is of use, more rounds do not help."""
        if self.settings.give_up_after is None:
            return
        if self.asking.reasons[UNKNOWN_NAME] == len(nodes):
            raise DeploymentError(self._only_strangers(len(nodes)))
        if len(self._refused) == len(nodes):
            raise DeploymentError(f"none of the reports can be used: {self.why_unknown}")

    def _only_strangers(self, nodes: int) -> str:
        rules = self.directory.rules
        wanted = f"fit '{rules.pattern}'" if rules.pattern else f"are {shortened(rules.listed)}"
        return (
            f"none of the {nodes} connected nodes has a name of this run; the names {wanted}: "
            "set device-name or partition-id in --node-config, or `names` on the server"
        )

    @property
    def why_unknown(self) -> str:
        """The most common reason for which nodes that were asked have no accepted report; empty if there is none."""
        common = self.asking.reasons.most_common(1)
        return common[0][0] if common else ""

    def _ask(self, nodes: list[int], grid: Grid) -> None:
        """Query reports. A node that only now says who it is may have reported against an unknown history."""
        again: list[int] = []
        answers, errors = self._query(nodes, grid)
        silent = frozenset(nodes) - answers.keys()
        for node in silent:
            self._refused.pop(node, None)
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
        settings = self.settings
        first = max(settings.query_timeout_s, settings.wait_s)
        timeout_s = settings.query_timeout_s if self.anyone_known else first
        contents: dict[int, RecordDict] = {}  # nearly everyone receives the same
        messages = []
        for node in nodes:
            device = self.directory.device(node)
            used_round = 0 if device is None else int(self.scheduler.used_round[device])
            if used_round not in contents:
                contents[used_round] = _question(self.server_record(device))
            messages.append(Message(contents[used_round], node, QUERY, ttl=timeout_s))
        answers = exchange(grid, messages, timeout_s, settings.enough_reports)
        errors = {node: str(a.error.reason)[:200] for node, a in answers.items() if a.has_error()}
        for node, reason in errors.items():
            log.warning("round %d: node %d could not report: %s", self.scheduler.round, node, reason)
        return {node: answer for node, answer in answers.items() if node not in errors}, errors

    def _accept(self, node: int, answer: Message, silent: frozenset[int], final: bool) -> bool:
        device, t = self.directory.device(node), self.scheduler.round
        try:
            device = self.directory.introduce(node, device_name(content_of(answer)), silent)
            self.scheduler.accept(device, self.read(answer, device)[1])
        except ReportError as problem:
            if device is not None and not final:
                return False
            if device is not None:
                self.scheduler.exclude(device, str(problem))
            else:
                log.warning("round %d: the report of node %d is refused: %s", t, node, problem)
            self._refused[node] = str(problem)
            self.asking.failed(node, t, UNKNOWN_NAME if isinstance(problem, UnknownNameError) else str(problem))
            return False
        self._refused.pop(node, None)
        self.asking.succeeded(node)
        return True

    def read(self, message: Message, device: int) -> tuple[RecordDict, DeviceReport]:
        """What a message of a device holds, and the report in it; ReportError if that cannot be true."""
        content = content_of(message)
        name = device_name(content)
        if name != self.directory.names[device]:
            raise ReportError(f"it calls itself '{name[:40]}'")
        report = self.scheduler.bounds.read(content)
        for reason in report.unusable:
            log.warning("round %d: a measurement of device %s is left aside: %s", self.scheduler.round, name, reason)
        if report.meter is not None and self.meters.get(device) != report.meter:
            log.info("round %d: device %s measures its energy by: %s", self.scheduler.round, name, report.meter)
            self.meters[device] = report.meter
        priority = self.directory.rules.priority(name)  # the operator's word counts before the node's
        if priority is None and report.priority is not None:
            priority = min(report.priority, self.settings.max_priority)
        return content, report if priority == report.priority else replace(report, priority=priority)

    def server_record(self, device: int | None) -> MetricRecord:
        """What every message tells a device of the scheduler's side."""
        scheduler = self.scheduler
        return MetricRecord(
            {
                "round": scheduler.round,
                "used-round": 0 if device is None else int(scheduler.used_round[device]),
                "classes": self.settings.classes,
                "deletes": int(not scheduler.bounds.never_deletes),
                "frequency-hz": list(scheduler.bounds.frequency_hz),
                "gain-range": list(scheduler.bounds.gain),
            }
        )


def _question(server: MetricRecord) -> RecordDict:
    """What is asked; with a model of one number and a clipping norm, without which Flower's modifiers refuse it."""
    clipping = ConfigRecord({KEY_CLIPPING_NORM: 1.0})
    return RecordDict({SERVER: server, MODS: ArrayRecord([np.zeros(1, np.float32)]), f"{MODS}.config": clipping})


def nobody_replied(message: Message) -> bool:
    """Whether it is Flower's word for a call that expired, which speaks of databases and of four possible reasons."""
    return message.has_error() and message.error.code in NO_REPLY


def content_of(message: Message) -> RecordDict:
    """What a reply holds; ReportError if it is an error."""
    if message.has_error():
        if nobody_replied(message):
            raise ReportError("no reply came in time, or the node has left")
        raise ReportError(f"Flower says: {str(message.error.reason)[:200]}")
    return message.content
