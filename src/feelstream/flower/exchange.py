"""Messages out, replies back, until all or enough have come or the time is up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil
from time import monotonic, sleep

from flwr.app import Message
from flwr.serverapp import Grid

# Flower's own loop looks every 3 s, which a short round would feel; one that lasts need not be looked at so often.
FIRST_POLL_S, LAST_POLL_S = 0.1, 2.0


@dataclass
class Waited:
    """How an exchange went, filled in while it does."""

    seconds: dict[int, float] = field(default_factory=dict)  # by node: after which time it replied
    unanswered: dict[str, int] = field(default_factory=dict)  # messages without a reply, and their nodes
    enough: bool = False  # whether it ended because as many had replied as were wanted


def exchange(
    grid: Grid,
    messages: Iterable[Message],
    timeout_s: float,
    enough: float = 1.0,
    first: int | None = None,
    waited: Waited | None = None,
) -> dict[int, Message]:
    """The replies that came within the time, by the node that sent them.

    enough: once this share has answered, the others have as long again as those took, and no longer.
    first: once so many have answered without an error, nobody else is waited for; replies in excess are left out.
    Unlike Flower's own loop it does not wait for a message that could not be handed over in the first place.
    """
    messages = list(messages)
    if not messages:
        return {}
    begin = monotonic()
    end = begin + timeout_s
    waiting = {number for number in grid.push_messages(messages) if number}
    wanted = ceil(enough * len(waiting))
    node_of = {message.metadata.message_id: message.metadata.dst_node_id for message in messages}
    replies: dict[int, Message] = {}
    waited = waited or Waited()
    while waiting:
        short = len(replies) < wanted
        for reply in grid.pull_messages(waiting):
            answered = reply.metadata.reply_to_message_id
            if answered in waiting:
                waiting.discard(answered)
                replies[node_of[answered]] = reply
                waited.seconds[node_of[answered]] = monotonic() - begin
        now = monotonic()
        if first is not None and sum(not reply.has_error() for reply in replies.values()) >= first:
            waited.enough = True
            break
        if short and len(replies) >= wanted:
            end = min(end, now + max(now - begin, FIRST_POLL_S))
        if not waiting or now >= end:
            break
        sleep(min(max(0.1 * (now - begin), FIRST_POLL_S), LAST_POLL_S, end - now))
    waited.unanswered = {number: node_of[number] for number in sorted(waiting)}
    return replies
