"""`feelstream flower run`: what it refuses before it starts anything, and a run that is done already."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from sealing import seal
from typer.testing import CliRunner

import feelstream as fs
from feelstream.cli import app
from feelstream.errors import FeelstreamError, RunError
from feelstream.flower.federation import reason, run_in_federation, with_absolute_paths
from feelstream.flower.local_grid import LocalGrid
from feelstream.flower.replay import ReplayedDevice, serve, strategy_for
from feelstream.run import dataset_of
from feelstream.scenario import Scenario
from feelstream.scenario.files import from_dict, to_toml

PATIENT: dict[str, Any] = {"deadline_s": 60.0, "query_timeout_s": 60.0}
SMALL = ["system.devices=2", "system.rounds=1", "policy.size=1", "learning.engine=none", "data.samples=40"]


def test_more_nodes_than_a_machine_can_bear_are_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["flower", "run", "million", "--out", str(tmp_path / "run")])
    assert isinstance(done.exception, FeelstreamError)
    assert "--nodes" in str(done.exception)
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("no_federation")
def test_a_run_that_is_done_is_not_played_again(tmp_path: Path) -> None:
    scenario = fs.preset("tiny", SMALL)
    play_on_fake_grid(scenario, tmp_path / "run")
    again = run_in_federation(scenario, 0, tmp_path / "run", **PATIENT)
    assert again.rounds.equals(fs.read(tmp_path / "run").rounds)


@pytest.mark.usefixtures("no_federation")
def test_as_json_it_is_all_that_is_printed(tmp_path: Path) -> None:
    play_on_fake_grid(fs.preset("tiny", SMALL), tmp_path / "run")
    changes = [word for change in SMALL for word in ("--set", change)]
    done = CliRunner().invoke(app, ["flower", "run", "tiny", *changes, "--out", str(tmp_path / "run"), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)  # progress goes to standard error
    assert (told["policy"], told["rounds"], told["directory"]) == ("lyapunov", 1, str(tmp_path / "run"))


def play_on_fake_grid(scenario: Scenario, out: Path) -> None:
    dataset, grid = dataset_of(scenario), LocalGrid()
    for device in range(scenario.system.devices):
        grid.add(device + 1, {"partition-id": device}, ReplayedDevice(scenario, 0, device, dataset, None).answer)
    serve(strategy_for(scenario, dataset, 0, out=out, min_available_nodes=2), grid, None)


@pytest.fixture
def no_federation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting one is a failure."""
    monkeypatch.setattr("feelstream.flower.federation.federation", lambda: pytest.fail("a federation was started"))


@pytest.mark.usefixtures("no_federation")
@pytest.mark.parametrize("status", ["complete", "running"])
def test_a_wrong_directory_is_refused_before_anything_starts(status: str, tmp_path: Path) -> None:
    scenario, out = fs.preset("tiny", SMALL), tmp_path / "run"
    play_on_fake_grid(scenario, out)
    seal(out, status=status)
    with pytest.raises(RunError, match=r"another seed \(0 there, 1 here\)"):
        run_in_federation(scenario, 1, out, **PATIENT)
    with pytest.raises(RunError, match=r"another scenario \(policy.size"):
        run_in_federation(fs.preset("tiny", [*SMALL, "policy.size=2"]), 0, out, **PATIENT)
    simulated = tmp_path / "simulated"
    fs.simulate(scenario, 0).save(simulated)
    with pytest.raises(RunError, match="another engine"):
        run_in_federation(scenario, 0, simulated, **PATIENT)


@pytest.mark.usefixtures("no_federation")
def test_files_of_a_scenario_are_found_from_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    Path("mine/pol.py").write_text(
        "from feelstream.policies import Random\n\nclass Own(Random):\n    pass\n", encoding="utf-8"
    )
    Path("trace.csv").write_text("time,device,label\n0.5,0,1\n0.5,1,2\n", encoding="utf-8")
    Path("synthetic").write_text("a file of that name is not the data set", encoding="utf-8")
    trace = ["data.arrivals.kind=trace", "data.arrivals.path=trace.csv"]
    changes = [*SMALL, *trace, "policy.name=mine/pol.py:Own", "learning.model=mine/net.py:Net"]
    found = with_absolute_paths(fs.preset("tiny", changes))
    written = tomllib.loads(to_toml(found))
    assert written["policy"]["name"] == f"{tmp_path}/mine/pol.py:Own"
    assert written["data"]["arrivals"]["path"] == f"{tmp_path}/trace.csv"
    assert written["data"]["dataset"] == "synthetic"
    assert written["learning"]["model"] == "mine/net.py:Net"  # no such file; the error is to name it as given
    monkeypatch.chdir("/")
    again = from_dict(written)
    assert again == found
    play_on_fake_grid(again, tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    done = run_in_federation(
        fs.preset("tiny", changes), 0, tmp_path / "run", **PATIENT
    )  # the same run, named from here
    assert done.scenario.policy.plugin_name() == f"{tmp_path}/mine/pol.py:Own"


LINK = "\nFor more information, visit: <https://flower.ai/docs/ref-exit-codes/201.html>\n\n"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (
            '    raise RunError(f"{path} is no run")\nfeelstream.errors.RunError: /a is no run: choose another\n'
            f"\x1b[91mERROR \x1b[0m:     Exit Code: 201\n\nAn unhandled exception occurred.\n{LINK}",
            "/a is no run: choose another",
        ),
        (f'  File "x.py", line 3\n    raise KeyError(name)\nKeyError: 3\nExit Code: 201\n{LINK}', "KeyError: 3"),
        (f"started\n│ \x1b[91mno such app\x1b[0m │\n╰────╯\n{LINK}", "no such app"),
        (LINK, "it said nothing"),
        ("", "it said nothing"),
    ],
)
def test_the_reason_of_a_failure_is_found_in_a_log(log: str, expected: str) -> None:
    assert reason(log) == expected
