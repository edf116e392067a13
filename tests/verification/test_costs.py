"""Deadlines, power limits and downloads of single devices: what follows for a round, and that it is re-checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from builders import observation, small, system, to_run
from sealing import seal

import feelstream as fs
from feelstream.errors import PluginError, ScenarioError
from feelstream.model.system import cycles_by_data
from feelstream.policies import POLICIES
from feelstream.policies.ranking import pack

DOWNLOAD = {"costs.download_bits": 2e6, "costs.download_bit_per_s": 4e6}  # half a second
HALVES = ({"share": 0.5, "deadline_s": 1.2, "download_bit_per_s": 2e6, "power_max_w": 0.7}, {"share": 0.5})
PER_SAMPLE = {"costs.cycles_per_sample": 2e7, "data.eligible": "with_data"}
BY_CLASS = DOWNLOAD | {"costs.receive_power_w": 0.2, "devices.classes": HALVES, "data.eligible": "with_data"}
ONE_FOR_ALL = DOWNLOAD | {"radio.power_max_w": 0.9}
JOINT = ("lyapunov_joint", "balanced_joint", "ocean")


def run_of(policy: str, changes: dict[str, Any], **more: Any) -> fs.Run:
    return fs.simulate(small(f"policy.name={policy}", "system.energy_budget_j=0.2").with_(**changes, **more), seed=3)


@pytest.mark.parametrize("policy", [name for name in POLICIES.ours if not to_run(name)])  # reports and no download
def test_every_policy_keeps_to_what_its_devices_can_do(policy: str, tmp_path: Path) -> None:
    run = run_of(policy, ONE_FOR_ALL if policy in JOINT else BY_CLASS)
    table, of = run.devices, run.scenario.known_system(1)
    assert table is not None
    deadline = pl.col("device").replace_strict(dict(enumerate(np.broadcast_to(np.asarray(of.deadline_s), 6))))
    limit = pl.col("device").replace_strict(dict(enumerate(np.broadcast_to(of.power_max_w, 6))))
    sent = table.filter("transmitted")
    assert sent.height
    assert sent.select((pl.sum_horizontal("t_down_s", "t_cmp_s", "t_tr_s") <= deadline * (1 + 1e-9)).all()).item()
    assert sent.select((pl.col("power_w") <= limit * (1 + 1e-9)).all()).item()
    report = fs.verify(run.save(tmp_path / "run"))
    assert report.ok, str(report)


def test_a_device_that_needs_more_power_than_it_has_is_not_available() -> None:
    """Truncated channel inversion: P0/β ≤ P_max, or silence."""
    table = run_of("random", {"radio.power_max_w": 0.7}).devices
    assert table is not None
    received_w = 10**2.8 / 1000
    assert (table["available"] == (received_w / table["beta"] <= 0.7)).all()
    assert 0 < table["available"].mean() < 1  # type: ignore[operator]


def test_power_limits_and_devices_that_fail_are_checked_together(tmp_path: Path) -> None:
    run = run_of("random", {"radio.power_max_w": 0.7, "world.faults.kind": "random"})
    report = fs.verify(run.save(tmp_path / "run"))
    assert report.ok, str(report)


def test_a_download_takes_its_time_and_energy_and_is_counted_once() -> None:
    without, with_it = run_of("random", {}), run_of("random", DOWNLOAD | {"costs.receive_power_w": 0.2})
    table = with_it.devices
    assert table is not None
    assert table["t_down_s"].unique().sort().to_list() == [0.0, 0.5]
    spent = table.group_by("round", maintain_order=True).agg(pl.sum_horizontal("e_cmp_j", "e_tr_j", "e_down_j").mean())
    assert with_it.rounds["energy_mean_j"].to_numpy() == pytest.approx(spent["e_cmp_j"].to_numpy())
    assert (table["e_down_j"] == 0.1 * table["scheduled"]).all()
    assert with_it.rounds["feasible"].sum() < without.rounds["feasible"].sum()
    queues = table.filter("scheduled", pl.col("queue_next_j") > 0)
    grown = queues["queue_j"] + pl.Series(queues["e_cmp_j"] + queues["e_tr_j"]) + 0.1 - 0.2
    assert queues["queue_next_j"].to_numpy() == pytest.approx(grown.to_numpy())


@pytest.mark.parametrize("policy", ["lyapunov", "fedcs", "greedy_energy"])
def test_cycles_follow_what_a_device_holds(policy: str, tmp_path: Path) -> None:
    """T_cmp = c_1·|S_k|/f and E_cmp = λ c_1·|S_k| f², of which the re-check knows too."""
    run = run_of(policy, PER_SAMPLE | {"policy.cardinality": "cap"} if policy == "lyapunov" else PER_SAMPLE)
    table = run.devices
    assert table is not None
    trained = table.filter("scheduled")
    assert trained["stored"].n_unique() > 3
    cycles = 2e7 * trained["stored"].to_numpy()
    assert trained["t_cmp_s"].to_numpy() == pytest.approx(cycles / trained["f_hz"].to_numpy())
    assert trained["e_cmp_j"].to_numpy() == pytest.approx(1e-27 * cycles * trained["f_hz"].to_numpy() ** 2)
    where = run.save(tmp_path / "run")
    report = fs.verify(where)
    assert report.ok, str(report)
    table.with_columns(pl.col("t_cmp_s") * 1.1).write_parquet(where / "devices.parquet")
    report = fs.verify(seal(where))
    assert report.disagreement is not None
    assert report.disagreement.field == "t_cmp_s"


def test_a_device_without_data_has_the_work_of_one_sample() -> None:
    of = small("costs.cycles_per_sample=5e6").known_system(10)
    found = cycles_by_data(of, np.array([0, 1, 7, 0, 2, 3]))
    assert found is not None
    assert found.tolist() == [5e6, 5e6, 35e6, 5e6, 10e6, 15e6]


def test_packing_counts_what_each_device_has_left() -> None:
    """Six equal devices, of which two have hardly any time: four fit, and not the two."""
    deadline_s = np.array([4.0, 0.43, 4.0, 4.0, 0.43, 4.0])
    seen = observation(system(6, deadline_s=deadline_s))
    assert seen.plan(1).feasible.tolist() == (seen.compute_time_s + seen.plan(1).transmit_time_s <= deadline_s).tolist()
    assert pack(seen, np.ones(6, bool), 4).tolist() == [0, 2, 3, 5]


@pytest.mark.parametrize(
    ("column", "change"),
    [("e_down_j", 2.0), ("t_down_s", 0.9), ("power_w", 1.5), ("available", None)],
)
def test_a_changed_cost_is_found(column: str, change: float | None, tmp_path: Path) -> None:
    where = run_of("lyapunov", BY_CLASS).save(tmp_path / "run")
    table = pl.read_parquet(where / "devices.parquet")
    changed = ~pl.col(column) if change is None else change * pl.col(column)
    table.with_columns(changed.alias(column)).write_parquet(where / "devices.parquet")
    report = fs.verify(seal(where))
    assert report.disagreement is not None
    assert report.disagreement.field == column


class Loud(fs.Policy):
    """Sends with three times the power of others, for as long."""

    def select(self, state: Any, observation: fs.Observation, rng: np.random.Generator) -> fs.Decision:
        plan = observation.plan(1)
        return fs.Decision(np.flatnonzero(plan.feasible)[:1], plan)

    def transmit(self, observation: fs.Observation, decision: fs.Decision, gain: np.ndarray) -> Any:
        from dataclasses import replace

        usual = super().transmit(observation, decision, gain)
        return replace(usual, power_w=3 * usual.power_w, e_tr_j=3 * usual.e_tr_j)


def test_an_own_allocation_is_held_to_power_limits_and_deadlines() -> None:
    fs.simulate(small().with_(policy=Loud), seed=3)
    with pytest.raises(PluginError, match="sends with more power than its power_max_w"):
        fs.simulate(small().with_(policy=Loud, **{"radio.power_max_w": 0.7}), seed=3)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"devices.classes": ({"share": 1.0, "deadline_s": 5.0},)}, "devices.deadline_s: must be at most"),
        ({"costs.download_bits": 1e9}, "costs.download_bits: receiving the model must take less than the 4 s"),
        ({"policy": "lyapunov_joint", "devices.classes": HALVES}, "must be the same for all devices"),
        ({"policy": "ocean", "costs.receive_power_w": 1.0} | DOWNLOAD, "costs.receive_power_w: must be 0 for the pol"),
        ({"policy": "balanced_joint"} | PER_SAMPLE, "costs.cycles_per_sample: must be 0 for the policy balanced_joint"),
        (
            PER_SAMPLE | {"devices.classes": ({"share": 0.5, "cycles": 1e6}, {"share": 0.5})},
            "costs.cycles_per_sample: takes the place of all cycles",
        ),
        ({"costs.download_bits": 3.9e8}, "with the download and the time after the deadline"),
    ],
)
def test_what_does_not_go_together_is_refused_in_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        small().with_(**changes)


def test_auto_bits_are_those_that_the_server_update_has_devices_send() -> None:
    automatic = small("radio.update_bits=auto")
    parameters = 785 * 10  # of softmax regression on 28 × 28 pixels
    sent = {
        name: fs.simulate(automatic.with_(**{"learning.server.kind": name}, rounds=1)).scenario.radio.update_bits
        for name in ("fedavg", "quantise", "top_k")
    }
    assert sent == {"fedavg": 32 * parameters, "quantise": 8 * parameters + 32, "top_k": 785 * (32 + 13)}
