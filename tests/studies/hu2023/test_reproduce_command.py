"""The commands `reproduce` and `report`, with real workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import invoked, set_to
from small_results import SMALL

FIG1 = ("reproduce", "fig1", "--seeds", "2", *set_to(*SMALL), "--out")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("reproduce") / "results"
    return out, invoked(*FIG1, out, "--workers", "2").stdout


@pytest.mark.slow
def test_reproduce_leaves_everything_and_ends_with_the_report(made):
    out, said = made
    for name in ("report.html", "claims.json", "curves.csv", "curves.parquet", "figures/fig1c.pdf", "figures/fig1.png"):
        assert (out / name).is_file(), name
    assert said.rstrip().splitlines()[-1].split() == ["report", str(out / "report.html")]
    claims = json.loads((out / "claims.json").read_text(encoding="utf-8"))["claims"]
    assert len(claims) == 4
    panels = [line for line in said.splitlines() if line.startswith("1")]
    assert [line.split()[0] for line in panels] == ["1c", "1d"]
    assert all(line.endswith("2 too few seeds") for line in panels)


@pytest.mark.slow
def test_a_second_call_plays_nothing_again(made):
    out, _ = made
    stamps = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/rounds.parquet")}
    assert len(stamps) == 16
    invoked(*FIG1, out)
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


def test_when_every_run_fails_the_reason_is_told(tmp_path):
    sets = set_to(*SMALL, "data.dataset=none.npz")
    done = invoked("reproduce", "fig2", "--seeds", "1", "--out", tmp_path / "out", *sets, code=1)
    assert "none.npz" in done.output
    assert not (tmp_path / "out" / "report.html").exists()


@pytest.mark.nightly
def test_the_benchmark_runs():
    script = Path(__file__).parents[3] / "benchmarks" / "reproduce.py"
    done = subprocess.run(
        [sys.executable, str(script), "--smoke", "--figure", "fig2"],
        capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "12 runs (6 arms × 2 seeds), engine none" in done.stdout
    assert "memory of the largest worker" in done.stdout
