"""Devices that take longer than the others: how long a round waits, and what becomes of replies that come too late.

How long each device takes to reply, by the server's clock, is learned as the time of training is (estimates.py), with
the deadline as what is expected at first. A round waits for the slowest of its devices by that, and three standard
deviations more, never longer than the deadline; a device that has not replied by then counts as one that took
twice as long. None of this is in the trace, which holds no wall-clock time: the log has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from flwr.app import Message
from flwr.serverapp import Grid

from feelstream.arrays import Nested
from feelstream.flower.estimates import GATE, NOISE, Estimate
from feelstream.flower.exchange import Waited

KEPT = 3  # rounds for which a reply that is too late is still looked for


@dataclass(frozen=True)
class LateReply:
    """A reply to a call of an earlier round."""

    device: int
    age: int  # rounds
    message: Message


@dataclass
class Stragglers:
    """What is known of the time that devices take to reply, and the calls that nobody has answered yet."""

    devices: int
    deadline_s: float
    adaptive: bool
    pending: dict[str, tuple[int, int]] = field(default_factory=dict)  # by message: device and round

    def __post_init__(self) -> None:
        self.response = Estimate(self.devices)

    def timeout_s(self, called: Sequence[int]) -> float:
        """How long to wait for these devices."""
        if not self.adaptive or not called:
            return self.deadline_s
        expected, sd = self.response.expected()
        latest = np.exp((expected + GATE * np.hypot(sd, NOISE))[list(called)]).max()
        return float(min(self.deadline_s, self.deadline_s * latest))

    def waited(self, t: int, waited: Waited, device_of: dict[int, int], timeout_s: float) -> None:
        """Learn from a round: who replied after how long, and who has not yet; device_of: by node."""
        took = {device_of[node]: seconds for node, seconds in waited.seconds.items()}
        if not waited.enough:  # or else they were not waited for
            took |= {device_of[node]: min(2 * timeout_s, self.deadline_s) for node in waited.unanswered.values()}
        self.response.add(t, {device: (seconds, self.deadline_s) for device, seconds in took.items()})
        self.pending |= {number: (device_of[node], t) for number, node in waited.unanswered.items()}

    def late(self, t: int, grid: Grid) -> list[LateReply]:
        """Replies to calls of earlier rounds that have come since; calls that are too old are forgotten."""
        self.pending = {number: call for number, call in self.pending.items() if t - call[1] <= KEPT}
        if not self.pending:
            return []
        found = []
        for reply in _whole(grid.pull_messages(list(self.pending))):
            device, asked = self.pending.pop(reply.metadata.reply_to_message_id, (None, 0))
            if device is not None:
                found.append(LateReply(device, t - asked, reply))
        return sorted(found, key=lambda each: (each.device, -each.age))

    @property
    def busy(self) -> list[int]:
        """Devices that still work for an earlier round."""
        return sorted({device for device, _ in self.pending.values()})

    def snapshot(self) -> Nested:
        return self.response.snapshot()

    def restore(self, state: Nested) -> None:
        self.response.restore(state)


def _whole(replies: Iterable[Message]) -> list[Message]:
    return [reply for reply in replies if not reply.has_error()]
