"""Twelve devices that are alike, and what a policy observes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from feelstream.model.system import System
from feelstream.policies.base import Observation


def alike(devices: int, update_bits: float = 7e5, **changes: Any) -> System:
    """So many devices that are alike, with changes to the system; a number of a device goes for all."""
    of_devices = {
        "energy_budget_j": 5e-3,
        "cycles": 4e8,
        "device_bits": update_bits,
        "deadline_s": 4.0,
        "download_s": 0.0,
        "download_j": 0.0,
        "power_max_w": np.inf,
        "priority": 1.0,
    }
    of_all = {
        "rounds": 30,
        "classes": 3,
        "round_s": 4.0,
        "power_coefficient": 1e-27,
        "frequency_hz": (2e7, 1.5e9),
        "bandwidth_hz": 1e6,
        "noise_w_per_hz": 1e-13,
        "received_power_w": 2.5e-7,
        "rate_discount": 1.0,
        "link_margin": 3.0,
        "admission": "paper",
    }
    given = {name: np.full(devices, changes.pop(name, value)) for name, value in of_devices.items()}
    return System(devices=devices, update_bits=update_bits, **given, **of_all | changes)


SYSTEM = alike(12)


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
