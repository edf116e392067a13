"""The server's CPU time per round against the number of nodes, on a grid in this process: no network, no clients.

    python benchmarks/flower_scale.py                 1,000, 10,000 and 100,000 nodes
    python benchmarks/flower_scale.py --smoke         100 nodes: only that it works

"asks its share" is an ordinary round: reports ride on replies, and as many old ones are renewed as fall due.
"asks everyone" has max_report_age = 0.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterable
from itertools import count
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from feelstream.flower import ScheduledFedAvg
from feelstream.flower.exchange import exchange
from feelstream.flower.report import REPORT

CLASSES, SCHEDULED = 10, 20
MODEL = ArrayRecord({"w": Array(np.zeros(21840, np.float32))})


class InstantGrid(Grid):
    """Nodes that answer at once and correctly; the time they take is counted, and not the server's."""

    def __init__(self, nodes: int) -> None:
        TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
        self.nodes, self.seconds = nodes, 0.0
        self._numbers, self._replies = count(1), dict[str, Message]()
        self.asked = 0

    def get_node_ids(self) -> Iterable[int]:
        return range(1, self.nodes + 1)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        begin, numbers = process_time(), []
        for message in messages:
            number = f"m{next(self._numbers)}"
            message.metadata.__dict__["_message_id"] = number
            numbers.append(number)
            self._replies[number] = self._answer(message)
        self.seconds += process_time() - begin
        return numbers

    def _answer(self, message: Message) -> Message:
        device, told = message.metadata.dst_node_id - 1, message.content.metric_records["feelstream.server"]
        held = [int(told["round"]) * (1 + (device + label) % 3) for label in range(CLASSES)]  # type: ignore[arg-type]
        report = {"name": str(device), "stored-labels": held, "f-hz": 2e9, "beta": 1.0}
        content = RecordDict({REPORT: ConfigRecord(report)})
        if message.content.array_records:
            content["arrays"], content["metrics"] = MODEL, MetricRecord({"num-examples": 1})
        else:
            self.asked += 1
        return Message(content, reply_to=message)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self._replies.pop(number) for number in list(message_ids) if number in self._replies]

    def set_run(self, run: Any) -> None: ...

    @property
    def run(self) -> Any:
        raise NotImplementedError

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        raise NotImplementedError

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        raise NotImplementedError


def seconds_per_round(nodes: int, max_report_age: int, rounds: int) -> tuple[list[float], list[int]]:
    """The server's own seconds in each round, and how many nodes were asked."""
    scenario = {
        "system": {"devices": nodes, "round_s": 60.0},
        "radio": {"gain_db": [-10.0, 10.0]},
        "cpu": {"frequency_hz": [1e9, 5e9]},
        "policy": {"name": "lyapunov", "size": min(SCHEDULED, nodes)},
    }
    grid, spent, asked = InstantGrid(nodes), [], []
    strategy = ScheduledFedAvg(scenario, classes=CLASSES, max_report_age=max_report_age)
    for t in range(1, rounds + 1):
        begin, clients, before = process_time(), grid.seconds, grid.asked
        messages = list(strategy.configure_train(t, MODEL, ConfigRecord(), grid))
        strategy.aggregate_train(t, list(exchange(grid, messages, 60.0).values()))
        spent.append(process_time() - begin - (grid.seconds - clients))
        asked.append(grid.asked - before)
    return spent, asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    for nodes in (100,) if options.smoke else (1_000, 10_000, 100_000):
        for name, age in {"asks its share": 5, "asks everyone": 0}.items():
            rounds = options.rounds if age else 4
            spent, asked = seconds_per_round(nodes, age, rounds)
            print(
                f"{nodes:>7} nodes, {name:<14} median {median(spent):7.3f} s, largest {max(spent):7.3f} s of the "
                f"server's time per round; asked at most {max(asked)}"
            )


if __name__ == "__main__":
    main()
