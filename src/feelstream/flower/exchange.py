"""Messages out, replies back: until all or enough have come or the time is up, and what becomes of those that are late.

How long each device takes to reply, by the server's clock, is learned as the time of training is (estimates.py), with
the deadline as what is expected at first. A round waits for the slowest of its devices by that, and three standard
deviations more, never longer than the deadline; a device that has not replied by then counts as one that took
twice as long. None of this is in the trace, which holds no wall-clock time: the log has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from time import monotonic, sleep

import numpy as np
from flwr.app import Message
from flwr.serverapp import Grid

from feelstream.flower.estimates import GATE, NOISE, Estimate
from feelstream.flower.kept import Kept

# Flower's own loop looks every 3 s, which a short round would feel; one that lasts need not be looked at so often.
FIRST_POLL_S, LAST_POLL_S = 0.1, 2.0
KEPT = 3  # rounds for which a reply that is too late is still looked for


@dataclass
class Waited:
    """What came of an exchange."""

    replies: dict[int, Message] = field(default_factory=dict)  # by the node that sent them
    seconds: dict[int, float] = field(default_factory=dict)  # by node: after which time it replied
    unanswered: dict[str, int] = field(default_factory=dict)  # messages without a reply, and their nodes
    enough: bool = False  # whether it ended because as many had replied as were wanted


def exchange(
    grid: Grid,
    messages: Iterable[Message],
    timeout_s: float,
    enough: float = 1.0,
    first: int | None = None,
    passing: Collection[int] = (),
) -> Waited:
    """The replies that came within the time.

    enough: once this share has answered, the others have as long again as those took, and no longer.
    first: once so many have answered without an error, nobody else is waited for; replies in excess are left out.
    passing: nodes that are not waited for at all, though what they have said by the end counts.
    Unlike Flower's own loop it does not wait for a message that could not be handed over in the first place.
    """
    messages, waited = list(messages), Waited()
    if not messages:
        return waited
    begin = monotonic()
    end = begin + timeout_s
    waiting = {number for number in grid.push_messages(messages) if number}
    node_of = {message.metadata.message_id: message.metadata.dst_node_id for message in messages}
    replies, awaited = waited.replies, {number for number in waiting if node_of[number] not in passing}
    wanted = ceil(enough * len(awaited))
    short = True
    while waiting:
        for reply in grid.pull_messages(waiting):
            answered = reply.metadata.reply_to_message_id
            if answered in waiting:
                waiting.discard(answered)
                replies[node_of[answered]] = reply
                waited.seconds[node_of[answered]] = monotonic() - begin
        now, left = monotonic(), awaited & waiting
        if first is not None and sum(not reply.has_error() for reply in replies.values()) >= first:
            waited.enough = True
            break
        if short and len(awaited) - len(left) >= wanted:
            short, end = False, min(end, now + max(now - begin, FIRST_POLL_S))
        if not left or now >= end:
            break
        sleep(min(max(0.1 * (now - begin), FIRST_POLL_S), LAST_POLL_S, end - now))
    waited.unanswered = {number: node_of[number] for number in sorted(waiting)}
    return waited


class Unanswered(dict[str, tuple[int, int]]):
    """Messages without a reply: whom each went to and in which round; forgotten after KEPT rounds."""

    def replies(self, t: int, grid: Grid) -> Iterator[tuple[int, int, Message]]:
        """Replies that have come since, errors aside: to whom the message went, its age in rounds, and the reply."""
        for number in [number for number, (_, asked) in self.items() if t - asked > KEPT]:
            del self[number]
        for reply in grid.pull_messages(list(self)) if self else ():
            if not reply.has_error() and (number := reply.metadata.reply_to_message_id) in self:
                whom, asked = self.pop(number)
                yield whom, t - asked, reply


class Calls(Kept):
    """Calls for training: how long to wait for whom, and the calls that nobody has answered yet."""

    kept = ("response",)

    def __init__(self, devices: int, deadline_s: float, adaptive: bool, first: int | None = None) -> None:
        self.deadline_s, self.adaptive, self.first = deadline_s, adaptive, first
        self.response = Estimate(devices)
        self.unanswered = Unanswered()  # by devices
        self.forget()

    def forget(self) -> None:
        """A round begins, of which nothing is known yet."""
        self.cut: frozenset[int] = frozenset()  # devices that were not waited for, as enough others had replied
        # Replies to calls of earlier rounds that have come since the last one: device, age in rounds, reply.
        self.late: list[tuple[int, int, Message]] = []
        self.limit_s = self.deadline_s

    def send(self, t: int, grid: Grid, messages: Sequence[Message], device_of: Mapping[int, int]) -> list[Message]:
        """The replies to these calls, in the time that is left for them; device_of: by node."""
        self.limit_s = self.timeout_s([device_of[message.metadata.dst_node_id] for message in messages])
        waited = exchange(grid, messages, self.limit_s, first=self.first)
        self.late = sorted(self.unanswered.replies(t, grid), key=lambda late: (late[0], -late[1]))
        self.learn(t, waited, device_of)
        return list(waited.replies.values())

    def timeout_s(self, called: Sequence[int]) -> float:
        """How long to wait for these devices."""
        if not self.adaptive or not called:
            return self.deadline_s
        expected, sd = self.response.expected()
        latest = np.exp((expected + GATE * np.hypot(sd, NOISE))[list(called)]).max()
        return float(min(self.deadline_s, self.deadline_s * latest))

    def learn(self, t: int, waited: Waited, device_of: Mapping[int, int]) -> None:
        """Who replied after how long, and who has not yet."""
        took = {device_of[node]: seconds for node, seconds in waited.seconds.items()}
        silent = {number: device_of[node] for number, node in waited.unanswered.items()}
        if waited.enough:  # they were not waited for
            self.cut = frozenset(silent.values())
        else:
            took |= dict.fromkeys(silent.values(), min(2 * self.limit_s, self.deadline_s))
        self.response.add(t, {device: (seconds, self.deadline_s) for device, seconds in took.items()})
        self.unanswered |= {number: (device, t) for number, device in silent.items()}

    @property
    def busy(self) -> list[int]:
        """Devices that still work for an earlier round."""
        return sorted({device for device, _ in self.unanswered.values()})
