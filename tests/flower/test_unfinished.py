"""A deployment that is under way can be looked at: its rounds so far, a report of them, the studio, and its log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deployed_clients import CLASSES, FAST, client, grid_of, growing, model
from flwr.app import ArrayRecord, MetricRecord
from typer.testing import CliRunner

import feelstream as fs
from feelstream.cli.study import app as report_app
from feelstream.errors import RunError
from feelstream.flower import ScheduledFedAvg
from feelstream.run.run import read_so_far
from feelstream.studio.lanes import open_runs


def started(out: Path, until: int) -> None:
    """A run of five rounds whose server dies after some."""

    def evaluate(t: int, arrays: ArrayRecord) -> MetricRecord:
        if t > until:
            raise KeyboardInterrupt
        return MetricRecord({"accuracy": t / 10, "loss": 1.0})

    strategy = ScheduledFedAvg(fs.preset("tiny", FAST), classes=CLASSES, out=out)
    grid = grid_of(*[client(growing, device={"meter": lambda: 0.0})] * 2)
    strategy.start(grid, model(), num_rounds=5, evaluate_fn=evaluate)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with pytest.raises(KeyboardInterrupt):
        started(tmp_path / "run", until=3)
    return tmp_path / "run"


def test_its_rounds_so_far_are_there(run: Path) -> None:
    found = read_so_far(run)
    assert found.rounds["accuracy"].to_list() == [0.1, 0.2, 0.3]
    assert found.scenario.system.rounds == 5
    started(run, until=5)
    assert read_so_far(run).rounds.equals(fs.read(run).rounds)
    assert read_so_far(run).rounds.head(3).equals(found.rounds)


def test_a_report_shows_them_and_leaves_the_run_alone(run: Path) -> None:
    done = CliRunner().invoke(report_app, ["report", str(run), "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert (run / "so-far" / "report.html").is_file()
    assert fs.read(run / "so-far" / "run").rounds.height == 3
    started(run, until=5)
    assert fs.verify(run).ok


def test_before_the_first_round_there_is_nothing_to_show(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        started(tmp_path / "run", until=0)
    with pytest.raises(RunError, match="no round is stored yet"):
        read_so_far(tmp_path / "run")


def test_the_studio_follows_it(run: Path) -> None:
    (lane,) = open_runs({"deployment": run})
    assert lane.head == 3
    lane.step()  # nothing new
    assert lane.head == 3
    started(run, until=5)
    lane.step()
    assert lane.head == lane.scenario.system.rounds == 5
    assert lane.view(5).round == 5
    (ended,) = open_runs({"deployment": run})
    with pytest.raises(RunError, match="has ended"):
        ended.step()


def test_what_depends_on_the_clock_is_in_a_log_beside_the_run(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "logs" / "rounds.jsonl").read_text().splitlines()]
    assert [line["round"] for line in lines] == [1, 2, 3]
    assert all({"at", "seconds", "timeout_s", "wasted_j"} <= line.keys() for line in lines)
    assert json.loads((run / "logs" / "meters.json").read_text()) == {"0": "<lambda>", "1": "<lambda>"}
    started(run, until=5)
    assert not any("log" in name or "meters" in name for name in fs.read(run).manifest.digests)
    assert fs.verify(run).ok
