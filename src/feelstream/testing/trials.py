"""Small rounds that are awkward in one way each, to try policies on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from feelstream.arrays import Reals
from feelstream.model.system import System
from feelstream.policies.base import Observation

SYSTEM = System(
    devices=12,
    rounds=30,
    classes=3,
    round_s=4.0,
    energy_budget_j=np.full(12, 5e-3),
    cycles=4e8,
    power_coefficient=1e-27,
    frequency_hz=(2e7, 1.5e9),
    bandwidth_hz=1e6,
    noise_w_per_hz=1e-13,
    received_power_w=2.5e-7,
    rate_discount=1.0,
    link_margin=3.0,
    admission="paper",
    update_bits=7e5,
)


def observe(system: System, round: int, **known: Any) -> Observation:
    """An observation in which every device is alike and feasible, except for what is given."""
    K = system.devices
    usual: dict[str, Any] = {
        "f_hz": np.full(K, 1e9),
        "beta": np.ones(K),
        "stored": np.full(K, 10),
        "fresh": np.full(K, 3),
        "fresh_labels": np.tile(np.array([1, 1, 1], np.int32), (K, 1)),
        "used_labels": np.zeros(3, np.int64),
        "queue_j": np.zeros(K),
        "available": np.ones(K, bool),
    }
    return Observation(system=system, round=round, **usual | known)


Change = Callable[[int, dict[str, Any]], None]


@dataclass(frozen=True)
class Case:
    """Rounds of a random world, one aspect of which `change` sets as it likes; the same every time."""

    devices: int = 12
    size: int = 3
    last_round: int = 12
    losses: bool = True
    change: Change = lambda round, known: None
    fading: float = 1.0

    @property
    def system(self) -> System:
        return replace(
            SYSTEM, devices=self.devices, energy_budget_j=np.full(self.devices, 5e-3), rounds=self.last_round
        )

    def rounds(self) -> Iterator[tuple[Observation, Reals, bool]]:
        """(what is known, the gains that are found later, whether losses are reported), round by round."""
        system, K = self.system, self.devices
        world = np.random.default_rng(7)
        beta = world.uniform(0.3, 2.0, K)
        for t in range(1, self.last_round + 1):
            labels = world.integers(0, 4, (K, 3)).astype(np.int32)
            known = {
                "f_hz": world.uniform(*system.frequency_hz, K),
                "beta": beta,
                "stored": labels.sum(axis=1) + world.integers(0, 2, K),
                "fresh_labels": labels,
                "used_labels": world.integers(0, 50, 3) if t > 1 else np.zeros(3, np.int64),
                "queue_j": np.maximum(world.normal(0.05, 0.1, K), 0) if t > 1 else np.zeros(K),
            }
            gain = known["beta"] * world.standard_exponential(K) * self.fading
            self.change(t, known)
            known.setdefault("fresh", known["fresh_labels"].sum(axis=1))
            observation = observe(system, t, **known, oracle_gain=gain, stored_labels=known["fresh_labels"])
            for array in (*known.values(), observation.compute_time_s, observation.compute_energy_j, gain):
                array.flags.writeable = False
            observation.dissimilarity.flags.writeable = False
            yield observation, gain, self.losses


def _idle(round: int, known: dict[str, Any]) -> None:
    known["f_hz"] = np.full(len(known["beta"]), 2e7)


def _no_data(round: int, known: dict[str, Any]) -> None:
    known["stored"] = np.zeros_like(known["stored"])
    known["fresh_labels"] = np.zeros_like(known["fresh_labels"])


def _alike(round: int, known: dict[str, Any]) -> None:
    for name in ("f_hz", "beta", "stored", "fresh_labels", "queue_j"):
        known[name] = np.repeat(known[name][:1], len(known["f_hz"]), axis=0)
    known["f_hz"][:] = 1e9
    known["stored"] = np.maximum(known["stored"], 1)


def _nothing_fresh(round: int, known: dict[str, Any]) -> None:
    known["fresh_labels"] = np.zeros_like(known["fresh_labels"])


def _long_gap(round: int, known: dict[str, Any]) -> None:
    if 3 < round < 100:
        _idle(round, known)


CASES = {
    "ordinary": Case(),
    "without learning": Case(losses=False),
    "one device": Case(devices=1, size=1),
    "all devices": Case(size=12),
    "nobody feasible": Case(change=_idle, last_round=5),
    "no data anywhere": Case(change=_no_data, last_round=5),
    "all alike": Case(change=_alike),
    "nothing fresh": Case(change=_nothing_fresh),
    "feasible again after 100 rounds": Case(change=_long_gap, last_round=105),
    "everyone in a fade": Case(fading=1e-6),
}
