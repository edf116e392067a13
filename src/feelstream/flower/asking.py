"""Whom to ask for a report before a round: those whose report is missing or too old, in turns and with back-off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import ceil

import numpy as np

from feelstream.arrays import Nested

LONGEST_PAUSE = 32  # rounds
FEW = 256  # so many may be asked in any round


class Asking:
    """Nodes that did not answer are asked again after 1, 2, 4, … rounds; no round asks more than its share."""

    def __init__(self, devices: int, max_report_age: int) -> None:
        # Every report is renewed once within its life, so this many are due in a round on average.
        self.most = max(FEW, ceil(devices / (max_report_age + 1)))
        self._failures: dict[int, int] = {}  # by node id, in a row
        self._pause_until: dict[int, int] = {}
        self._last_asked: dict[int, int] = {}
        self._reason: dict[int, str] = {}  # why the last answer of a node was of no use

    @property
    def reasons(self) -> Counter[str]:
        """Why nodes that were asked have no accepted report, and how many of them."""
        return Counter(self._reason.values())

    def choose(self, due: Iterable[int], round: int) -> list[int]:
        """Of the nodes whose report is due, those to ask now; who has waited longest comes first."""
        ready = [node for node in due if self._pause_until.get(node, 0) <= round]
        ready.sort(key=lambda node: (self._last_asked.get(node, 0), node))
        chosen = sorted(ready[: self.most])
        self._last_asked |= dict.fromkeys(chosen, round)
        return chosen

    def was_asked(self, node: int) -> bool:
        return node in self._last_asked

    def succeeded(self, node: int) -> None:
        self._failures.pop(node, None)
        self._pause_until.pop(node, None)
        self._reason.pop(node, None)

    def failed(self, node: int, round: int, reason: str) -> None:
        """No answer, or none that could be used; an error that Flower reports counts as silence."""
        failures = self._failures.get(node, 0)
        self._failures[node] = failures + 1
        self._pause_until[node] = round + min(2**failures, LONGEST_PAUSE)
        self._reason[node] = reason

    def forget(self, connected: Iterable[int]) -> None:
        """Nodes that are gone leave nothing behind."""
        here = frozenset(connected)
        for table in (self._failures, self._pause_until, self._last_asked, self._reason):
            for node in [node for node in table if node not in here]:
                del table[node]

    def snapshot(self) -> Nested:
        nodes = sorted(self._last_asked)
        columns = (self._last_asked, self._failures, self._pause_until)
        return {
            "asked_nodes": np.array(nodes, np.uint64),
            "asked": np.array([[table.get(node, 0) for table in columns] for node in nodes], np.int64).reshape(-1, 3),
        }

    def restore(self, state: Nested) -> None:
        for node, (asked, failures, until) in zip(state["asked_nodes"].tolist(), state["asked"].tolist(), strict=True):
            self._last_asked[node] = asked
            if failures:
                self._failures[node], self._pause_until[node] = failures, until
