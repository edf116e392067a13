"""A scenario through Flower's simulation engine, in a process of its own: python simulated_federation.py OUT."""

from __future__ import annotations

import sys

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

import feelstream as fs
from feelstream.data.datasets import load as load_dataset
from feelstream.flower.replay import ReplayedDevice, serve, strategy_for

DEVICES, SEED = 4, 2
CHANGES = [f"system.devices={DEVICES}", "system.rounds=3", "data.samples=400", "learning.engine=none"]


def scenario() -> fs.Scenario:
    return fs.preset("tiny", CHANGES)


def main(out: str) -> None:
    settings, dataset = scenario(), load_dataset("synthetic", samples=400)
    server_app, client_app = ServerApp(), ClientApp()

    @server_app.main()
    def server(grid: Grid, context: Context) -> None:
        patient = {"query_timeout_s": 900.0, "deadline_s": 900.0}  # Ray takes minutes to start on a busy machine
        strategy = strategy_for(settings, dataset, SEED, out=out, min_available_nodes=DEVICES, **patient)
        serve(strategy, grid, None)

    @client_app.query("feelstream")
    @client_app.train()
    def client(message: Message, context: Context) -> Message:
        device = int(context.node_config["partition-id"])
        return ReplayedDevice(settings, SEED, device, dataset, None).answer(context, message)

    resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    run_simulation(server_app, client_app, num_supernodes=DEVICES, backend_config=resources)


if __name__ == "__main__":
    main(sys.argv[1])
