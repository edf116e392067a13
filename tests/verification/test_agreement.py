"""Runs of the slow simulator, in many settings, must verify."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from slow_simulator import scenario, simulate

from feelstream.verification import files, verify

FREE = {"policy__cardinality": "free"}
STEADY = {"radio__fading": "none", "policy__size": 5}
VARIANTS: dict[str, dict[str, Any]] = {
    "exact": {},
    "cap": {"policy__cardinality": "cap"},
    "free": FREE,
    "free-cheap": FREE | {"system__energy_budget_j": 0.2, "policy__size": 5},
    "largest": {"radio__admission": "largest", "policy__size": 5},
    "paper-many": {"policy__size": 5, "radio__rate_discount": 2.0},
    "no-fading": STEADY | {"radio__rate_discount": 3.0},
    "one-frequency": STEADY | {"cpu__frequency_hz": [1.5e8, 1.5e8]},
    "one-frequency-largest": STEADY
    | {"radio__admission": "largest", "radio__rate_discount": 3.0, "cpu__frequency_hz": [2e8, 2e8]},
    "nobody-feasible": {"system__round_s": 0.05},
    "budget-list": {"system__energy_budget_j": [0.0, 0.01, 0.02, 0.1, 1.0]},
    "random": {"policy": {"name": "random", "size": 3}},
    "unknown-policy": {"policy": {"name": "mine.py:Mine", "size": 2, "of_its_own": [1, "x"]}},
    "engine-none": {"learning__engine": "none"},
}
# What most scenarios have, and what few do.
BUFFERS = [{"kind": "keep"}] * 4 + [
    {"kind": "window", "rounds": 2}, {"kind": "fifo", "capacity": 3}, {"kind": "reservoir", "capacity": 3},
    {"kind": "use_once"},
]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", VARIANTS)
def test_a_right_run_verifies(name: str, seed: int, tmp_path: Path) -> None:
    report = verify(simulate(scenario(**VARIANTS[name]), seed).save(tmp_path))
    assert report.ok, str(report)
    assert report.disagreement is None
    assert all(check.checked > 0 for check in report.checks)


@pytest.mark.parametrize("seed", range(100))
def test_random_scenarios_verify(seed: int, tmp_path: Path) -> None:
    rng = random.Random(1000 + seed)
    devices = rng.randint(1, 6)
    tree = scenario(
        system__devices=devices,
        system__rounds=rng.randint(1, 12),
        system__energy_budget_j=rng.choice([0.0, 1e-3, 0.05, 0.5]),
        radio__admission=rng.choice(["paper", "largest"]),
        radio__fading=rng.choice(["rayleigh", "none"]),
        radio__link_margin=rng.choice([1.0, 3.0, 10.0]),
        radio__rate_discount=rng.choice([0.5, 1.0, 3.0]),
        data__fresh=rng.choice(["since_use", "per_round"]),
        data__buffer=rng.choice(BUFFERS),
        data__eligible=rng.choice(["any", "with_data"]),
        data__empty_used=rng.choice(["zero", "vector"]),
        data__empty_fresh=rng.choice(["zero", "vector"]),
        policy={
            "name": "lyapunov",
            "V": rng.choice([0.0, 1e-3, 0.05, 2.0, math.inf]),
            "size": rng.randint(1, devices),
            "cardinality": rng.choice(["exact", "cap", "free"]),
            "metric": rng.choice(["combined", "amount", "dissimilarity"]),
        },
    )
    report = verify(simulate(tree, seed).save(tmp_path))
    assert report.ok, str(report)


def test_the_runs_are_busy_enough_to_mean_something() -> None:
    """Devices are infeasible, dropped, and sizes vary: otherwise the tests above would prove little."""
    for name in ("exact", "largest", "paper-many", "no-fading"):
        rounds = simulate(scenario(**VARIANTS[name], system__rounds=30)).rounds
        assert rounds["feasible"].n_unique() > 1
        assert (rounds["transmitted"] < rounds["scheduled"]).sum() >= 3, name
        assert (rounds["transmitted"] > 0).sum() >= 3, name
    free = simulate(scenario(**VARIANTS["free-cheap"], system__rounds=30)).rounds
    assert free["planned"].n_unique() >= 3


def test_blocks_of_rounds_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few rounds are read at a time, the outcome and the counts are the same."""
    path = simulate(scenario(policy__cardinality="cap")).save(tmp_path)
    whole = verify(path)
    for rows in (1, 11, 15):
        monkeypatch.setattr(files, "BLOCK_ROWS", rows)
        assert verify(path) == whole


@pytest.mark.parametrize("name", ["exact", "cap", "free", "random", "engine-none"])
def test_rounds_alone_verify_and_say_what_was_left_out(name: str, tmp_path: Path) -> None:
    tree = scenario(**VARIANTS[name], trace__level="rounds")
    report = verify(simulate(tree).save(tmp_path))
    assert report.ok, str(report)
    assert not (tmp_path / "devices.parquet").exists()
    by_name = {check.name: check for check in report.checks}
    assert by_name["decision"].checked == 0
    assert "not re-checked" in by_name["decision"].note
    assert by_name["round totals"].checked > 0


def test_the_report_reads_well_and_is_json(tmp_path: Path) -> None:
    stored = simulate(scenario())
    report = verify(stored.save(tmp_path))
    assert "every stored value that can be recomputed agrees" in str(report)
    tree = json.loads(report.to_json())
    assert tree == report.as_dict()
    assert (tree["ok"], tree["disagreement"]) == (True, None)
    assert {"name", "checked", "note"} == set(tree["checks"][0])
    stored.devices[11, "gain"] = float("nan")
    report = verify(stored.save(tmp_path))
    assert "DISAGREES" in str(report)
    assert "round 3, device 1, gain" in str(report)
    tree = json.loads(report.to_json())
    assert (tree["ok"], tree["disagreement"]["stored"]) == (False, "nan")
    assert set(tree["disagreement"]) == {"round", "device", "field", "stored", "recomputed", "rule"}
