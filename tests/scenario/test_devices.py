"""Classes and tables of devices, and priorities, against what they say."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from builders import devices_of, small, verified

import feelstream as fs
from feelstream.scenario.devices import class_sizes
from feelstream.scenario.files import from_dict, to_toml

CLASSES = (
    "devices.classes=[{share=0.5, frequency_hz=[1e9, 1.2e9], energy_budget_j=0.02, cycles=2e8},"
    " {share=0.5, gain_db=[5, 6], arrivals=0.2}]"
)


def test_sizes_add_up_and_are_within_one_of_their_shares() -> None:
    for devices in (1, 7, 40, 1001):
        for shares in ([1.0], [0.5, 0.5], [0.2, 0.3, 0.5], [1 / 3] * 3):
            sizes = class_sizes(shares, devices)
            assert sum(sizes) == devices
            assert all(abs(size - share * devices) <= 1 for size, share in zip(sizes, shares, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["lyapunov", "random", "ocean", "fedcs"])
def test_classes_differ_as_they_say_and_verify(policy: str) -> None:
    scenario = small(CLASSES, f"policy.name={policy}", "system.rounds=30", "data.arrivals.kind=poisson")
    run = fs.simulate(scenario, 1)
    verified(run)
    strong, weak = (devices_of(run).filter(pl.col("device").is_in(ids)) for ids in ([0, 1, 2], [3, 4, 5]))
    assert (strong["f_hz"] >= 1e9).all()
    assert (strong["f_hz"] <= 1.2e9).all()
    assert (weak["beta"] >= 10**0.5).all()
    trained = strong.filter("scheduled")
    assert len(trained) > 0
    assert trained["t_cmp_s"].to_numpy() == pytest.approx(2e8 / trained["f_hz"].to_numpy())
    last = devices_of(run).filter(pl.col("round") == 30)["stored"].to_numpy()
    assert last[3:].sum() / last[:3].sum() == pytest.approx(0.2, abs=0.08)  # about 450 and 90 samples
    assert from_dict(tomllib.loads(to_toml(scenario))) == scenario


def test_a_table_says_what_each_device_is(tmp_path: Path) -> None:
    path = tmp_path / "devices.csv"
    rows = "\n".join(f"{k},{(k + 1) * 1e8},{0.001 * k},{k + 1}" for k in (3, 1, 0, 2, 5, 4))
    path.write_text("device,cycles,energy_budget_j,priority\n" + rows)
    scenario = small(f"devices.table={path}", "data.arrivals.kind=poisson", "cpu.frequency_hz=[1e9, 1.5e9]")
    assert scenario.population.cycles.tolist() == [(k + 1) * 1e8 for k in range(6)]
    assert scenario.known_system(3).energy_budget_j.tolist() == [0.001 * k for k in range(6)]
    assert scenario.known_system(3).priority.tolist() == [1, 2, 3, 4, 5, 6]
    run = fs.simulate(scenario, 0).save(tmp_path / "run")
    assert fs.verify(run).ok
    path.unlink()
    assert fs.verify(run).ok, "a run states its constants"


def test_a_million_devices_of_two_classes_are_an_ordinary_scenario() -> None:
    people = fs.preset("million", [CLASSES]).population
    assert np.count_nonzero(people.cycles == 2e8) == 500_000


def test_receiving_nothing_takes_nothing() -> None:
    """Whatever the rates of the download."""
    rates = "devices.classes=[{share=0.5, download_bit_per_s=1e6}, {share=0.5, download_bit_per_s=2e6}]"
    system = fs.preset("tiny", [rates]).known_system(10)
    assert not system.download_s.any()
    assert not system.downloads
    system = fs.preset("tiny", [rates, "costs.download_bits=1e4"]).known_system(10)
    assert np.unique(system.download_s).tolist() == [0.005, 0.01]
    assert not system.download_j.any()


PRIORITIES = "devices.classes=[{share=0.5, priority=0.5}, {share=0.5, priority=4.0}]"
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
def test_importance_counts_as_many_times_as_the_priority_says(policy: list[str]) -> None:
    run = fs.simulate(small(PRIORITIES, *policy, "system.rounds=12", "data.arrivals.kind=poisson"), 2)
    found = devices_of(run).filter("feasible")
    amount = 0 if "policy.metric=dissimilarity" in policy else found["amount"]
    metric = (found["dissimilarity"] + amount).to_numpy()
    assert found["importance"].to_numpy() == pytest.approx(np.repeat([0.5, 4.0], 3)[found["device"]] * metric)
    verified(run)


def test_a_priority_of_1_changes_no_byte() -> None:
    with_it, without = (
        fs.simulate(small(*classes, "data.arrivals.kind=poisson"), 1)
        for classes in (["devices.classes=[{share=1.0, priority=1.0}]"], [])
    )
    assert devices_of(with_it).equals(devices_of(without), null_equal=True)
    assert with_it.rounds.equals(without.rounds, null_equal=True)
