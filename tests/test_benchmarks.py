"""The benchmarks run, and what they compute is right; their timings are not tested."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog
from smoke import BENCHMARKS, SOURCE, started

from feelstream import preset, simulate
from feelstream.loop.world import World
from feelstream.testing.kinds import KINDS


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
    started(name, "--smoke", cwd=tmp_path)
    if name == "theorem.py":
        assert (tmp_path / "results" / "theorem.png").is_file()


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["label_noise.py", "flower_scale.py", "flower_value.py", "flower.py"])
def test_smoke_of_deployments(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("flwr", reason="needs Flower: install feelstream[flower]")
    for quiet, value in (("FLWR_TELEMETRY_ENABLED", "0"), ("FLWR_DISABLE_UPDATE_CHECK", "1")):
        monkeypatch.setenv(quiet, value)
    assert started(name, "--smoke", cwd=tmp_path)


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
    world = World(scenario, 0, np.zeros(system.devices, np.uint8), 1)
    world.advance(1)
    beta = world.beta
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


@pytest.fixture
def trees(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("compare_trees")


@pytest.mark.slow
def test_a_tree_equals_itself(tmp_path: Path) -> None:
    tree = f"{sys.executable}{os.pathsep}{SOURCE}"
    cases = ["--quick", "--only", "tables", "--case", "tiny radio.power_max_w=0.8"]
    said = started("compare_trees.py", tree, tree, *cases, cwd=tmp_path)
    assert f"after: {SOURCE}" in said
    assert "\n5 cases: 5 equal\n" in said


def test_planted_differences_are_found(trees: ModuleType, tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for place in (before, after):
        simulate("tiny", 1, out=place, rounds=3, eval_every=2)
    assert trees.compared(before, after) == trees.Found()

    rounds = pl.read_parquet(after / "rounds.parquet")
    assert rounds["loss"].null_count() == 1
    changed = rounds.with_columns(
        pl.col("queue_mean_j") * pl.when(pl.col("round") == 2).then(1 + 1e-15).otherwise(1.0),
        pl.col("loss").fill_null(float("nan")),
        pl.col("planned").cast(pl.Int64),
        new=pl.lit(1),
    )
    changed.drop("feasible").write_parquet(after / "rounds.parquet")
    devices = pl.read_parquet(after / "devices.parquet")
    zero = devices["power_w"] == 0.0
    signed = devices.with_columns(power_w=pl.when(zero).then(-0.0).otherwise("power_w"))
    signed.write_parquet(after / "devices.parquet")
    with np.load(after / "model.npz") as model:
        longer = {name: np.append(values, 0) if values.ndim == 1 else values for name, values in model.items()}
    np.savez(after / "model.npz", allow_pickle=False, **longer)

    found = trees.compared(before, after)
    assert "new of rounds.parquet" in found.added
    said = "\n".join(found.differences)
    assert f"devices.parquet, power_w: {zero.sum()} of 30 differ, first in round 1, device" in said
    assert "rounds.parquet, queue_mean_j: 1 of 3 differ, first in round 2: " in said
    assert "rounds.parquet, loss: 1 of 3 differ, first in round 1: None before, nan after" in said
    assert "rounds.parquet, planned: Int32 before, Int64 after" in said
    assert "rounds.parquet, feasible: is gone" in said
    assert "model.npz, " in said
    (after / "devices.parquet").unlink()
    assert "devices.parquet, f_hz: is gone" in trees.compared(before, after).differences


def test_what_is_refused_or_fails_in_one_tree_only_is_a_difference(trees: ModuleType, tmp_path: Path) -> None:
    ran, refused, failed = ((tmp_path, said) for said in (["", ""], ["no", ""], ["", "Traceback"]))
    assert trees.judged("a", refused, refused) == (trees.REFUSED, trees.Found())
    outcome, found = trees.judged("a", refused, (tmp_path, ["never", ""]))
    assert outcome == trees.REFUSED
    assert "in other words" in found.differences[0]
    assert trees.judged("a", ran, refused)[0] == trees.DIFFERENT
    assert trees.judged("a", refused, ran)[0] == trees.DIFFERENT
    assert trees.judged("a", ran, failed)[0] == trees.ERROR
    assert trees.judged("a", ran, ran)[0] == trees.DIFFERENT  # no table was written


def test_every_kind_of_plug_in_is_run(trees: ModuleType) -> None:
    runs = trees.tree_runs
    assert runs.PLACES.keys() | {"policy"} == KINDS.keys()
    names = runs.names()
    assert names["preset"]
    cases = runs.cases(names, quick=False)
    assert len({case.name for case in cases}) == len(cases)
