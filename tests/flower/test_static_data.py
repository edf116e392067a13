"""Data that never changes, as most Flower apps have it: passes over it, in which every device has a turn."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from deployed_clients import CLASSES, FAST, client, grid_of, played, rows, silent_in_training
from sealing import seal

import feelstream as fs
from feelstream.flower.local_grid import Answer

HELD = ([30, 0, 0], [0, 20, 0], [0, 0, 10], [5, 5, 5])
STATIC = [client(lambda t, held=held: list(held)) for held in HELD]
FIELDS = [*FAST[:2], *FAST[3:5], "radio.fading=none", "policy.size=1", "system.energy_budget_j=0.3"]


def turns(answers: list[Answer], out: Path, *overrides: str, rounds: int = 12, passes: bool = True) -> list[list[int]]:
    """Who trained, by round."""
    scenario = fs.preset("tiny", [*FIELDS, *overrides])
    sent = played(scenario, grid_of(*answers), rounds, out, passes=passes).filter("transmitted")
    return [sent.filter(pl.col("round") == t)["device"].to_list() for t in range(1, rounds + 1)]


@pytest.mark.parametrize("policy", ["importance_greedy", "lyapunov"])
def test_every_device_has_a_turn_in_every_pass(policy: str, tmp_path: Path) -> None:
    found = turns(STATIC, tmp_path / "run", f"policy.name={policy}")
    for begin in (0, 4, 8):
        assert sorted(device for each in found[begin : begin + 4] for device in each) == [0, 1, 2, 3]
    assert found[0] == found[4] == [0]  # the most data first


def test_without_passes_cap_would_rest_for_ever(tmp_path: Path) -> None:
    cap = ("policy.cardinality=cap", "policy.V=10.0")
    assert all(turns(STATIC, tmp_path / "on", *cap)[8:])
    assert not any(turns(STATIC, tmp_path / "off", *cap, passes=False)[4:])


def test_who_never_delivers_does_not_hold_a_pass_up(tmp_path: Path) -> None:
    answers = [silent_in_training(STATIC[0]), *STATIC[1:]]
    by_round = turns(answers, tmp_path / "run", "policy.name=importance_greedy", rounds=20)
    found = [device for each in by_round for device in each]
    assert all(found.count(device) >= 3 for device in (1, 2, 3))


def test_streaming_data_is_never_taken_for_static(tmp_path: Path) -> None:
    grown_once = client(lambda t: [3, 0, 0] if t < 2 else [4, 0, 0])
    turns([grown_once, grown_once], tmp_path / "run", rounds=6)
    assert rows(tmp_path / "run").filter(pl.col("round") == 6, pl.col("device") < 2)["fresh"].sum() == 0


def test_a_pass_that_began_too_early_is_found(tmp_path: Path) -> None:
    """`verify` lets used labels start again only where all that could be scheduled was used."""
    turns(STATIC, tmp_path / "run", rounds=3)
    path = tmp_path / "run" / "devices.parquet"
    devices = pl.read_parquet(path)
    table = devices.to_dicts()
    assert any(any(row["used_labels"]) for row in table if row["round"] == 2)  # of one device in four
    for row in table:
        if row["round"] == 2:
            row["fresh_labels"] = [a + b for a, b in zip(row["fresh_labels"], row["used_labels"], strict=True)]
            row["fresh"], row["used_labels"] = sum(row["fresh_labels"]), [0] * CLASSES
    pl.DataFrame(table, schema=devices.schema).write_parquet(path)
    seal(tmp_path / "run")
    found = fs.verify(tmp_path / "run").disagreement
    assert found is not None
    assert (found.round, found.field) == (2, "used_labels")
