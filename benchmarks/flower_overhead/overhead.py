"""An app whose clients do next to nothing, so that what is left is the strategy and the transport."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from feelstream.flower import Device, ScheduledFedAvg
from feelstream.flower.report import SERVER

server_app = ServerApp()
client_app = ClientApp()
HELD = [10] * 10


def timed(strategy: type[Any], clock: dict[str, list[float]]) -> type[Any]:
    """The strategy, with the times at which each round began, had its messages ready, and was over."""

    class Timed(strategy):
        def configure_train(self, *args: Any) -> Iterable[Message]:
            clock["asked"].append(time.time())
            messages = list(super().configure_train(*args))
            clock["sent"].append(time.time())
            return messages

        def aggregate_train(self, *args: Any) -> Any:
            result = super().aggregate_train(*args)
            clock["done"].append(time.time())
            return result

    return Timed


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    config, clock = context.run_config, {"asked": [], "sent": [], "done": []}
    nodes, trained = int(config["nodes"]), int(config["trained"])
    if config["strategy"] == "fedavg":
        strategy = timed(FedAvg, clock)(
            fraction_train=trained / nodes, fraction_evaluate=0.0, min_train_nodes=trained, min_available_nodes=nodes
        )
    else:
        system = {
            "system": {"devices": nodes, "round_s": 60.0},
            "cpu": {"frequency_hz": [1e9, 5e9]},
            "policy": {"name": "lyapunov", "size": trained},
        }
        strategy = timed(ScheduledFedAvg, clock)(
            system, deadline_s=120.0, query_timeout_s=120.0, max_report_age=1000, min_available_nodes=nodes
        )
    arrays = ArrayRecord({"w": Array(np.zeros(int(config["parameters"]), np.float32))})
    strategy.start(grid, arrays, num_rounds=int(config["rounds"]))
    Path(str(config["out"])).write_text(json.dumps(clock))


@client_app.train()
def train(message: Message, context: Context) -> Message:
    arrays = message.content.array_records["arrays"]
    if SERVER in message.content:
        return Device(context, message, HELD, meter=None).answer(arrays, MetricRecord({"loss": 1.0}))
    metrics = MetricRecord({"num-examples": sum(HELD)})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


@client_app.query("feelstream")
def report(message: Message, context: Context) -> Message:
    return Device(context, message, HELD, meter=None).answer()
