"""The server: ScheduledFedAvg where FedAvg would stand."""

from __future__ import annotations

from typing import Any

from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg, Strategy

from feelstream.flower import ScheduledFedAvg
from flower_mnist import stream, task

app = ServerApp()


def scenario(config: Any, devices: int) -> dict[str, Any]:
    """What the scheduler should know of the devices: see `feelstream presets paper-iid` for all there is."""
    return {
        "system": {
            "devices": devices,
            "round_s": float(config["deadline-s"]),  # the wall-clock limit for a reply
            "energy_budget_j": float(config["energy-budget-j"]),
        },
        "cpu": {"frequency_hz": [5e8, 5e9]},
        "data": {"dataset": str(config["dataset"]), "fresh": "since_use"},
        "policy": {"name": str(config["policy"]), "size": min(int(config["scheduled"]), devices)},
    }


def strategy_for(config: Any, devices: int) -> Strategy:
    if config["strategy"] == "fedavg":
        share = int(config["scheduled"]) / devices
        return FedAvg(fraction_train=share, fraction_evaluate=0.0, min_train_nodes=1, min_available_nodes=devices)
    return ScheduledFedAvg(
        scenario=scenario(config, devices),
        classes=stream.CLASSES,
        out=str(config["out"]) or None,
        max_report_age=int(config["max-report-age"]),
        bind_names=bool(config["bind-names"]),
        min_available_nodes=devices,
        wait_s=600.0,  # for the first reports: each starts a process, or Ray
    )


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config

    def evaluate(round: int, arrays: ArrayRecord) -> MetricRecord:
        model = task.network()
        model.load_state_dict(arrays.to_torch_state_dict())
        loss, accuracy = task.test(model, str(config["dataset"]))
        return MetricRecord({"loss": loss, "accuracy": accuracy})

    devices = int(config.get("devices", 0)) or len(list(grid.get_node_ids()))
    result = strategy_for(config, devices).start(
        grid, ArrayRecord(task.network().state_dict()), num_rounds=int(config["num-rounds"]), evaluate_fn=evaluate
    )
    last = max(result.evaluate_metrics_serverapp)
    print(f"round {last}: {dict(result.evaluate_metrics_serverapp[last])}")
