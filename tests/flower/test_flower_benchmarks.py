"""The benchmarks of the deployment run; their timings are not tested."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S

import feelstream

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["label_noise.py", "flower_scale.py", "flower_value.py", "flower.py"])
def test_smoke(name: str, tmp_path: Path) -> None:
    source = Path(feelstream.__file__ or "").parents[1]
    command, env = [sys.executable, str(BENCHMARKS / name), "--smoke"], {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
