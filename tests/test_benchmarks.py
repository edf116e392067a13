"""The benchmarks run, and what they compute is right; their timings are not tested."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.optimize import linprog

from feelstream import preset
from feelstream.world import World

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def theorem() -> ModuleType:
    spec = importlib.util.spec_from_file_location("theorem_benchmark", BENCHMARKS / "theorem.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["scale.py", "theorem.py", "learning.py", "studies.py", "growth.py"])
def test_smoke(name: str, tmp_path: Path) -> None:
    source = Path(sys.modules["feelstream"].__file__ or "").parents[1]
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / name), "--smoke"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    assert done.returncode == 0, done.stderr
    if name == "theorem.py":
        assert (tmp_path / "results" / "theorem.png").is_file()


@pytest.mark.parametrize("seed", range(5))
def test_the_best_importance_is_that_of_the_linear_programme(theorem: ModuleType, seed: int) -> None:
    """At most one of three devices a round: choose probabilities y[m, k] directly, by another method."""
    rng = np.random.default_rng(seed)
    M, K = 60, 3
    worth, energy, budget = rng.random((M, K)), rng.uniform(0.5, 1.5, (M, K)), rng.uniform(0.02, 0.4, K)
    found, _ = theorem.best_importance(theorem.Rounds(worth, energy, 1), budget)
    one_a_round = np.kron(np.eye(M), np.ones(K))
    spent = np.zeros((K, M * K))
    for k in range(K):
        spent[k, k::K] = energy[:, k] / M
    limits = np.concatenate([np.ones(M), budget])
    exact = linprog(-worth.ravel() / M, np.vstack([one_a_round, spent]), limits, bounds=(0, 1))
    assert found == pytest.approx(-exact.fun, rel=5e-3)  # 60 rounds leave kinks at which a gradient method stops early
    assert found >= -exact.fun * (1 - 1e-9)  # any prices give an upper bound


@pytest.mark.slow
def test_the_theorem_in_numbers(theorem: ModuleType) -> None:
    """Queues settle at V times the dual prices; importance is within C/V of the best; the budget is kept up to Q/T."""
    V, rounds = 0.005, 4000
    scenario = preset("theorem")
    system = scenario.known_system(1)
    beta = World(scenario, 0, np.zeros(system.devices, np.uint8), 1).beta
    best, price = theorem.best_importance(
        theorem.sample_rounds(scenario, system, beta, 10000, 1), system.energy_budget_j
    )
    assert best == pytest.approx(2.03, rel=0.1)
    assert price.mean() == pytest.approx(57.6, rel=0.1)
    run = theorem.play(V, rounds, 0)
    assert run.queue_j / V == pytest.approx(price.mean(), rel=0.15)
    assert best - run.importance < run.drift / V
    assert run.queue_max_j <= theorem.queue_bound_j(V, system, beta, 2)
    over = run.energy_j.mean() / system.energy_budget_j.mean() - 1
    assert 0 < over < 1.5 * run.queue_j / rounds / system.energy_budget_j.mean()
