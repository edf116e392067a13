"""The re-check knows what a deployment may do that a simulation may not, and nothing more than that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from deployed_clients import FAST, client, grid_of, growing, model, silent_in_training
from sealing import seal

import feelstream as fs
from feelstream.flower import ScheduledFedAvg

METERED, SILENT, PLAIN, ABSENT = range(4)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Four rounds of a metered device, one that never replies, an ordinary one, and one that never comes."""
    measured = {"t_cmp_s": 1.5, "e_cmp_j": 0.25}
    grid = grid_of(client(growing, after=measured), silent_in_training(client(growing)), client(growing))
    scenario = fs.preset("tiny", [*FAST, "policy.size=3", "radio.fading=none"])
    options: dict[str, Any] = {"classes": 3, "out": tmp_path / "run"}
    ScheduledFedAvg(scenario, **options).start(grid, model(), num_rounds=4)
    assert fs.verify(tmp_path / "run").ok
    return tmp_path / "run"


def change(run: Path, round: int, device: int, **values: Any) -> None:
    path = run / "devices.parquet"
    table = pl.read_parquet(path)
    here = (pl.col("round") == round) & (pl.col("device") == device)
    for column, value in values.items():
        new = pl.lit(value, dtype=table.schema[column])
        table = table.with_columns(pl.when(here).then(new).otherwise(pl.col(column)).alias(column))
    table.write_parquet(path)
    seal(run)


@pytest.mark.parametrize(
    ("round", "device", "values", "where"),
    [
        (2, PLAIN, {"available": False}, "feasible"),
        (2, PLAIN, {"beta": 1.25}, "beta"),
        (2, PLAIN, {"gain": 0.0}, "gain"),
        (1, PLAIN, {"priority": 2.0}, "importance"),
        (2, PLAIN, {"priority": -1.0}, "priority"),
        (2, PLAIN, {"e_cmp_j": 0.125}, "e_cmp_j"),
        (2, METERED, {"t_cmp_s_measured": False}, "t_cmp_s"),
        (2, METERED, {"e_cmp_j_measured": False}, "e_cmp_j"),
        (2, METERED, {"t_tr_s": 0.125}, "t_tr_s"),
        (2, METERED, {"e_cmp_j": -0.25}, "e_cmp_j"),
        (2, METERED, {"e_cmp_j": 0.5}, "queue_next_j"),
        (2, METERED, {"t_cmp_s": 4.5}, "t_tr_s"),
        (2, SILENT, {"gain": 1.0}, "transmitted"),
        (2, SILENT, {"transmitted": True}, "gain"),
        (3, ABSENT, {"report_age": 0, "beta": 1.25, "gain": 1.25, "available": True, "stored": 1}, "stored"),
    ],
)
def test_a_changed_value_is_found(run: Path, round: int, device: int, values: dict[str, Any], where: str) -> None:
    change(run, round, device, **values)
    report = fs.verify(run)
    assert not report.ok
    assert report.disagreement is not None
    assert (report.disagreement.round, report.disagreement.field) == (round, where)


def test_a_simulation_may_not_claim_what_a_deployment_may(run: Path) -> None:
    seal(run, engine={"name": "none"})
    assert not fs.verify(run).ok


def test_the_mean_gain_may_become_known_once(run: Path) -> None:
    ages = pl.read_parquet(run / "devices.parquet").filter(pl.col("device") == ABSENT)["report_age"]
    assert np.array_equal(ages, [-1] * 4)
    change(run, 4, ABSENT, report_age=0, beta=1.25, gain=1.25)
    assert fs.verify(run).ok
