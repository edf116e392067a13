"""Priorities: the importance of a device's data counts as many times, and 1 changes nothing at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from builders import devices_of, small

import feelstream as fs
from feelstream.errors import ScenarioError

PRIORITIES = "devices.classes=[{share=0.5, priority=0.5}, {share=0.5, priority=4.0}]"
EVERYONE = np.repeat([0.5, 4.0], 3)
POLICIES = [
    ["policy.name=lyapunov", "policy.V=inf"],
    ["policy.name=lyapunov", "policy.cardinality=cap"],
    ["policy.name=lyapunov", "policy.cardinality=free", "policy.V=0.001"],
    ["policy.name=lyapunov", "policy.V=auto"],
    ["policy.name=lyapunov_joint"],
    ["policy.name=importance_greedy", "policy.metric=dissimilarity"],
    ["policy.name=random"],
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: " ".join(policy))
def test_importance_counts_so_many_times_and_verify_knows(policy: list[str], tmp_path: Path) -> None:
    run = fs.simulate(small(PRIORITIES, *policy, "system.rounds=12", "data.arrivals.kind=poisson"), 2)
    found = devices_of(run).filter("feasible")
    amount = 0 if "policy.metric=dissimilarity" in policy else found["amount"]
    metric = found["dissimilarity"] + amount
    assert found["importance"].to_numpy() == pytest.approx(EVERYONE[found["device"]] * metric.to_numpy())
    assert fs.verify(run.save(tmp_path / "run")).ok


def test_who_comes_first_is_chosen_more_often() -> None:
    changes = ["policy.name=lyapunov", "policy.V=inf", "system.rounds=30", "data.arrivals.kind=poisson"]
    run = fs.simulate(small(PRIORITIES, *changes, "cpu.frequency_hz=[1e9, 1.2e9]"), 3)
    by_device = devices_of(run).group_by("device", maintain_order=True)
    times = by_device.agg(pl.col("scheduled").sum())["scheduled"].to_numpy()
    assert times[3:].min() > times[:3].max()


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: " ".join(policy))
def test_a_priority_of_1_changes_no_byte(policy: list[str]) -> None:
    changes = [*policy, "system.rounds=8", "data.arrivals.kind=poisson"]
    with_it = fs.simulate(small("devices.classes=[{share=1.0, priority=1.0}]", *changes), 1)
    without = fs.simulate(small(*changes), 1)
    assert devices_of(with_it).equals(devices_of(without), null_equal=True)
    assert with_it.rounds.equals(without.rounds, null_equal=True)


@pytest.mark.parametrize("value", ["0.0", "-1.0", "1001.0", "nan", "'high'"])
def test_only_positive_numbers_are_priorities(value: str) -> None:
    with pytest.raises(ScenarioError, match="priority"):
        small(f"devices.classes=[{{share=1.0, priority={value}}}]")
