"""A federation in this process, for tests and measurements of an app: a Grid whose nodes are functions.

    grid = LocalGrid()
    for device in range(4):
        grid.add(100 + device, {"partition-id": device}, lambda context, message: client_app(message, context))
    strategy.start(grid, arrays, num_rounds=3)

There is no network, no process and no waiting: a message is answered when it is pushed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

Answer = Callable[[Context, Message], Message | None]


class LocalGrid(Grid):
    """Nodes by id; each has a context of its own and a function that answers, with None for silence."""

    def __init__(self) -> None:
        # Flower sets these in the process of a ServerApp, and no message can be made without them.
        TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
        self.contexts: dict[int, Context] = {}
        self.answers: dict[int, Answer] = {}
        self.sent: list[Message] = []  # all that was ever pushed
        self._numbers = count(1)
        self._replies: dict[str, Message] = {}

    def add(self, node: int, config: dict[str, Any], answer: Answer) -> None:
        """Connect a node; config: its --node-config."""
        self.contexts[node] = Context(1, node, config, RecordDict(), {})
        self.answers[node] = answer

    def remove(self, node: int) -> None:
        """It is gone; added again, it has forgotten everything."""
        del self.answers[node]

    def get_node_ids(self) -> Iterable[int]:
        return set(self.answers)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        ids = []
        for message in messages:
            number = f"m{next(self._numbers)}"
            message.metadata.__dict__["_message_id"] = number
            self.sent.append(message)
            node = message.metadata.dst_node_id
            reply = self.answers[node](self.contexts[node], message) if node in self.answers else None
            if reply is not None:
                self._replies[number] = reply
            ids.append(number if reply is not None else "")  # nobody need wait for silence
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self._replies.pop(number) for number in list(message_ids) if number in self._replies]

    def set_run(self, run: Any) -> None: ...

    @property
    def run(self) -> Any:
        raise NotImplementedError

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        raise NotImplementedError

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        return self.pull_messages(self.push_messages(messages))
