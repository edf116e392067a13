"""The devices as the server reaches them: whom to ask for a report before a round, and what was answered."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from math import ceil
from time import monotonic, sleep

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from feelstream.errors import FeelstreamError
from feelstream.flower.directory import Directory, Notices, UnknownNameError
from feelstream.flower.exchange import Unanswered, exchange
from feelstream.flower.kept import Kept
from feelstream.flower.scheduler import Scheduler
from feelstream.flower.settings import Options
from feelstream.flower.wire import QUERY, DeviceReport, ReportError, content_of, device_name, packed, question

log = logging.getLogger("flwr.feelstream")  # beside Flower's own messages
UNKNOWN_NAME = "an unknown name"
POLL_S = 0.5
LONGEST_PAUSE = 32  # rounds
FEW = 256  # so many may be asked in any round


class DeploymentError(FeelstreamError):
    """The federation cannot train; the message says why."""


class Asking(Kept):
    """Nodes that did not answer are asked again after 1, 2, 4, … rounds; no round asks more than its share."""

    kept = ("failures", "pause_until", "last_asked")

    def __init__(self, devices: int, max_report_age: int) -> None:
        # Every report is renewed once within its life, so this many are due in a round on average.
        self.most = max(FEW, ceil(devices / (max_report_age + 1)))
        self.failures: dict[int, int] = {}  # by node id, in a row; none for who answered when it was asked last
        self.pause_until: dict[int, int] = {}
        self.last_asked: dict[int, int] = {}
        self.reason: dict[int, str] = {}  # why nodes that were asked have no accepted report
        self.refused: set[int] = set()  # those among them that did answer

    def choose(self, due: Iterable[int], round: int) -> list[int]:
        """Of the nodes whose report is due, those to ask now; who has waited longest comes first."""
        ready = [node for node in due if self.pause_until.get(node, 0) <= round]
        ready.sort(key=lambda node: (self.last_asked.get(node, 0), node))
        chosen = sorted(ready[: self.most])
        self.last_asked |= dict.fromkeys(chosen, round)
        return chosen

    def succeeded(self, node: int) -> None:
        for table in (self.failures, self.pause_until, self.reason):
            table.pop(node, None)
        self.refused.discard(node)

    def failed(self, node: int, round: int, reason: str, answered: bool = False) -> None:
        """No answer, or none that could be used; an error that Flower reports counts as silence."""
        failures = self.failures.get(node, 0)
        self.failures[node] = failures + 1
        self.pause_until[node] = round + min(2**failures, LONGEST_PAUSE)
        self.reason[node] = reason
        (self.refused.add if answered else self.refused.discard)(node)

    def forget(self, connected: Iterable[int]) -> None:
        """Nodes that are gone leave nothing behind."""
        here = frozenset(connected)
        for table in (self.failures, self.pause_until, self.last_asked, self.reason):
            for node in [node for node in table if node not in here]:
                del table[node]
        self.refused &= here


class Fleet(Kept):
    """Asks nodes for reports, and hands those that can be accepted to the scheduler."""

    kept = ("scheduler", "directory", "asking", "meters")

    def __init__(self, scheduler: Scheduler, directory: Directory, options: Options) -> None:
        self.scheduler, self.directory, self.waiting = scheduler, directory, options.waiting
        self.max_priority = options.devices.max_priority
        self.asking = Asking(scheduler.system.devices, options.devices.max_report_age)
        self.strangers = Notices(noun="node")
        self._unanswered = Unanswered()  # questions, by nodes
        self.fitted = packed(scheduler.fitted) if scheduler.bounds.features else None
        self.meters: dict[int, str] = {}  # by device: what it measures its energy with, as was logged and stored

    @property
    def anyone_known(self) -> bool:
        """Whether any device has ever reported."""
        return bool((self.scheduler.report_round > 0).any())

    def wait(self, grid: Grid) -> None:
        """Until enough nodes are connected to begin, if none is so far."""
        if self.directory.connected().any():
            return
        waiting = self.waiting
        end = monotonic() + waiting.wait_s
        while (connected := len(list(grid.get_node_ids()))) < waiting.min_available_nodes and monotonic() < end:
            sleep(min(POLL_S, waiting.wait_s))
        if not connected and waiting.give_up_after is not None:
            raise DeploymentError(f"no node has connected within {waiting.wait_s:g} s")

    def ask(self, grid: Grid, busy: Collection[int] = ()) -> None:
        """Ask whoever has to be asked before this round; the first one waits for somebody to schedule.

        busy: devices that have not answered a call for training yet.
        """
        end = monotonic() + self.waiting.wait_s
        for node, age, answer in self._unanswered.replies(t := self.scheduler.round, grid):
            device = self.directory.device_of.get(node)
            if device is None or self.scheduler.report_round[device] < t - age:
                self.asking.succeeded(node)  # it does answer, so that it is waited for again
                self._accept(node, answer, asked=t - age)
        nodes = self._ask_due(grid, busy)
        while nodes and not self.anyone_known:
            if self.asking.last_asked.keys() >= {*nodes} and not self._another_comes(nodes, grid, end):
                self._check_answers(nodes)
                return
            nodes = self._ask_due(grid)

    def _ask_due(self, grid: Grid, busy: Collection[int] = ()) -> list[int]:
        """Ask those whose report is due; all connected nodes."""
        nodes, t, unknown = self.directory.update(grid.get_node_ids()), self.scheduler.round, self.scheduler.unknown
        self.asking.forget(nodes)
        self.strangers.forget(self.directory.here)
        device_of = self.directory.device_of
        due = [node for node in nodes if node in device_of and unknown[device_of[node]]]
        strangers = [node for node in nodes if node not in device_of]
        # Strangers have a share of their own: however many there are, the devices of this run are asked in time.
        chosen = sorted(self.asking.choose(due, t) + self.asking.choose(strangers, t))
        # Who did not answer before is not waited for again, as long as there is anyone else to schedule.
        doubtful = {node for node in chosen if node in self.asking.failures or device_of.get(node) in busy}
        others = len(doubtful) < len(chosen) or bool((self.directory.connected() & ~unknown).any())
        answers = self._query(chosen, grid, doubtful if others else ())
        silent = frozenset(chosen) - answers.keys()
        # A node that only now says who it is may have reported against an unknown history: it is asked again.
        again = [node for node in sorted(answers) if not self._accept(node, answers[node], silent)]
        answers = self._query([node for node in again if node in device_of], grid)
        for node in sorted(answers):
            self._accept(node, answers[node], silent)
        self.scheduler.notices.tell(t)
        self.strangers.tell(t)
        return nodes

    def _query(self, nodes: list[int], grid: Grid, passing: Collection[int] = ()) -> dict[int, Message]:
        """The answers of these nodes; passing: who is not waited for."""
        # Clients that have never answered may have to be started first, as by Flower's simulation engine.
        waiting, scheduler = self.waiting, self.scheduler
        timeout_s = waiting.query_timeout_s if self.anyone_known else max(waiting.query_timeout_s, waiting.wait_s)
        contents: dict[int, RecordDict] = {}  # nearly everyone receives the same
        messages = []
        for node in nodes:
            device = self.directory.device_of.get(node)
            used_round = 0 if device is None else int(scheduler.used_round[device])
            if used_round not in contents:
                contents[used_round] = question(scheduler.bounds.told(scheduler.round, used_round), self.fitted)
            messages.append(Message(contents[used_round], node, QUERY, ttl=timeout_s))
        waited = exchange(grid, messages, timeout_s, waiting.enough_reports, passing=passing)
        self._unanswered |= {number: (node, scheduler.round) for number, node in waited.unanswered.items()}
        answers = {node: answer for node, answer in waited.replies.items() if not answer.has_error()}
        for node in nodes:
            if node in answers:
                continue
            reason = "no answer"
            if node in waited.replies:
                reason, device = str(waited.replies[node].error.reason)[:200], self.directory.device_of.get(node)
                notices, who = (self.strangers, node) if device is None else (scheduler.notices, device)
                notices.add(scheduler.round, "no report", who, reason)
            self.asking.failed(node, scheduler.round, reason)
        return answers

    def _accept(self, node: int, answer: Message, silent: Collection[int] = (), asked: int | None = None) -> bool:
        """Take what a node answers; False where it has only now said who it is, and must be asked again.

        asked: the round of the question, if the answer comes late.
        """
        known, t = self.directory.device_of.get(node), self.scheduler.round
        device = known
        try:
            content = content_of(answer)
            device = self.directory.introduce(node, device_name(content), silent)
            self.scheduler.accept(device, self.read(content, device), asked)
        except ReportError as problem:
            if known is None and device is not None:
                return False
            if device is not None:
                self.scheduler.exclude(device, str(problem))
            else:
                self.strangers.add(t, "report refused", node, str(problem))
            reason = UNKNOWN_NAME if isinstance(problem, UnknownNameError) else str(problem)
            self.asking.failed(node, t, reason, answered=True)
            return True
        self.asking.succeeded(node)
        return True

    def read(self, content: RecordDict, device: int) -> DeviceReport:
        """The report in what a device sends; ReportError if it cannot be true."""
        name, t = self.directory.names[device], self.scheduler.round
        report, unusable = self.scheduler.bounds.read(content)
        for reason in unusable:
            self.scheduler.notices.add(t, "measurement left aside", device, reason)
        if report.meter is not None and self.meters.get(device) != report.meter:
            log.debug("round %d: device %s measures its energy by: %s", t, name, report.meter)
            self.meters[device] = report.meter
        priority = self.directory.priorities.get(name)  # the operator's word counts before the node's
        if priority is None and report.priority is not None:
            priority = min(report.priority, self.max_priority)
        return report if priority == report.priority else replace(report, priority=priority)

    def _another_comes(self, nodes: Sequence[int], grid: Grid, end: float) -> bool:
        """Whether a node connects that was not there, in the time for which one waits for the first node of all.

        Nodes that are not of this run, be they mistakes or a flood, are as good as none.
        """
        if not (wrong := self._only_strangers(nodes)) or monotonic() >= end:
            return False
        log.error("round %d: %s; waiting for others", self.scheduler.round, wrong)
        before = frozenset(nodes)
        while (left_s := end - monotonic()) > 0:
            sleep(min(POLL_S, left_s))
            if not before.issuperset(grid.get_node_ids()):
                return True
        return False

    def _check_answers(self, nodes: Sequence[int]) -> None:
        """Where every node answered and none of the answers is of use, more rounds do not help."""
        if self.waiting.give_up_after is None:
            return
        if wrong := self._only_strangers(nodes):
            raise DeploymentError(wrong)
        if len(self.asking.refused) == len(nodes):
            raise DeploymentError(f"none of the reports can be used: {self._why_unknown}")

    def _only_strangers(self, nodes: Sequence[int]) -> str:
        """What is wrong where no node is of this run; else nothing."""
        if list(self.asking.reason.values()).count(UNKNOWN_NAME) < len(nodes):
            return ""
        return (
            f"none of the {len(nodes)} connected nodes has a name of this run; the names {self.directory.wanted}: "
            "set device-name or partition-id in --node-config, or `names` on the server"
        )

    @property
    def _why_unknown(self) -> str:
        """The most common reason for which nodes that were asked have no accepted report; empty if there is none."""
        common = Counter(self.asking.reason.values()).most_common(1)
        return common[0][0] if common else ""

    def why_nobody(self) -> str:
        """Why nobody could be scheduled."""
        scheduler, connected = self.scheduler, self.directory.connected()
        if not self.directory.here:
            return "no node is connected"
        if not self.anyone_known:
            why = f" ({self._why_unknown})" if self._why_unknown else ""
            return (
                f"no device has reported{why}; "
                'each ClientApp needs a handler @app.query("feelstream"), and a name of this run'
            )
        if not scheduler.stored_labels[connected].any():
            return "no connected device holds any data"
        return f"no connected device has reported within the last {scheduler.max_report_age} rounds"
