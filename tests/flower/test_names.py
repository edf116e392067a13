"""Which names a run admits, and which node may use one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deployed_clients import CLASSES, FAST, K, client, growing, model
from flwr.app import ConfigRecord

import feelstream as fs
from feelstream.errors import FeelstreamError
from feelstream.flower import ReportError, ScheduledFedAvg
from feelstream.flower.directory import Directory
from feelstream.flower.local_grid import LocalGrid


def test_a_pattern_admits_whoever_fits_it_until_all_places_are_taken(tmp_path: Path) -> None:
    grid = LocalGrid()
    for node in range(1, 7):
        grid.add(node, {"device-name": f"sensor-{node}" if node != 2 else "intruder"}, client(growing))
    options: dict[str, Any] = {"classes": CLASSES, "names": "sensor-*", "out": tmp_path / "run"}
    strategy = ScheduledFedAvg(fs.preset("tiny", [*FAST, "policy.size=4"]), **options)
    strategy.start(grid, model(), num_rounds=2)
    assert strategy.deployment.directory.names == ["sensor-1", "sensor-3", "sensor-4", "sensor-5"]
    assert fs.verify(tmp_path / "run").ok
    again = ScheduledFedAvg(fs.preset("tiny", [*FAST, "policy.size=4"]), **options)
    again.start(grid, model(), num_rounds=3)  # the places are kept over a restart
    assert again.deployment.directory.names == strategy.deployment.directory.names


def test_a_file_may_be_given_more_names_while_the_run_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "devices.toml"
    file.write_text('north = 7\n"south pump" = 0\n')
    directory = Directory(file, K)
    directory.update([7, 8])
    assert directory.introduce(7, "north") == 0
    with pytest.raises(ReportError, match="no device 'east'"):
        directory.introduce(9, "east")
    file.write_text('north = 7\n"south pump" = 0\neast = 0\n')
    os.utime(file, ns=(1, 1))  # the clock of a file system may be too coarse to notice
    directory.update([7, 8, 9])
    assert directory.introduce(9, "east") == 2


@pytest.mark.parametrize(
    ("written", "why"),
    [("north = 7\n", "no longer lists 'south pump'"), ("north = ", "cannot be read"), (None, "cannot be read")],
    ids=["shorter", "half written", "gone"],
)
def test_what_was_read_of_a_file_stands_while_it_is_written_again(
    written: str | None, why: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "devices.toml"
    file.write_text('north = 7\n"south pump" = 0\n')
    directory = Directory(file, K)
    if written is None:
        file.unlink()
    else:
        file.write_text(written)
        os.utime(file, ns=(2, 2))
    assert [directory.update([7]) for _ in range(3)] == [[7]] * 3
    assert [why in line for line in caplog.messages] == [True]  # once
    assert directory.introduce(7, "north") == 0
    file.write_text('north = 7\n"south pump" = 0\neast = 0\n')
    os.utime(file, ns=(3, 3))
    directory.update([7, 8])
    assert directory.introduce(8, "east") == 2


def test_a_name_bound_to_a_node_is_nobody_elses() -> None:
    directory = Directory({"north": 7, "south": 0}, 2)
    directory.update([1, 7])
    with pytest.raises(ReportError, match="bound to another node"):
        directory.introduce(1, "north")
    assert directory.introduce(1, "south") == 1
    assert directory.introduce(7, "north") == 0
    np.testing.assert_array_equal(directory.connected(), [True, True])


def test_the_first_node_may_keep_a_name_for_the_run() -> None:
    loose, bound = (Directory(["north"], 1, bind_names=bind) for bind in (False, True))
    for directory in (loose, bound):
        directory.update([1, 2])
        directory.introduce(1, "north")
        directory.update([2])  # the first one is gone
    assert loose.introduce(2, "north") == 0
    with pytest.raises(ReportError, match="used it first"):
        bound.introduce(2, "north")


@pytest.mark.parametrize("bind_names", [False, True])
def test_a_name_is_the_first_nodes_where_names_are_bound(bind_names: bool) -> None:
    grid = LocalGrid()
    grid.add(1, {"partition-id": 0}, client(growing))
    strategy = ScheduledFedAvg(
        fs.preset("tiny", FAST),
        classes=CLASSES,
        wait_s=0.0,
        max_report_age=0,
        give_up_after=None,
        bind_names=bind_names,
    )
    list(strategy.configure_train(1, model(), ConfigRecord(), grid))
    grid.answers[1] = lambda context, message: None  # misses one query
    grid.add(2, {"partition-id": 0}, client(growing))
    list(strategy.configure_train(2, model(), ConfigRecord(), grid))
    assert strategy.deployment.directory.device_of.get(2) == (None if bind_names else 0)


@pytest.mark.parametrize(
    ("options", "warns"),
    [
        ({}, True),
        ({"bind_names": False}, False),
        ({"names": {"0": 1, "1": 2, "2": 3, "3": 4}}, False),
        ({"names": {"0": 1, "1": 2, "2": 3, "3": 0}}, True),
    ],
    ids=["not chosen", "chosen", "all have a node id", "one has none"],
)
def test_who_has_not_chosen_whether_names_are_bound_is_told(
    options: dict[str, Any], warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    grid = LocalGrid()
    grid.add(1, {"partition-id": 0}, client(growing))
    ScheduledFedAvg(fs.preset("tiny", FAST), classes=CLASSES, **options).start(grid, model(), num_rounds=1)
    assert ("bind_names is not set" in caplog.text) == warns


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ({"north": -1, "south": 0}, "must be given a node id"),
        ({"north": True, "south": 0}, "must be given a node id"),
        ({"north": {"node": -1}, "south": 0}, "must be given a node id"),
        ({"north": {"priority": 0}, "south": 0}, "must be above 0 and at most 1000"),
        ({"north": {"rank": 1}, "south": 0}, "may state node and priority, not 'rank'"),
        ({"a": 1, "b": 2, "c": 3}, "lists 3 names"),
        ({"a": 1}, "must list system.devices = 2 names"),
        (["a", "a"], "all be different"),
        (Path("/nowhere/devices.toml"), "cannot be read"),
    ],
)
def test_bad_names_are_refused(names: Any, reason: str) -> None:
    with pytest.raises(FeelstreamError, match=reason):
        Directory(names, 2)
