"""A first run in one process: the app's server against ten of its clients, scheduled by three policies.

    python examples/flower-mnist/first_run.py [DIRECTORY]

The clients pretend to have CPUs of 1 to 2.8 GHz, so that a turn takes 0.4 to 3.3 J by the scenario's model. Three train
in each round. Budgets grant less than three turns take on average, so it matters who is scheduled.
"""

from __future__ import annotations

import logging
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from flwr.app import Context, Message, RecordDict

HERE = Path(__file__).parent
torch.set_num_threads(1)  # a network this small gains nothing by more
sys.path.insert(0, str(HERE))

from flower_mnist import client_app, server_app  # noqa: E402

import feelstream as fs  # noqa: E402
from feelstream.flower import LocalGrid  # noqa: E402

DEVICES, POLICIES = 10, ("balanced", "lyapunov", "random")


def played(policy: str, out: Path, config: dict[str, Any]) -> fs.Run:
    """The run of one policy; the app's own server and clients."""
    settings = tomllib.loads((HERE / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    settings |= config | {"policy": policy, "out": str(out / policy), "devices": DEVICES, "bind-names": False}

    def answer(context: Context, message: Message) -> Message:
        context.run_config = settings
        return client_app.app(message, context)

    torch.manual_seed(0)  # all begin with the same model
    grid = LocalGrid()
    for device in range(DEVICES):
        node = {"partition-id": device, "num-partitions": DEVICES, "f-hz": 1e9 + 2e8 * device}
        grid.add(100 + device, node, answer)
    server_app.main(grid, Context(1, 1, {}, RecordDict(), settings))
    return fs.read(out / policy)


def main(out: Path, **config: Any) -> None:
    logging.getLogger("flwr").setLevel(logging.ERROR)
    config = {"dataset": "synthetic", "num-rounds": 60} | config
    runs = {policy: played(policy, out, config) for policy in POLICIES}
    budget_j = runs["random"].scenario.system.energy_budget_j
    print(f"\n{'policy':<10} {'loss':>12} {'accuracy':>9} {'J per device and round':>23} {'devices over budget':>20}")
    for policy, run in runs.items():
        rounds, devices = run.rounds, run.devices
        assert devices is not None
        spent_j = (devices["e_cmp_j"] + devices["e_tr_j"]).to_numpy()
        mean_j = spent_j.reshape(rounds.height, DEVICES).mean(axis=0)
        loss = f"{rounds['loss'][0]:.2f} → {rounds['loss'][-1]:.2f}"
        over = int(np.sum(mean_j > budget_j))
        accuracy = rounds["accuracy"][-10:].mean()
        print(f"{policy:<10} {loss:>12} {accuracy:>9.2f} {mean_j.mean():>23.3f} {over:>20}")
    print(f"\nAccuracy is that of the last ten rounds. The budget is {budget_j} J per device and round.")
    print(f"The runs are stored: feelstream verify {out / 'lyapunov'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "first-run").absolute())  # or the app's own directory is meant
