"""The same scenario and seed through the simulator and through Flower's messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import odd_plugins
import pytest

import feelstream as fs
from feelstream.data.datasets import load as load_dataset
from feelstream.flower.local_grid import LocalGrid
from feelstream.flower.replay import ReplayedDevice, serve, strategy_for
from feelstream.learning.contract import Evaluation, LocalSGD, Training
from feelstream.loop.simulation import Simulation
from feelstream.policies import POLICIES

DEVICES, SEED = 6, 3
STRESS = ["radio.bandwidth_hz=1e6", "radio.received_power_dbm=-36.02", "policy.size=5"]
WORLDS = {
    "keep": [],
    "keep, per round": ["data.fresh=per_round"],
    "fifo": ["data.buffer.kind=fifo", "data.buffer.capacity=20"],
    "use once": ["data.buffer.kind=use_once"],
    "reservoir, random": ["data.buffer.kind=reservoir", "data.buffer.capacity=15", "policy.name=random"],
    "window, free": ["data.buffer.kind=window", "data.buffer.rounds=2", "policy.cardinality=free", "policy.size=4"],
    "busy admission": STRESS,
    "largest admission, per round": [*STRESS, "radio.admission=largest", "data.fresh=per_round"],
    "no fading, cap": ["radio.fading=none", "policy.cardinality=cap", "policy.V=1.0"],
}
WORLDS |= {
    f"odd buffer {type(buffer).__name__}, {fresh}": [
        f"data.buffer.kind={odd_plugins.FILE}:{type(buffer).__name__}",
        f"data.arrivals.kind={odd_plugins.FILE}:Chronicle",
        f"data.fresh={fresh}",
        "policy.V=inf",
    ]
    for buffer in odd_plugins.BUFFERS
    for fresh in ("since_use", "per_round")
}
# Nobody knows from afar who is awake or what a battery holds; real devices train and real servers average as they like.
AT_HOME = ("world.availability", "world.harvest", "world.faults", "learning.local", "learning.server")
WORLDS["all odd but the batteries"] = [
    *(field for field in odd_plugins.ODD if not field.startswith(AT_HOME)), "policy.V=inf"
]  # fmt: skip
WORLDS |= {
    f"policy {name}": [f"policy.name={name}", "policy.size=2", "system.energy_budget_j=1.0"]
    for name in POLICIES.names()
    if not POLICIES.lookup(name)().probes  # type: ignore[attr-defined]
}


class Drifting:
    """A learner whose updates depend on θ and on every drawn sample, without a library to wait for."""

    name, details, parameters = "drifting", {}, 40

    def init(self, seed: int) -> np.ndarray:
        return np.random.default_rng(seed).standard_normal(40).astype(np.float32)

    def train(self, theta: np.ndarray, batches: np.ndarray, sgd: LocalSGD | float, **more: Any) -> Training:
        lr = sgd.rates(batches.shape[1])[0] if isinstance(sgd, LocalSGD) else sgd
        drift = np.sin(batches.reshape(len(batches), -1)[:, :40] + theta).astype(np.float32)
        return Training(np.float32(lr) * drift, (batches / 1e3).astype(np.float32))

    def evaluate(self, theta: np.ndarray) -> Evaluation:
        return Evaluation(loss=float(np.square(theta).mean()), accuracy=0.5)


ALL_BY_NIGHT = [
    pytest.param(world, marks=pytest.mark.nightly if world.startswith("policy ") else ()) for world in WORLDS
]  # policies are asked in one place, whichever they are


@pytest.mark.slow
@pytest.mark.parametrize("world", ALL_BY_NIGHT)
def test_a_federation_does_what_the_simulator_does(world: str, tmp_path: Path) -> None:
    scenario = fs.preset("tiny", [f"system.devices={DEVICES}", "system.rounds=8", "data.samples=600", *WORLDS[world]])
    dataset = load_dataset("synthetic", samples=600)
    learner: Any = Drifting()  # all of a learner that a federation asks for
    simulation = Simulation(scenario, SEED, dataset, learner)
    records = [simulation.step() for _ in range(scenario.system.rounds)]

    grid = LocalGrid()
    for device in range(DEVICES):  # node ids in no order that means anything
        answer = ReplayedDevice(scenario, SEED, device, dataset, learner).answer
        grid.add(1000 + device * 7919 % 13, {"partition-id": device}, answer)
    strategy = strategy_for(scenario, dataset, SEED, out=tmp_path / "run")
    theta = serve(strategy, grid, learner)

    run = fs.read(tmp_path / "run")
    assert run.devices is not None
    shape = (scenario.system.rounds, DEVICES)
    table = {name: run.devices[name].to_numpy().reshape(shape) for name in ("scheduled", "transmitted", "queue_next_j")}
    for row, record in enumerate(records):
        schedule = record.decision.schedule
        assert np.flatnonzero(table["scheduled"][row]).tolist() == schedule.tolist()
        assert np.flatnonzero(table["transmitted"][row]).tolist() == schedule[record.transmission.sent].tolist()
        np.testing.assert_allclose(table["queue_next_j"][row], record.queue_next_j, rtol=1e-12)
    np.testing.assert_allclose(theta, simulation.theta, rtol=1e-6, atol=1e-6)
    assert table["transmitted"].any(), "a run in which nobody sends would prove nothing"
    assert fs.verify(tmp_path / "run").ok
