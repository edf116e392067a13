"""Whatever a legal scenario file says: the run is sound, verifies, and survives files and interruptions."""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from builders import devices_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from legal import CLASSES, tables
from stopped import stop_in

import feelstream as fs
from feelstream.errors import ScenarioError
from feelstream.run import simulate_in
from feelstream.scenario.files import from_dict

# Eight devices at most are drawn; a trace for fewer would be refused, so all of it is for device 0.
TRACE_ROWS = "time,device,sample\n0.0,0,3\n1.1,0,4\n1.2,0,4\n2.5,0,9\n"


@pytest.fixture(scope="session")
def trace_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("arrivals") / "trace.csv"
    path.write_text(TRACE_ROWS)
    sample = np.arange(120)
    x, y = np.sin(sample)[:, None], sample % CLASSES
    facts = {"owner_train": sample % 8, "time_train": sample // 8 * 1.25}
    np.savez(path.with_name("recorded.npz"), x_train=x, y_train=y, x_test=x, y_test=y, **facts)
    return str(path)


def legal(data: st.DataObject, trace_file: str) -> fs.Scenario:
    try:
        return from_dict(data.draw(tables(trace_file)))
    except ScenarioError:
        assume(False)
        raise


def play(scenario: fs.Scenario, seed: int) -> fs.Run:
    """A digits partition may need more samples than there are, which only shows when the data are loaded."""
    try:
        return fs.simulate(scenario, seed)
    except ScenarioError:
        assume(False)
        raise


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data(), st.integers(0, 3))
def test_a_run_is_sound_and_verifies(trace_file: str, data: st.DataObject, seed: int) -> None:
    run = play(legal(data, trace_file), seed)
    for table in (run.rounds, devices_of(run)):
        for column in table.select(pl.col(pl.Float64)).iter_columns():
            assert column.drop_nulls().is_finite().all(), column.name
    with tempfile.TemporaryDirectory() as directory:
        run.save(directory)
        report = fs.verify(directory)
        assert report.ok, str(report)
        back = fs.read(directory)
    assert back.rounds.equals(run.rounds)
    assert devices_of(back).equals(devices_of(run))
    assert (back.scenario, back.seed) == (run.scenario, run.seed)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data())
def test_toml_round_trip_loses_nothing(trace_file: str, data: st.DataObject) -> None:
    scenario = legal(data, trace_file)
    text = fs.to_toml(scenario, "a heading")
    assert from_dict(tomllib.loads(text)) == scenario
    assert fs.to_toml(from_dict(tomllib.loads(text)), "a heading") == text


@settings(max_examples=20)
@given(st.data(), st.integers(0, 3))
def test_policies_with_one_seed_meet_the_same_world(trace_file: str, data: st.DataObject, seed: int) -> None:
    table: dict[str, Any] = data.draw(tables(trace_file))
    # Arrivals are the world's; what a device still holds is not, once a buffer deletes what was used.
    table["data"] |= {"fresh": "per_round", "buffer": {"kind": "keep"}}
    try:
        one, two = (from_dict(table | {"policy": {"name": name}}, ["policy.size=1"]) for name in ("lyapunov", "random"))
    except ScenarioError:
        assume(False)
        raise
    world = ["round", "device", "f_hz", "beta", "gain", "stored", "fresh", "fresh_labels"]
    first, second = (devices_of(play(each, seed)).select(world) for each in (one, two))
    assert first.equals(second)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.data(), st.integers(0, 3), st.integers(1, 6))
def test_a_run_stopped_and_started_again_is_the_same(
    trace_file: str, data: st.DataObject, seed: int, stop: int
) -> None:
    scenario = legal(data, trace_file)
    left_alone = play(scenario, seed)

    with tempfile.TemporaryDirectory() as directory:
        if stop <= scenario.system.rounds:
            stop_in(Path(directory), scenario, stop, seed)
        run = simulate_in(directory, scenario, seed, checkpoint_s=0)
        files = {path.name for path in Path(directory).iterdir()} - {"constants.parquet"}  # where devices differ
        assert files == {".lock", "devices.parquet", "rounds.parquet", "run.json"}
    assert run.rounds.equals(left_alone.rounds)
    assert devices_of(run).equals(devices_of(left_alone))
