"""Priorities in a deployment: the scenario's, the operator's table of names, and what a node may say of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deployed_clients import FAST, at_node, client, growing, played, rows, told

import feelstream as fs
from feelstream.flower import Device, LocalGrid
from feelstream.flower.device import DeviceError

NAMES = ["north", "south", "east", "west"]


def federation(**stated: float) -> LocalGrid:
    """Four alike devices, some of which state a priority in their node-config."""
    grid = LocalGrid()
    for node, name in enumerate(NAMES, start=1):
        config = {"device-name": name} | ({"priority": stated[name]} if name in stated else {})
        grid.add(node, config, client(growing))
    return grid


def priorities(out: Path, grid: LocalGrid, *changes: str, rounds: int = 2, **options: Any) -> list[list[float]]:
    """By round, as the trace has them; the run verifies, and importance is weighed with them."""
    scenario = fs.preset("tiny", [*FAST, "policy.size=2", *changes])
    devices = played(scenario, grid, rounds, out, **{"names": NAMES, **options})
    plain = devices["amount"] + devices["dissimilarity"]
    assert (devices["importance"] / devices["priority"]).to_list() == pytest.approx(plain.to_list())
    return [each["priority"].to_list() for each in devices.partition_by("round", maintain_order=True)]


def test_everyone_has_1_unless_something_is_said(tmp_path: Path) -> None:
    assert priorities(tmp_path / "run", federation()) == [[1.0] * 4] * 2


def test_a_node_may_only_lower_its_own_unless_the_server_allows_more(tmp_path: Path) -> None:
    grid = federation(north=8, south=0.25)
    assert priorities(tmp_path / "wary", grid) == [[1.0, 0.25, 1.0, 1.0]] * 2
    assert priorities(tmp_path / "open", grid, max_priority=3.0) == [[3.0, 0.25, 1.0, 1.0]] * 2


def test_the_table_of_names_counts_before_the_node(tmp_path: Path) -> None:
    names = {"north": {"priority": 5}, "south": 2, "east": {"node": 3, "priority": 0.5}, "west": 0}
    grid = federation(north=0.1, south=0.5, east=0.1)
    assert priorities(tmp_path / "run", grid, names=names) == [[5.0, 0.5, 0.5, 1.0]] * 2


def test_what_is_stated_comes_on_top_of_the_scenario(tmp_path: Path) -> None:
    classes = "devices.classes=[{share=0.5, priority=2.0}, {share=0.5, priority=0.5}]"
    assert priorities(tmp_path / "run", federation(north=0.5), classes) == [[1.0, 2.0, 0.5, 0.5]] * 2


def test_who_comes_first_is_scheduled_and_a_restart_remembers(tmp_path: Path) -> None:
    grid = federation(west=900)
    first = priorities(tmp_path / "run", grid, max_priority=1000)
    grid.answers[4] = lambda context, message: None  # it is not asked again, and could not say it again
    assert priorities(tmp_path / "run", grid, max_priority=1000, rounds=3) == [*first, first[0]]
    scheduled = rows(tmp_path / "run", 3)["scheduled"].to_list()
    assert scheduled == [True, False, False]  # at once, and then it has nothing fresh, which no priority replaces


def test_an_app_may_state_it_and_nonsense_is_refused() -> None:
    context = at_node(priority="high")
    assert Device(context, told(), [1, 0, 0], priority=2).report().priority == 2
    with pytest.raises(DeviceError, match="priority must be a number, not 'high'"):
        Device(context, told(), [1, 0, 0])
