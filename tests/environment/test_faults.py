"""Updates that never arrive: in the world, in the schedule, and in what the re-check makes of them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from sealing import seal
from stopped import stop_in

import feelstream as fs
from feelstream.run import simulate_in

NO_LEARNING = ["learning.engine=none", "system.devices=10", "system.rounds=40", "system.energy_budget_j=0.3"]
BAD = ["world.faults.kind=random", "world.faults.rate=1.0", "world.faults.share=0.2"]


@pytest.mark.parametrize("policy", ["lyapunov", "importance_greedy"])
def test_failing_devices_do_not_capture_the_schedule(policy: str) -> None:
    """What they hold stays fresh, so that each round adds to their importance; two of ten then have every turn."""
    ways = {}
    for way in ("learned", "ignored"):
        overrides = [*NO_LEARNING, *BAD, f"policy.name={policy}", f"system.reliability={way}"]
        rounds = fs.simulate(fs.preset("tiny", overrides), seed=1).rounds
        ways[way] = int(rounds["transmitted"].sum()) / int(rounds["scheduled"].sum())
    assert ways["learned"] > 0.8
    assert ways["learned"] > ways["ignored"] + 0.05


@pytest.fixture
def run(tmp_path: Path) -> Path:
    fs.simulate(fs.preset("tiny", [*NO_LEARNING, *BAD]), seed=1, out=tmp_path / "run")
    assert fs.verify(tmp_path / "run").ok
    return tmp_path / "run"


@pytest.mark.parametrize("column", ["reliability", "available"])
def test_the_re_check_learns_who_delivers_by_itself(column: str, run: Path) -> None:
    table = pl.read_parquet(run / "devices.parquet")
    row = table.with_row_index().filter(pl.col("reliability") < 1, ~pl.col("available"))["index"][0]
    changed = table[column].to_list()
    changed[row] = not changed[row] if column == "available" else changed[row] * 1.01
    table.with_columns(pl.Series(column, changed)).write_parquet(run / "devices.parquet")
    seal(run)
    found = fs.verify(run)
    assert not found.ok
    assert column in str(found)


def test_a_run_that_is_stopped_goes_on_with_what_it_had_learned(tmp_path: Path) -> None:
    scenario = fs.preset("tiny", [*NO_LEARNING, "world.faults.kind=markov"])
    whole = fs.simulate(scenario, seed=2)

    stop_in(tmp_path / "parts", scenario, at=17, seed=2)
    again = simulate_in(tmp_path / "parts", scenario, 2)
    assert again.devices is not None
    assert whole.devices is not None
    assert again.devices.equals(whole.devices)
