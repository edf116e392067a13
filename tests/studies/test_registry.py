"""Studies of other packages: their commands are listed and run, and a broken one is left out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STUDY = """
from feelstream.studies import Command, Study

STUDY = Study(
    "theirs", "A study of theirs",
    commands=(
        Command("greet", "Say hello.", "their_command:app"),
        Command("reproduce", "Not ours.", "their_command:app"),
        Command("run", "Not ours.", "their_command:app"),
    ),
)
"""
COMMAND = """
import typer

app = typer.Typer()

@app.command()
def greet() -> None:
    print("hello from their study")

@app.command()
def other() -> None: ...
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    (tmp_path / "their_study.py").write_text(STUDY)
    (tmp_path / "their_command.py").write_text(COMMAND)
    (tmp_path / "broken_study.py").write_text("import there_is_no_such_module\n")
    for name, point in (("theirs", "their_study:STUDY"), ("broken", "broken_study:STUDY")):
        metadata = tmp_path / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[feelstream.studies]\n{name} = {point}\n")
    return tmp_path


def called(packages: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(packages), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-m", "feelstream", *words],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path, "COLUMNS": "100"},
    )  # fmt: skip


def test_their_commands_stand_beside_ours(packages: Path):
    done = called(packages, "--help")
    assert done.returncode == 0, done.stderr
    assert "Say hello." in done.stdout
    assert "Not ours." not in done.stdout  # a name that we have, or a study before theirs, stays with it
    assert "the study broken is left out: 'broken_study:STUDY' cannot be imported" in " ".join(done.stderr.split())
    assert called(packages, "greet").stdout == "hello from their study\n"


def test_a_broken_study_stops_no_command_of_ours(packages: Path):
    done = called(packages, "presets", "tiny")
    assert (done.returncode, done.stderr) == (0, "")
