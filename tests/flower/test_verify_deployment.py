"""The re-check knows what a deployment may do that a simulation may not, and nothing more than that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from deployed_clients import FAST, client, grid_of, growing, played, silent_in_training
from sealing import seal

import feelstream as fs
from feelstream.columns import DEVICE_COLUMNS, columns_of
from feelstream.report import results_in
from feelstream.report.html.page import origin

METERED, SILENT, PLAIN, ABSENT = range(4)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Four rounds of a metered device, one that never replies, an ordinary one, and one that never comes."""
    measured = {"t_cmp_s": 1.5, "e_cmp_j": 0.25}
    grid = grid_of(client(growing, after=measured), silent_in_training(client(growing)), client(growing))
    scenario = fs.preset("tiny", [*FAST, "policy.size=3", "radio.fading=none"])
    played(scenario, grid, 4, tmp_path / "run")
    return tmp_path / "run"


def test_a_gain_that_a_device_found_may_differ_from_its_mean(tmp_path: Path) -> None:
    """The scenario has no fading, and says nothing of what a real channel does."""
    grid = grid_of(client(growing, after={"gain": 0.5}), client(growing))
    scenario = fs.preset("tiny", [*FAST, "policy.size=2", "radio.fading=none"])
    assert 0.5 in played(scenario, grid, 2, tmp_path / "run").filter("transmitted")["gain"]


def test_the_model_is_the_apps(run: Path) -> None:
    with pytest.raises(fs.FeelstreamError, match=r"the model of a deployed app.*: 2 arrays"):
        fs.read(run).model()


def test_a_report_can_be_made_of_it(run: Path) -> None:
    assert origin(results_in(run)).facts["Data"] == "the devices' own"


def test_the_columns_are_those_of_a_deployment(run: Path) -> None:
    facts = ("deployed", "fallible", "plans_measured")
    assert set(fs.read(run).manifest.facts) == set(facts)
    found = pl.read_parquet(run / "devices.parquet").schema
    assert dict(found) == {name: column.kind for name, column in columns_of(DEVICE_COLUMNS, facts).items()}


def change(run: Path, round: int, device: int, **values: Any) -> None:
    path = run / "devices.parquet"
    table = pl.read_parquet(path)
    here = (pl.col("round") == round) & (pl.col("device") == device)
    for column, value in values.items():
        new = pl.lit(value, dtype=table.schema[column])
        table = table.with_columns(pl.when(here).then(new).otherwise(pl.col(column)).alias(column))
    table.write_parquet(path)
    seal(run)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("round", "device", "values", "where"),
    [
        (2, PLAIN, {"available": False}, "feasible"),
        (2, PLAIN, {"beta": 1.25}, "beta"),
        (2, PLAIN, {"gain": 0.0}, "transmitted"),
        (1, PLAIN, {"priority": 2.0}, "importance"),
        (2, PLAIN, {"priority": -1.0}, "priority"),
        (2, PLAIN, {"e_cmp_j": 0.125}, "e_cmp_j"),
        (1, METERED, {"t_cmp_s_measured": False}, "t_cmp_s"),
        (2, METERED, {"e_cmp_j_measured": False}, "e_cmp_read_j"),
        (2, METERED, {"t_tr_s": 0.125}, "t_tr_s"),
        (2, METERED, {"e_cmp_j": -0.25}, "e_cmp_j"),
        (2, METERED, {"e_cmp_j": 0.5}, "e_cmp_j"),  # more than was read
        (2, METERED, {"e_cmp_j": 0.125}, "queue_next_j"),
        (2, METERED, {"t_cmp_planned_s": 1.0}, "t_cmp_planned_s"),
        (3, METERED, {"e_cmp_planned_j": 0.125}, "e_cmp_planned_j"),
        (2, METERED, {"t_cmp_prior_s": 1.0}, "t_cmp_prior_s"),
        (2, METERED, {"e_cmp_prior_j": 1.0}, "e_cmp_prior_j"),
        (2, METERED, {"t_cmp_spread": 0.5}, "t_cmp_spread"),
        (2, METERED, {"trained_hz": 2e9}, "trained_hz"),
        (2, METERED, {"t_cmp_s": 4.5}, "t_tr_s"),
        (1, SILENT, {"gain": 1.0}, "transmitted"),
        (1, SILENT, {"transmitted": True}, "transmitted"),
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
    facts = fs.read(run).manifest.facts
    seal(run, engine={"name": "none"})
    with pytest.raises(fs.FeelstreamError, match="by its settings 'fallible' does not belong to facts"):
        fs.verify(run)
    seal(run, facts=[fact for fact in facts if fact != "fallible"])
    with pytest.raises(fs.FeelstreamError, match="by its settings 'deployed' does not belong to facts"):
        fs.verify(run)
    seal(run, facts=[])
    assert not fs.verify(run).ok


def test_the_mean_gain_may_become_known_once(run: Path) -> None:
    ages = pl.read_parquet(run / "devices.parquet").filter(pl.col("device") == ABSENT)["report_age"]
    assert np.array_equal(ages, [-1] * 4)
    change(run, 4, ABSENT, report_age=0, beta=1.25, gain=1.25)
    assert fs.verify(run).ok


@pytest.mark.parametrize("policy", ["lyapunov_joint", "ocean"])
@pytest.mark.parametrize("took_s", [0.0, 0.05, 3.9, 3.9999999, 4.0, 7.0])  # the model says between 0.3 s and 4 s
def test_who_shares_out_the_rest_of_a_round_goes_by_the_measured_time(
    policy: str, took_s: float, tmp_path: Path
) -> None:
    """Sending takes what the device's own clock leaves, so a time other than the model's is no reason to be dropped."""
    grid = grid_of(
        client(growing, after={"t_cmp_s": took_s}), client(growing, after={"e_cmp_j": 0.25}), client(growing)
    )
    settings = [*FAST, f"policy.name={policy}", "policy.V=0.5", "policy.size=3", "radio.fading=none"]
    scenario = fs.preset("tiny", settings)
    first = played(scenario, grid, 3, tmp_path / "run").filter(pl.col("scheduled"), device=0)
    assert len(first)
    assert first["t_cmp_s"].to_list() == [took_s] * len(first)
    assert first["transmitted"].to_list() == [took_s < 3.99] * len(first)  # in 0.1 µs nobody can send anything
    if took_s < 3.99:
        assert (first["t_tr_s"] - (4.0 - took_s)).abs().max() < 1e-9  # pyright: ignore[reportOperatorIssue]
    if policy == "lyapunov_joint":  # without a meter: the energy of the frequency that the time amounts to
        cycles, slowest_hz = float(scenario.cpu.cycles), 1e9
        amounts_to_hz = np.clip(cycles / max(took_s, 1e-9), slowest_hz, 1.2e9)
        assert first["e_cmp_j"][0] == pytest.approx(scenario.cpu.power_coefficient * cycles * amounts_to_hz**2)
    change(tmp_path / "run", int(first["round"][0]), 0, e_cmp_j=1e9)
    assert not fs.verify(tmp_path / "run").ok
