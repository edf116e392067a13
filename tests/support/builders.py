"""Small systems, observations and scenarios for the tests."""

from __future__ import annotations

from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from sealing import seal

from feelstream.model.system import System
from feelstream.policies import POLICIES
from feelstream.policies.base import Observation
from feelstream.run import Run
from feelstream.scenario import Scenario
from feelstream.scenario.files import from_dict
from feelstream.verification import Disagreement, Report, verify


def system(devices: int = 40, **changes: Any) -> System:
    """The paper's constants, with changes; a number goes for all devices."""
    of = from_dict({"system": {"devices": devices, "energy_budget_j": 5e-4}, "policy": {"size": 1}}).known_system(10)
    if "classes" in changes:
        changes = {"features": changes["classes"], **changes}
    if "update_bits" in changes:
        changes["device_bits"] = changes["update_bits"]
    of_devices = {name for name in changes if isinstance(getattr(of, name), np.ndarray)}
    return replace(of, **changes | {name: np.broadcast_to(changes[name], devices) for name in of_devices})


def observation(of: System, **changes: Any) -> Observation:
    """Every device fast, with one sample of each class, none of it used."""
    devices, classes = of.devices, of.classes
    fields: dict[str, Any] = {
        "system": of,
        "round": 1,
        "f_hz": np.full(devices, 1e9),
        "beta": np.ones(devices),
        "stored": np.full(devices, classes),
        "fresh": np.full(devices, classes),
        "fresh_features": np.ones((devices, classes), np.int32),
        "used_features": np.zeros(classes, np.int64),
        "queue_j": np.zeros(devices),
        "available": np.ones(devices, bool),
    }
    return Observation(**(fields | changes))


NARROW: dict[str, Any] = {
    "rounds": 30, "classes": 3, "round_s": 4.0, "deadline_s": 4.0, "energy_budget_j": 5e-3, "cycles": 4e8,
    "update_bits": 7e5, "frequency_hz": (2e7, 1.5e9), "bandwidth_hz": 1e6, "noise_w_per_hz": 1e-13,
    "received_power_w": 2.5e-7, "rate_discount": 1.0, "link_margin": 3.0,
}  # fmt: skip


def alike(devices: int, **changes: Any) -> System:
    """Numbers that are easily reckoned with: 0.4 s of computing at 1 GHz, three classes, a narrow band."""
    return system(devices, **NARROW | changes)


def observe(of: System, round: int, **known: Any) -> Observation:
    """The same as `observation`, of devices that hold ten samples."""
    return observation(of, **{"round": round, "stored": np.full(of.devices, 10), **known})


def to_run(policy: str) -> list[str]:
    """What a scenario without learning must change for this policy."""
    asks = POLICIES.lookup(policy)().probes  # type: ignore[attr-defined]
    return ["learning.engine=native", "learning.model=softmax", "learning.local.steps=1"] if asks else []


def small(*overrides: str) -> Scenario:
    """Six devices, eight rounds, synthetic data, no learning."""
    table = {
        "system": {"devices": 6, "rounds": 8},
        "data": {"dataset": "synthetic", "samples": 240, "arrivals": {"kind": "uniform"}},
        "policy": {"name": "lyapunov", "size": 2},
        "learning": {"engine": "none", "model": "softmax"},
    }
    return from_dict(table, overrides)


def devices_of(run: Run) -> pl.DataFrame:
    """devices.parquet, of a run that keeps it."""
    assert run.devices is not None
    return run.devices


def verified(run: Run) -> Report:
    """What `verify` says of a run that it finds nothing wrong with."""
    with TemporaryDirectory() as place:
        report = verify(run.save(place))
    assert report.ok, str(report)
    return report


def found_in(run: Run, *changed: pl.Expr) -> Disagreement:
    """What `verify` finds once somebody has changed devices.parquet, and the seal as well."""
    with TemporaryDirectory() as place:
        path = run.save(place)
        devices_of(run).with_columns(*changed).write_parquet(path / "devices.parquet")
        found = verify(seal(path)).disagreement
    assert found is not None
    return found
