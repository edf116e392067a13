"""The benchmarks run, what they compute is right, and their pages say what was measured; timings are not tested."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest
from patience import PATIENCE_S
from scipy.optimize import linprog

import feelstream
from feelstream import preset, simulate
from feelstream.learning.models import STACKS
from feelstream.loop.world import World
from feelstream.testing.kinds import KINDS

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SOURCE = Path(feelstream.__file__ or "").parents[1]
SMOKE = ["scale.py", "theorem.py", "learning.py", "studies.py", "growth.py"]
OF_FLOWER = ["label_noise.py", "flower_scale.py", "flower_value.py", "flower_real.py", "flower.py"]


def started(script: str, *options: str, cwd: Path) -> str:
    """What a script of benchmarks/ prints, started as by hand."""
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *options],
        capture_output=True, text=True, cwd=cwd, env={**os.environ, "PYTHONPATH": str(SOURCE)}, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A script of benchmarks/ as a module; some need PyTorch."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.syspath_prepend(str(BENCHMARKS / "peers"))

    def loaded(name: str) -> ModuleType:
        if name in ("page", "engine", "workload"):
            pytest.importorskip("torch")
        return importlib.import_module(name)

    return loaded


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*SMOKE, *OF_FLOWER])
def test_smoke(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in OF_FLOWER:
        pytest.importorskip("flwr", reason="needs Flower: install feelstream[flower]")
    for quiet, value in (("FLWR_TELEMETRY_ENABLED", "0"), ("FLWR_DISABLE_UPDATE_CHECK", "1")):
        monkeypatch.setenv(quiet, value)
    assert started(name, "--smoke", cwd=tmp_path)
    assert (tmp_path / "results" / "theorem.png").is_file() == (name == "theorem.py")


@pytest.mark.nightly
def test_pytorch_and_feelstream_play_the_workload(tmp_path: Path) -> None:
    """The second, whose shares are dealt unevenly; the first is the same scripts with other sizes."""
    said = started("peers/run.py", "--smoke", "--workloads", "cifar", "--folder", str(tmp_path), cwd=tmp_path)
    rows = [line.split("|")[1].strip() for line in said.splitlines() if line.startswith(("| PyTorch", "| feelstream"))]
    assert rows == ["PyTorch", "PyTorch", "feelstream", "feelstream"]


@pytest.mark.nightly
def test_the_engine_is_measured_on_every_instruction_set_and_every_model(benchmark: Any, tmp_path: Path) -> None:
    engine, said = benchmark("engine"), started("engine.py", "--smoke", cwd=tmp_path)
    for isa in engine.instruction_sets():
        assert f"| {engine.TITLES[isa]}: training step, 32 |" in said
        assert f"| {engine.TITLES[isa]}: n = 4, batch 10 |" in said
    said = started("learner.py", "--smoke", "--all", cwd=tmp_path)
    assert [name for name in STACKS if f"| {name} |" not in said] == []


@pytest.mark.parametrize("seed", range(5))
def test_the_best_importance_is_that_of_the_linear_programme(benchmark: Any, seed: int) -> None:
    """At most one of three devices a round: choose probabilities y[m, k] directly, by another method."""
    theorem, rng = benchmark("theorem"), np.random.default_rng(seed)
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
def test_the_theorem_in_numbers(benchmark: Any) -> None:
    """Queues settle at V times the dual prices; importance is within C/V of the best; the budget is kept up to Q/T."""
    V, rounds, theorem, scenario = 0.005, 4000, benchmark("theorem"), preset("theorem")
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


@pytest.mark.slow
def test_a_tree_equals_itself(tmp_path: Path) -> None:
    tree = f"{sys.executable}{os.pathsep}{SOURCE}"
    cases = ["--quick", "--only", "tables", "--case", "tiny radio.power_max_w=0.8"]
    said = started("compare_trees.py", tree, tree, *cases, cwd=tmp_path)
    assert f"after: {SOURCE}" in said
    assert "\n5 cases: 5 equal\n" in said


def test_planted_differences_are_found(benchmark: Any, tmp_path: Path) -> None:
    trees, before, after = benchmark("compare_trees"), tmp_path / "before", tmp_path / "after"
    for place in (before, after):
        simulate("tiny", 1, out=place, rounds=3, eval_every=2)
    assert trees.compared(before, after) == trees.Found()
    rounds, devices = (pl.read_parquet(after / f"{table}.parquet") for table in ("rounds", "devices"))
    changed = rounds.with_columns(
        pl.col("queue_mean_j") * pl.when(pl.col("round") == 2).then(1 + 1e-15).otherwise(1.0),
        pl.col("loss").fill_null(float("nan")),
        pl.col("planned").cast(pl.Int64),
        new=pl.lit(1),
    )
    changed.drop("feasible").write_parquet(after / "rounds.parquet")
    zero = devices["power_w"] == 0.0
    signed = devices.with_columns(power_w=pl.when(zero).then(-0.0).otherwise("power_w"))
    signed.write_parquet(after / "devices.parquet")
    with np.load(after / "model.npz") as model:
        longer = {name: np.append(values, 0) if values.ndim == 1 else values for name, values in model.items()}
    np.savez(after / "model.npz", allow_pickle=False, **longer)
    found = trees.compared(before, after)
    assert "new of rounds.parquet" in found.added
    said = "\n".join(found.differences)
    for difference in (
        f"devices.parquet, power_w: {zero.sum()} of 30 differ, first in round 1, device",
        "rounds.parquet, queue_mean_j: 1 of 3 differ, first in round 2: ",
        "rounds.parquet, loss: 1 of 3 differ, first in round 1: None before, nan after",
        "rounds.parquet, planned: Int32 before, Int64 after",
        "rounds.parquet, feasible: is gone",
        "model.npz, ",
    ):
        assert difference in said
    (after / "devices.parquet").unlink()
    assert "devices.parquet, f_hz: is gone" in trees.compared(before, after).differences


def test_what_is_refused_or_fails_in_one_tree_only_is_a_difference(benchmark: Any, tmp_path: Path) -> None:
    trees = benchmark("compare_trees")
    ran, refused, failed = ((tmp_path, said) for said in (["", ""], ["no", ""], ["", "Traceback"]))
    assert trees.judged("a", refused, refused) == (trees.REFUSED, trees.Found())
    outcome, found = trees.judged("a", refused, (tmp_path, ["never", ""]))
    assert (outcome, "in other words" in found.differences[0]) == (trees.REFUSED, True)
    for pair in ((ran, refused), (refused, ran), (ran, ran)):  # in the last no table was written
        assert trees.judged("a", *pair)[0] == trees.DIFFERENT
    assert trees.judged("a", ran, failed)[0] == trees.ERROR


def test_every_kind_of_plug_in_is_run(benchmark: Any) -> None:
    runs = benchmark("compare_trees").tree_runs
    assert runs.PLACES.keys() | {"policy"} == KINDS.keys()
    names = runs.names()
    assert names["preset"]
    cases = runs.cases(names, quick=False)
    assert len({case.name for case in cases}) == len(cases)


# What a peer took: its name, whether tuned, the seconds of all rounds, the accuracy, why it failed.
TAKEN = [
    ("feelstream", True, 2.0, 0.95, ""), ("PyTorch", True, 8.0, 0.951, ""), ("Peer", False, 30.0, 0.949, ""),
    ("Peer", True, 12.0, 0.95, ""), ("Peer", True, 10.0, 0.95, ""), ("Odd", True, 11.0, 0.7, ""),
    ("Broken", True, 0.0, 0.0, "no luck"),
]  # fmt: skip
ABOUT = dict.fromkeys(("processor", "isa", "python", "torch", "feelstream", "date"), "a") | {
    "cores": 2,
    "peak_gflops": 1.0,
}


def test_the_page_of_peers_says_what_was_measured(benchmark: Any) -> None:
    page: ModuleType = benchmark("page")
    taken = [
        {
            "name": name, "tuned": tuned, "size": 2, "form": "some form", "accuracy": [0.1, *[accuracy] * 5],
            "loop_s": loop_s, "startup_s": 1.0, "total_s": loop_s + 1.0, "memory_mb": 100.0, "failed": failed,
        }
        for name, tuned, loop_s, accuracy, failed in TAKEN
    ]  # fmt: skip
    results = {
        "rounds": 40, "taken": taken, "noise": {"2": [0.949, 0.95, 0.951, 0.95]}, "versions": {},
        "absent": {"Absent": "no matching distribution"}, "machine": ABOUT,
    }  # fmt: skip
    table = page.table_of({"mnist": results}, commit="abc")
    first = page.text(table)
    for said in (
        "| Peer | 10.00 s, 5.0× |",  # the best turn of each form counts
        "Peer, takes 5.0 times as long as feelstream, and a tuned loop in PyTorch 4.0 times",
        "More than 4 deviations away: Odd (tuned) 70.00 %.",
        "Absent does not install: no matching distribution",
        "Broken, tuned, n = 2, did not finish: no luck",
        "the best turn counts (on MNIST 2 of Peer; 1 of feelstream, PyTorch, Odd)",
        "Commit: abc.",
    ):
        assert said in first
    assert "CIFAR-10, n" not in first
    assert page.text(page.table_of({}, table)) == first  # what was not measured again keeps its rows
    both = page.table_of({"cifar": results}, table)
    assert both.rows.filter(workload="mnist").select(table.rows.columns).equals(table.rows)
    for setting in ("MNIST, n = 2", "CIFAR-10, n = 2"):
        assert setting in page.text(both)


def test_the_page_of_peers_is_made_from_its_table(benchmark: Any) -> None:
    page: ModuleType = benchmark("page")
    said = (page.DOCS / "speed.md").read_text(encoding="utf-8")
    assert said == page.text(page.read(), page.growth()), "docs/speed.md is stale; run python benchmarks/peers/page.py"
    assert len(said.split()) <= 1200
    panels = [axes.get_title(loc="left") for axes in page.figure_of(page.read()).axes]
    assert panels == ["MNIST, n = 2", "MNIST, n = 4", "CIFAR-10, n = 10"]


def test_the_page_of_a_real_federation_is_made_from_its_table(benchmark: Any) -> None:
    pytest.importorskip("flwr", reason="needs Flower: install feelstream[flower]")
    real: ModuleType = benchmark("flower_real")
    said = (real.DOCS / "flower-value.md").read_text(encoding="utf-8")
    table = real.tables.read(real.DOCS / "flower-value.csv").rows
    assert said == real.with_table(said, table), (
        "docs/flower-value.md is stale; run python benchmarks/flower_real.py --page"
    )
    assert len(said.split()) <= 350
    assert len(real.figure_of(table).axes[0].lines) == 1 + table.select("seed", "policy").n_unique()


def test_a_run_that_stays_below_the_wanted_accuracy_counts_whole(benchmark: Any) -> None:
    pytest.importorskip("flwr", reason="needs Flower: install feelstream[flower]")
    real: ModuleType = benchmark("flower_real")
    accuracy = {"balanced": [0.5, 0.8, 0.9, 0.9], "random": [0.9, 0.7, 0.7, 0.9], "select_all": [0.9, 0.9, 0.9, 0.9]}
    table = pl.concat(
        pl.DataFrame({"seed": 1, "policy": policy, "round": range(1, 5), "accuracy": found, "joules": [1.0, 2, 3, 4]})
        for policy, found in accuracy.items()
    )
    found = real.reached(table)
    assert found["round"].to_list() == [4, 4, 3]
    assert found["there"].to_list() == [True, False, True]
    assert real.saving(found, "select_all", "joules")[0] == pytest.approx(-1 / 3)


def test_the_engine_page_has_a_place_for_its_tables(benchmark: Any) -> None:
    engine = benchmark("engine")
    before = engine.PAGE.read_text()
    after = engine.written(before, "NEW")
    assert after.count("NEW") == 1
    assert engine.written(after, "NEW") == after
    assert after.startswith(before.partition(engine.BEGIN)[0])


def test_shares_of_the_second_workload_are_uneven_and_whole(benchmark: Any) -> None:
    workload, labels = benchmark("workload"), np.arange(5000) % 10
    shares = workload.dirichlet(labels, 20, 0.3, np.random.default_rng(0))
    assert sorted(np.concatenate(shares).tolist()) == list(range(5000))
    assert min(map(len, shares)) >= workload.LEAST
    mixes = np.array([np.bincount(labels[share], minlength=10) / len(share) for share in shares])
    assert mixes.max(axis=1).mean() > 0.3  # evenly dealt, the largest class of a client has little more than a tenth
    with pytest.raises(ValueError, match="too few"):
        workload.dirichlet(labels[:100], 20, 0.3, np.random.default_rng(0))
