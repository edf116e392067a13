"""The server's CPU time per round against the number of nodes, on a grid in this process: no network, no clients.

    python benchmarks/flower_scale.py                 1,000, 10,000 and 100,000 nodes
    python benchmarks/flower_scale.py --smoke         100 nodes: only that it works

"asks its share" is an ordinary round: reports ride on replies, and as many old ones are renewed as fall due.
"asks everyone" has max_report_age = 0.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
from collections.abc import Iterable
from statistics import median
from time import process_time

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict

from feelstream.flower import LocalGrid, ScheduledFedAvg
from feelstream.flower.exchange import exchange
from feelstream.flower.wire import REPORT, SERVER

CLASSES, SCHEDULED = 10, 20
MODEL = ArrayRecord({"w": Array(np.zeros(21840, np.float32))})


class TimedGrid(LocalGrid):
    """Nodes that answer at once and correctly; the time they take is counted, and not the server's."""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.seconds, self.asked = 0.0, 0
        for node in range(1, nodes + 1):
            self.add(node, {}, self._answer)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        begin = process_time()
        numbers = super().push_messages(messages)
        self.sent.clear()
        self.seconds += process_time() - begin
        return numbers

    def _answer(self, context: Context, message: Message) -> Message:
        device, sent = context.node_id - 1, message.content.metric_records[SERVER]
        held = [int(sent["round"]) * (1 + (device + label) % 3) for label in range(CLASSES)]  # type: ignore[arg-type]
        report = {"name": str(device), "stored-labels": held, "f-hz": 2e9, "beta": 1.0}
        content = RecordDict({REPORT: ConfigRecord(report)})
        if "arrays" in message.content.array_records:
            content["arrays"], content["metrics"] = MODEL, MetricRecord({"num-examples": 1})
        else:
            self.asked += 1
        return Message(content, reply_to=message)


def seconds_per_round(nodes: int, max_report_age: int, rounds: int) -> tuple[list[float], list[int]]:
    """The server's own seconds in each round, and how many nodes were asked."""
    scenario = {
        "system": {"devices": nodes, "round_s": 60.0},
        "radio": {"gain_db": [-10.0, 10.0]},
        "cpu": {"frequency_hz": [1e9, 5e9]},
        "policy": {"name": "lyapunov", "size": min(SCHEDULED, nodes)},
    }
    grid, spent, asked = TimedGrid(nodes), [], []
    strategy = ScheduledFedAvg(scenario, classes=CLASSES, max_report_age=max_report_age)
    for t in range(1, rounds + 1):
        begin, clients, before = process_time(), grid.seconds, grid.asked
        messages = list(strategy.configure_train(t, MODEL, ConfigRecord(), grid))
        strategy.aggregate_train(t, list(exchange(grid, messages, 60.0).replies.values()))
        spent.append(process_time() - begin - (grid.seconds - clients))
        asked.append(grid.asked - before)
    return spent, asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.WARNING)  # not a line per round
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
