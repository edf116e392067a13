"""`feelstream flower run`: what it refuses before it starts anything, and a run that is done already."""

from __future__ import annotations

from pathlib import Path

import pytest
from federation import FakeGrid
from typer.testing import CliRunner

import feelstream as fs
from feelstream.cli import app
from feelstream.data.datasets import load as load_dataset
from feelstream.errors import FeelstreamError, RunError
from feelstream.flower.loopback import run_in_federation
from feelstream.flower.replay import ReplayedDevice, serve, strategy_for


def test_more_nodes_than_a_machine_can_bear_are_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["flower", "run", "million", "--out", str(tmp_path / "run")])
    assert isinstance(done.exception, FeelstreamError)
    assert "--nodes" in str(done.exception)
    assert not (tmp_path / "run").exists()


def test_a_run_that_is_done_is_not_played_again(tmp_path: Path) -> None:
    scenario = fs.preset("tiny", ["system.devices=2", "system.rounds=1", "learning.engine=none", "data.samples=40"])
    dataset, grid = load_dataset("synthetic", samples=40), FakeGrid()
    for device in range(2):
        grid.add(device + 1, {"partition-id": device}, ReplayedDevice(scenario, 0, device, dataset, None).answer)
    serve(strategy_for(scenario, dataset, 0, out=tmp_path / "run", min_available_nodes=2), grid, None)
    again = run_in_federation(scenario, 0, tmp_path / "run")
    assert again.rounds.equals(fs.read(tmp_path / "run").rounds)
    with pytest.raises(RunError, match="holds another run"):
        run_in_federation(scenario, 1, tmp_path / "run")
