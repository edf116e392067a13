"""What is saved: run directories that verify, scenario files and commands that repeat them byte for byte."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from builders import small
from typer.testing import CliRunner

from feelstream.cli import app
from feelstream.errors import RunError
from feelstream.run import Change, simulate
from feelstream.studio.lanes import LiveLane, StoredLane
from feelstream.studio.saving import command, file_name, save
from feelstream.verification import verify


def tables(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*.parquet"))}


def test_saved_runs_verify_and_equal_those_of_the_command_line(tmp_path: Path, monkeypatch) -> None:
    learns = ["learning.engine=native", "data.samples=240"]
    changed = LiveLane("lyapunov, V = 0.5 from 4", small(*learns), 5, [Change(4, "policy.V", "0.5")])
    lanes = [changed, LiveLane("random", small(*learns, "policy.name=random"), 5)]
    for lane in lanes:
        for _ in range(3):  # half-way: saving plays it to its end
            lane.step()
    told: list[str] = []
    where = save(lanes, tmp_path / "saved", told.append)
    assert told[-1] == "random: round 8 of 8"
    (tmp_path / "again").mkdir()
    monkeypatch.chdir(tmp_path / "again")
    commands = (where / "commands.txt").read_text().splitlines()
    assert commands == [command(lane) for lane in lanes]
    for lane, line in zip(lanes, commands, strict=True):
        name = file_name(lane.label)
        (tmp_path / "again" / f"{name}.toml").write_bytes((where / f"{name}.toml").read_bytes())
        ended = CliRunner().invoke(app, shlex.split(line)[1:])
        assert ended.exit_code == 0, ended.output
        assert tables(tmp_path / "again" / name) == tables(where / name)
        assert len(tables(where / name)) == 2
        assert verify(where / name).ok
        assert [row["accuracy"] for row in lane.rows] == simulate(
            lane.scenario, 5, changes=lane.changes
        ).rounds["accuracy"].to_list()[:3]  # fmt: skip


def test_saving_again_goes_on_and_stored_runs_are_not_saved(tmp_path: Path) -> None:
    lane = LiveLane("lyapunov", small(), 1)
    save([lane], tmp_path)
    before = tables(tmp_path / "lyapunov")
    save([lane], tmp_path)
    assert tables(tmp_path / "lyapunov") == before
    with pytest.raises(RunError, match="stored already"):
        save([StoredLane("old", simulate(small(), 1))], tmp_path / "other")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="it is a file"):
        save([lane], tmp_path / "file")
