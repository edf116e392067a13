"""The tables: their columns, their types, where they are empty, and that time leaves no trace in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from builders import small

import feelstream as fs
from feelstream.columns import DEVICE_COLUMNS, columns_of, spent_j
from feelstream.run import simulate_in, trace


@pytest.fixture(scope="module")
def run() -> fs.Run:
    return fs.simulate(small("system.round_s=0.6", "policy.size=3"), 2)


def test_columns_and_types(run: fs.Run) -> None:
    assert run.devices is not None
    assert dict(run.rounds.schema) == trace.ROUNDS
    assert dict(run.devices.schema) == {name: column.kind for name, column in columns_of(DEVICE_COLUMNS, ()).items()}


def test_one_row_per_device_and_round_in_order(run: fs.Run) -> None:
    assert run.devices is not None
    assert run.devices["round"].to_list() == [t for t in range(1, 9) for _ in range(6)]
    assert run.devices["device"].to_list() == list(range(6)) * 8
    assert run.rounds["sim_time_s"].to_numpy() == pytest.approx(0.6 * np.arange(1, 9))


def test_the_rounds_are_the_sums_of_the_devices(run: fs.Run) -> None:
    assert run.devices is not None
    for name in ("feasible", "scheduled", "transmitted"):
        sums = run.devices.group_by("round", maintain_order=True).agg(pl.col(name).sum())[name]
        assert sums.to_list() == run.rounds[name].to_list()
    assert 0 < run.rounds["feasible"].sum() < 48
    labels = run.devices["fresh_labels"].list.sum()
    assert labels.to_list() == run.devices["fresh"].to_list()


@pytest.mark.parametrize(
    ("overrides", "beside"),
    [
        (["policy.name=random"], None),
        (["policy.name=update_norm"], "e_report_j"),
        (["costs.download_bits=1e6", "costs.receive_power_w=0.3"], "e_down_j"),
    ],
    ids=["neither", "reports", "downloads"],
)
def test_what_a_device_spent_is_what_its_queue_grows_by(overrides: list[str], beside: str | None) -> None:
    """Q' = max(Q + E − E_avg, 0), to the last bit."""
    devices = fs.simulate(fs.preset("tiny", overrides), 3).devices
    assert devices is not None
    assert beside is None or (devices[beside] > 0).any()
    grown = devices["queue_j"].to_numpy() + spent_j(devices).to_numpy() - 0.08  # E_avg of tiny
    assert (grown > 0).any()
    np.testing.assert_array_equal(np.maximum(grown, 0.0), devices["queue_next_j"].to_numpy())
    assert spent_j(devices.row(1, named=True)) == spent_j(devices)[1]


def test_what_has_no_meaning_is_null(run: fs.Run) -> None:
    assert run.devices is not None
    for name in ("amount", "dissimilarity", "importance", "score"):
        assert (run.devices[name].is_null() == ~run.devices["feasible"]).all()
    assert run.rounds["accuracy"].null_count() == run.rounds["loss"].null_count() == 8
    random = fs.simulate(small("policy.name=random")).devices
    assert random is not None
    assert random["score"].null_count() == len(random)
    assert random["importance"].null_count() < len(random)


def test_two_runs_of_one_seed_leave_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        simulate_in(tmp_path / name, small(), 5)
    for table in ("rounds.parquet", "devices.parquet"):
        assert (tmp_path / "one" / table).read_bytes() == (tmp_path / "two" / table).read_bytes()
    assert not fs.simulate(small(), 6).rounds.equals(fs.read(tmp_path / "one").rounds)


def test_what_is_used_is_told_as_it_was_before_the_round(run: fs.Run) -> None:
    assert run.devices is not None
    senders: set[int] = set()
    for _, now in run.devices.group_by("round", maintain_order=True):
        used = now.filter(pl.col("used_labels").list.sum() > 0)["device"]
        assert set(used) == senders
        senders |= set(now.filter(pl.col("transmitted"))["device"])
    assert len(senders) > 1
