"""Change one stored value, and the re-check must name its round, its device and a fitting field."""

from __future__ import annotations

import json
import math
import random
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from slow_simulator import DEVICE_TYPES, ROUND_TYPES, Stored, scenario, simulate

from feelstream.verification import Disagreement, verify


@cache
def run_of(cardinality: str = "exact", name: str = "lyapunov") -> Stored:
    """A run whose seventh round of ten has both transmitters and devices left out."""
    policy: dict[str, Any] = {"name": name, "size": 3}
    if name == "lyapunov":
        policy |= {"V": 0.05, "cardinality": cardinality, "metric": "combined"}
    budget = 0.1 if cardinality == "free" else 0.02
    return simulate(scenario(system__rounds=10, system__energy_budget_j=budget, policy=policy), seed=3)


def changed(frame: pl.DataFrame, row: int, column: str, value: Any) -> pl.DataFrame:
    values = frame[column].to_list()
    values[row] = value
    return frame.with_columns(pl.Series(column, values, frame.schema[column]))


def other(value: Any) -> Any:
    """Another value of the same type, as near as the type allows."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return [value[0] + 1, *value[1:]]
    return value * (1 + 1e-6)


def verify_changed(stored: Stored, directory: Path, file: str, row: int, column: str, value: Any) -> Disagreement:
    frames = {"rounds": stored.rounds, "devices": stored.devices}
    frames[file] = changed(frames[file], row, column, value)
    report = verify(Stored(stored.run, **frames).save(directory))
    assert report.disagreement is not None, f"{file} row {row}: {column} = {value!r} went unseen"
    assert not report.ok
    return report.disagreement


def rows_where(stored: Stored, condition: pl.Expr) -> list[int]:
    rows = stored.devices.with_row_index().filter(condition)["index"].to_list()
    assert rows, "the run has no such device"
    return rows


# What a change of the column may be reported as, where that is not the column itself.
REPORTED_AS: dict[str, set[str]] = {
    "f_hz": {"score", "t_cmp_s"},
    "gain": {"t_tr_s"},
    "fresh_labels": {"fresh"},
}


@pytest.mark.parametrize("column", DEVICE_TYPES)
@pytest.mark.parametrize("cardinality", ["exact", "cap", "free"])
def test_a_changed_device_value_is_named(column: str, cardinality: str, tmp_path: Path) -> None:
    stored = run_of(cardinality)
    busy = pl.col("transmitted") & (pl.col("round") > 1) & (pl.col("queue_j") > 0) & (pl.col("dissimilarity") > 0)
    row = rows_where(stored, busy & (pl.col("queue_next_j") > 0))[0]
    before = stored.devices.row(row, named=True)
    found = verify_changed(stored, tmp_path, "devices", row, column, other(before[column]))
    assert (found.round, found.device) == (before["round"], before["device"])
    assert found.field in REPORTED_AS.get(column, {column})
    assert found.rule


@pytest.mark.parametrize("column", sorted(set(ROUND_TYPES) - {"accuracy", "loss"}))
@pytest.mark.parametrize(
    ("cardinality", "name"),
    [("exact", "lyapunov"), ("cap", "lyapunov"), ("free", "lyapunov"), ("", "random")],
)
def test_a_changed_round_value_is_named(column: str, cardinality: str, name: str, tmp_path: Path) -> None:
    stored = run_of(cardinality, name)
    busy = stored.rounds.with_row_index().filter((pl.col("transmitted") > 0) & (pl.col("queue_mean_j") > 0))
    before = busy.row(-1, named=True)
    found = verify_changed(stored, tmp_path, "rounds", before["index"], column, other(before[column]))
    assert (found.round, found.device, found.field) == (before["round"], None, column)


DERIVED = sorted(set(DEVICE_TYPES) - {"f_hz", "gain"})


@pytest.mark.parametrize("column", DERIVED)
def test_a_change_is_seen_wherever_it_happens(column: str, tmp_path: Path) -> None:
    """Rows at random: idle, dropped, infeasible and first-round devices too."""
    stored = run_of("cap")
    rng = random.Random(column)
    for row in rng.sample(range(stored.devices.height), 8):
        value = stored.devices[row, column]
        value = value.to_list() if isinstance(value, pl.Series) else value
        # Nothing near zero or null is lost by a factor; put something there instead.
        replacement = 1e-3 if value in (0.0, None) and not isinstance(value, bool | int) else other(value)
        found = verify_changed(stored, tmp_path, "devices", row, column, replacement)
        # A frame can only be wrong from this round on, or show itself when the next one begins.
        assert found.round - stored.devices[row, "round"] in (0, 1)
        if found.device is not None and column not in ("fresh", "fresh_labels", "feasible", "used_labels"):
            assert found.device == stored.devices[row, "device"] or column in ("scheduled", "transmitted")


NO_NUMBER = [(c, x) for c, kind in DEVICE_TYPES.items() for x in (math.nan, math.inf) if kind == pl.Float64]
MISSING = [c for c, kind in DEVICE_TYPES.items() if kind == pl.Float64] + ["feasible", "scheduled", "stored", "device"]


@pytest.mark.parametrize(("column", "value"), [*NO_NUMBER, *((column, None) for column in MISSING)])
def test_nothing_is_missing_or_infinite(column: str, value: float | None, tmp_path: Path) -> None:
    stored = run_of()
    row = rows_where(stored, pl.col("transmitted") & (pl.col("round") > 2))[0]
    found = verify_changed(stored, tmp_path, "devices", row, column, value)
    assert (found.round, found.device, found.field) == (*stored.devices.row(row)[:2], column)
    assert str(found.stored) == str(value)


def test_the_first_of_two_disagreements_is_reported(tmp_path: Path) -> None:
    stored = run_of()
    frame = changed(stored.devices, 47, "queue_next_j", 9.0)
    frame = changed(frame, 23, "queue_next_j", 9.0)
    rounds = changed(stored.rounds, 4, "sim_time_s", 0.0)
    found = verify(Stored(stored.run, rounds, frame).save(tmp_path)).disagreement
    assert found is not None
    assert (found.round, found.device, found.field, found.stored) == (5, 3, "queue_next_j", 9.0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("system.energy_budget_j", 0.0201),
        ("cpu.cycles", 1.001e8),
        ("radio.bandwidth_hz", 1.001e6),
        ("radio.rate_discount", 0.95),
        ("radio.link_margin", 30.0),
        ("radio.received_power_dbm", 27.9),
        ("policy.V", 0.051),
        ("policy.size", 2),
        ("policy.metric", "amount"),
        ("policy.cardinality", "cap"),
        ("learning.eval_every", 2),
        ("learning.engine", "none"),
        ("system.round_s", 1.4),
    ],
)
def test_a_changed_setting_is_seen(field: str, value: Any, tmp_path: Path) -> None:
    stored = run_of()
    run = json.loads(json.dumps(stored.run))
    section, name = field.split(".")
    run["scenario"][section][name] = value
    assert not verify(Stored(run, stored.rounds, stored.devices).save(tmp_path)).ok


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("sim_time_s", 1.0),
        ("planned", 4),
        ("feasible", 6),
        ("scheduled", 5),
        ("transmitted", 4),
        ("energy_mean_j", -1e-9),
        ("energy_mean_cum_j", 0.1),
        ("queue_mean_j", 1.0),
        ("queue_max_j", 50.0),
        ("round", 9),
    ],
)
def test_rounds_alone_still_show_much(column: str, value: Any, tmp_path: Path) -> None:
    stored = run_of()
    run = json.loads(json.dumps(stored.run))
    run["scenario"]["trace"]["level"] = "rounds"
    found = verify_changed(Stored(run, stored.rounds, stored.devices), tmp_path, "rounds", 4, column, value)
    assert (found.round, found.field) == (5, column)
