"""The layer contracts of pyproject.toml are no words only: what they forbid is found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("importlinter")
ROOT = Path(__file__).parents[1]
SOURCES = ("src", "studies/src")
FORBIDDEN = {
    "report": ("src/feelstream/report/groups.py", "feelstream.studies.claims"),
    "experiment": ("src/feelstream/experiment/comparison.py", "feelstream.studies.claims"),
    "api": ("src/feelstream/api/comparing.py", "feelstream.studies.registry"),
    "another": ("studies/src/feelstream_studies/leaderboard/entries.py", "feelstream_studies.hu2023.paper"),
    "core": ("studies/src/feelstream_studies/silicon/figure.py", "feelstream.run.files"),
}


def test_nothing_below_may_import_a_study_and_no_study_another(tmp_path: Path):
    for source in SOURCES:
        shutil.copytree(ROOT / source, tmp_path / source, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for file, studied in FORBIDDEN.values():
        with open(tmp_path / file, "a", encoding="utf-8") as text:
            text.write(f"\nimport {studied}\n")
    linter = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", linter, "--no-cache"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ":".join(str(tmp_path / source) for source in SOURCES), "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "Imports point downwards BROKEN" in said
    for room in ("report", "experiment", "api"):
        assert f"feelstream.{room} is not allowed to import feelstream.studies" in said
    assert "feelstream_studies.leaderboard is not allowed to import feelstream_studies.hu2023" in said
    assert "feelstream_studies.silicon.figure -> feelstream.run.files" in said
