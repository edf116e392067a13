"""An app whose clients do next to nothing, so that what is left is the strategy and the transport."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg, Strategy

from feelstream.flower import Device, ScheduledFedAvg
from feelstream.flower.exchange import exchange
from feelstream.flower.wire import SERVER

server_app = ServerApp()
client_app = ClientApp()
HELD = [10] * 10
PATIENCE_S = 120.0


def strategies(nodes: int, trained: int) -> dict[str, Strategy]:
    scenario = {
        "system": {"devices": nodes, "round_s": PATIENCE_S},
        "cpu": {"frequency_hz": [1e9, 5e9]},
        "policy": {"name": "lyapunov", "size": trained},
    }
    share = {"fraction_train": trained / nodes, "min_train_nodes": trained, "min_available_nodes": nodes}
    return {
        "fedavg": FedAvg(fraction_evaluate=0.0, **share),
        "polling": FedAvg(fraction_evaluate=0.0, **share),
        "scheduled": ScheduledFedAvg(scenario, query_timeout_s=PATIENCE_S, max_report_age=1000),
    }


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    """Rounds in turn, in a random order, so that whatever else the machine does falls on both alike."""
    config, arrays = context.run_config, ArrayRecord({"w": Array(np.zeros(21840, np.float32))})
    chosen = strategies(int(config["nodes"]), int(config["trained"]))
    seconds: dict[str, list[dict[str, float]]] = {name: [] for name in chosen}
    while len(list(grid.get_node_ids())) < int(config["nodes"]):
        time.sleep(0.5)
    trained = int(config["trained"])
    for round in range(1, int(config["rounds"]) + 2):
        # Whoever comes after one that waits for long finds the nodes idle, so nobody has a fixed place in the order.
        for name, strategy in random.Random(round).sample(list(chosen.items()), len(chosen)):
            start, cpu = time.perf_counter(), time.process_time()
            messages = list(strategy.configure_train(round, arrays, ConfigRecord(), grid))
            ready = time.perf_counter()
            assert len(messages) == trained, f"{name} trains {len(messages)} nodes in round {round}, not {trained}"
            # FedAvg waits for replies as Strategy.start does, ours as its own start does; "polling": FedAvg with ours.
            if name == "fedavg":
                replies = list(grid.send_and_receive(messages, timeout=PATIENCE_S))
            else:
                replies = list(exchange(grid, messages, PATIENCE_S).replies.values())
            back = time.perf_counter()
            averaged, _ = strategy.aggregate_train(round, replies)
            done = time.perf_counter()
            assert averaged is not None, f"{name}: nobody replied in round {round}"
            assert len(replies) == trained, f"{name}: {len(replies)} of {trained} replied in round {round}"
            own = {"before": ready - start, "after": done - back, "cpu": time.process_time() - cpu}
            seconds[name].append({"round": done - start, **own})
    Path(str(config["out"])).write_text(json.dumps(seconds))


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
