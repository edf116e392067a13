"""What a run states of its settings: numbers that hold, for simulations, deployments and changes alike."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from builders import small

import feelstream as fs
from feelstream.constants import TABLE
from feelstream.run.manifest import Manifest


def test_what_all_devices_share_is_one_number(tmp_path: Path) -> None:
    run = fs.simulate(small(), 1)
    assert run.constants is None
    assert not (run.save(tmp_path / "run") / TABLE).exists()
    came_to = run.manifest.resolved
    assert came_to.alike["cycles"] == run.scenario.cpu.cycles
    assert [phase.first for phase in came_to.phases] == [1]
    assert Manifest.read(tmp_path / "run").resolved == came_to


def test_what_differs_is_a_column(tmp_path: Path) -> None:
    classes = [{"share": 0.5, "priority": 2.0}, {"share": 0.5, "energy_budget_j": 0.5}]
    scenario = small().with_(**{"devices.classes": classes})
    run = fs.simulate(scenario, 1, out=tmp_path / "run")
    K = scenario.system.devices
    expected = {"device": list(range(K)), "priority": [2.0] * (K // 2) + [1.0] * (K - K // 2)}
    assert run.constants is not None
    assert run.constants["priority"].to_list() == expected["priority"]
    assert run.constants["energy_budget_j"].to_list()[-1] == 0.5
    assert set(run.constants.columns) == {"device", "priority", "energy_budget_j"}
    assert pl.read_parquet(tmp_path / "run" / TABLE).equals(run.constants)
    assert TABLE in run.manifest.digests
    again = fs.read(tmp_path / "run")
    assert again.constants is not None
    assert again.constants.equals(run.constants)


def test_each_change_is_a_phase_with_all_that_holds_in_it() -> None:
    changes = [fs.Change(2, "V", "auto"), fs.Change(3, "energy_budget_j", 0.02), fs.Change(3, "size", 1)]
    scenario = small().with_(policy="lyapunov")
    phases = fs.simulate(scenario, 1, changes=changes).manifest.resolved.phases
    assert [phase.first for phase in phases] == [1, 2, 3]
    assert not phases[0].auto
    K, budget_j, size = scenario.system.devices, scenario.system.energy_budget_j, scenario.policy.size
    assert phases[1].auto
    assert isinstance(budget_j, float)
    assert pytest.approx(20.0 * (K * budget_j / size) ** 2) == phases[1].V
    assert pytest.approx(20.0 * (K * 0.02) ** 2) == phases[2].V
    assert (phases[2].size, phases[2].energy_budget_j) == (1, 0.02)
