"""Benchmarks as they are started by hand, with the least work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from patience import PATIENCE_S

import feelstream

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SOURCE = Path(feelstream.__file__ or "").parents[1]


def started(script: str, *options: str, cwd: Path) -> str:
    """What a script of benchmarks/ prints."""
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *options],
        capture_output=True, text=True, cwd=cwd, env={**os.environ, "PYTHONPATH": str(SOURCE)}, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
