"""The benchmarks that write pages: they run, and they say what their numbers say. Speed itself is not tested."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from smoke import BENCHMARKS, started

from feelstream.learning.models import STACKS

pytest.importorskip("torch")


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.syspath_prepend(str(BENCHMARKS / "peers"))
    return importlib.import_module("page")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("engine")


def took(name: str, tuned: bool, loop_s: float, accuracy: float, failed: str = "") -> dict[str, Any]:
    return {
        "name": name, "tuned": tuned, "size": 2, "form": "some form", "accuracy": [0.1, *[accuracy] * 5],
        "loop_s": loop_s, "startup_s": 1.0, "total_s": loop_s + 1.0, "memory_mb": 100.0, "failed": failed,
    }  # fmt: skip


@pytest.fixture
def results() -> dict[str, Any]:
    return {
        "rounds": 40,
        "taken": [
            took("feelstream", True, 2.0, 0.95),
            took("PyTorch", True, 8.0, 0.951),
            took("Peer", False, 30.0, 0.949),
            took("Peer", True, 12.0, 0.95),
            took("Peer", True, 10.0, 0.95),
            took("Odd", True, 11.0, 0.7),
            took("Broken", True, 0.0, 0.0, failed="no luck"),
        ],
        "noise": {"2": [0.949, 0.95, 0.951, 0.95]},
        "versions": {},
        "absent": {"Absent": "no matching distribution"},
    }


def test_the_best_turn_of_each_form_counts(page: ModuleType, results: dict[str, Any]) -> None:
    lines = page.tables(results).splitlines()
    (tuned,) = [line for line in lines if line.startswith("| Peer | tuned")]
    assert "| 10.00 s | 5.0× |" in tuned
    assert not any("Broken" in line for line in lines)
    assert "Peer, takes 5.0 times as long, and a plain loop in PyTorch 4.0 times" in page.summary(results)


def test_an_accuracy_beyond_the_noise_of_seeds_is_named(page: ModuleType, results: dict[str, Any]) -> None:
    said = page.agreement(results)
    assert "Odd (tuned) 70.00%" in said
    assert "Peer (" not in said


def test_what_did_not_take_part_is_told(page: ModuleType, results: dict[str, Any]) -> None:
    said = page.failures(results)
    assert "Absent does not install: no matching distribution" in said
    assert "Broken, tuned, n = 2, did not finish: `no luck`" in said


def test_unequal_numbers_of_turns_are_told(page: ModuleType, results: dict[str, Any]) -> None:
    assert page.turns(results) == "Turns of the tuned forms: 2 of Peer; 1 of feelstream, PyTorch, Odd."
    results["taken"] = [run for run in results["taken"] if run["loop_s"] != 12.0]
    assert page.turns(results) == ""


def test_the_engine_page_has_a_place_for_its_tables(engine: ModuleType) -> None:
    before = engine.PAGE.read_text()
    after = engine.written(before, "NEW")
    assert after.count("NEW") == 1
    assert engine.written(after, "NEW") == after
    head, _, _ = before.partition(engine.BEGIN)
    assert after.startswith(head)


@pytest.mark.nightly
def test_pytorch_and_feelstream_play_the_workload(tmp_path: Path) -> None:
    """The second, whose shares are dealt unevenly; the first is the same scripts with other sizes."""
    said = started("peers/run.py", "--smoke", "--workloads", "cifar", "--folder", str(tmp_path), cwd=tmp_path)
    rows = [line.split("|")[1].strip() for line in said.splitlines() if line.startswith(("| PyTorch", "| feelstream"))]
    assert rows == ["PyTorch", "PyTorch", "feelstream", "feelstream"]


def test_a_workload_that_was_not_measured_keeps_its_section(page: ModuleType, results: dict[str, Any]) -> None:
    about = {
        "processor": "a",
        "cores": 2,
        "isa": "b",
        "peak_gflops": 1.0,
        "python": "c",
        "torch": "d",
        "feelstream": "e",
    }
    first = page.text({"mnist": results | {"machine": about | {"date": "f"}}}, "")
    assert "Peer, takes 5.0 times as long" in first
    assert "run.py --workloads cifar` on an idle machine" in first
    assert page.text({}, first) == first
    second = page.text({"cifar": results | {"machine": about | {"date": "g"}}}, first)
    assert second.startswith(first.partition(page.MARK.format("cifar"))[0])
    assert "Not measured yet" not in second


def test_shares_of_the_second_workload_are_uneven_and_whole(page: ModuleType) -> None:
    workload = importlib.import_module("workload")
    labels = np.arange(5000) % 10
    shares = workload.dirichlet(labels, 20, 0.3, np.random.default_rng(0))
    assert sorted(np.concatenate(shares).tolist()) == list(range(5000))
    assert min(map(len, shares)) >= workload.LEAST
    mixes = np.array([np.bincount(labels[share], minlength=10) / len(share) for share in shares])
    assert mixes.max(axis=1).mean() > 0.3  # evenly dealt, the largest class of a client has little more than a tenth
    with pytest.raises(ValueError, match="too few"):
        workload.dirichlet(labels[:100], 20, 0.3, np.random.default_rng(0))


@pytest.mark.nightly
def test_the_engine_is_measured_on_every_instruction_set(engine: ModuleType, tmp_path: Path) -> None:
    said = started("engine.py", "--smoke", cwd=tmp_path)
    for isa in engine.instruction_sets():
        assert f"| {engine.TITLES[isa]}: training step, 32 |" in said
        assert f"| {engine.TITLES[isa]}: n = 4, batch 10 |" in said


@pytest.mark.nightly
def test_every_named_model_is_compared_with_pytorch(tmp_path: Path) -> None:
    said = started("learner.py", "--smoke", "--all", cwd=tmp_path)
    for name in STACKS:
        assert f"| {name} |" in said
