"""The same strategy in Flower's own simulation engine, which needs Ray."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from patience import PATIENCE_S

import feelstream as fs

pytestmark = pytest.mark.nightly
pytest.importorskip("ray", reason="needs Ray: install flwr[simulation]")


def test_flowers_simulation_repeats_ours(tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "support" / "simulated_federation.py"
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_IMPORT_WARNING": "1", "FLWR_HOME": str(tmp_path / "flower")}
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "run")],
        env=os.environ | quiet, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    from simulated_federation import SEED, scenario

    played, simulated = fs.read(tmp_path / "run").devices, fs.simulate(scenario(), SEED).devices
    assert played is not None
    assert simulated is not None
    for column in ("scheduled", "transmitted", "stored", "fresh"):
        assert played[column].to_list() == simulated[column].to_list()
    np.testing.assert_allclose(played["queue_next_j"], simulated["queue_next_j"], rtol=1e-12)
    assert fs.verify(tmp_path / "run").ok
