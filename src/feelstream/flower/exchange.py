"""Messages out, replies back, until all have come or the time is up."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic, sleep

from flwr.app import Message
from flwr.serverapp import Grid

POLL_S = 0.5  # Flower's own loop looks every 3 s, which a short round would feel


def exchange(grid: Grid, messages: Iterable[Message], timeout_s: float) -> dict[int, Message]:
    """The replies that came within the time, by the node that sent them; later ones are never looked at.

    Unlike Flower's own loop it does not wait for a message that could not be handed over in the first place.
    """
    messages = list(messages)
    if not messages:
        return {}
    end = monotonic() + timeout_s
    waiting = {number for number in grid.push_messages(messages) if number}
    node_of = {message.metadata.message_id: message.metadata.dst_node_id for message in messages}
    replies: dict[int, Message] = {}
    while waiting:
        for reply in grid.pull_messages(waiting):
            answered = reply.metadata.reply_to_message_id
            if answered in waiting:
                waiting.discard(answered)
                replies[node_of[answered]] = reply
        left = end - monotonic()
        if not waiting or left <= 0:
            break
        sleep(min(POLL_S, left))
    return replies
