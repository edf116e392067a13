"""Devices that report and never deliver: they do not capture the schedule, and the others train."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from deployed_clients import CLASSES, FAST, client, grid_of, growing, model, played, round_of, silent_in_training
from flwr.app import Context, Message

import feelstream as fs
from feelstream.arrays import flatten
from feelstream.flower import ScheduledFedAvg
from feelstream.flower.local_grid import Answer, LocalGrid

BAD = silent_in_training(client(growing))


def scenario(policy: str, devices: int = 10, *overrides: str) -> fs.Scenario:
    changes = [f"system.devices={devices}", f"policy.name={policy}", "policy.size=2", "system.energy_budget_j=0.3"]
    return fs.preset("tiny", [FAST[0], *FAST[3:5], "radio.fading=none", *changes, *overrides])


def started(grid: LocalGrid, chosen: fs.Scenario, rounds: int, **options: Any) -> Any:
    strategy = ScheduledFedAvg(chosen, classes=CLASSES, wait_s=0.0, **options)
    return strategy.start(grid, model(), num_rounds=rounds)


# The joint one plans for a second, so it has fewer seeds here.
@pytest.mark.parametrize(("policy", "seeds"), [("lyapunov", 5), ("importance_greedy", 5), ("lyapunov_joint", 1)])
def test_two_bad_devices_of_ten_end_nothing(policy: str, seeds: int) -> None:
    for seed in range(seeds):
        answers = [client(growing)] * 10
        answers[seed], answers[seed + 4] = BAD, BAD
        result = started(grid_of(*answers), scenario(policy), 10, seed=seed, give_up_after=2)
        assert len(result.train_metrics_clientapp) > 5  # rounds in which anyone trained


def test_without_what_is_learned_they_would(tmp_path: Path) -> None:
    """The reason for it all: what is never used stays fresh, so both of them are chosen again and again."""
    chosen = scenario("importance_greedy", 10, "system.reliability=ignored")
    started(grid_of(BAD, BAD, *[client(growing)] * 8), chosen, 15, out=tmp_path / "run", give_up_after=None)
    assert fs.read(tmp_path / "run").rounds["transmitted"].sum() <= 15


def test_a_device_that_is_repaired_is_found_by_a_probe(tmp_path: Path) -> None:
    def repaired(context: Context, message: Message) -> Message | None:
        round = round_of(message)
        return (BAD if round <= 10 else client(growing))(context, message)

    grid = grid_of(repaired, *[client(growing)] * 3)
    mine = played(scenario("importance_greedy", 4), grid, 30, tmp_path / "run").filter(pl.col("device") == 0)
    assert not mine["transmitted"][:10].any()
    assert mine["transmitted"][-10:].any()
    learned = mine["reliability"].to_list()
    assert min(learned) < 0.5 < learned[-1]


@pytest.mark.slow
def test_many_random_failures_end_nothing_and_leave_little_behind() -> None:
    """A thousand rounds in which three replies of ten do not come: what the server keeps does not grow."""
    draw, kept = np.random.default_rng(5), list[int]()

    def unsteady(answer: Answer) -> Answer:
        return lambda context, message: (BAD if draw.random() < 0.3 else answer)(context, message)

    class Watching(fs.Callback):
        def on_round(self, row: Mapping[str, Any]) -> None:
            grid.sent.clear()  # the grid's own memory, which no real one has
            if row["round"] in (200, 1000):
                kept.append(sum(array.nbytes for array in flatten(strategy.deployment.snapshot()).values()))
                tables = (strategy.deployment.calls.unanswered, strategy.deployment.patience.failed)
                assert all(len(table) <= 4 * 4 for table in tables)

    chosen = scenario("importance_greedy", 4)
    strategy = ScheduledFedAvg(chosen, classes=CLASSES, wait_s=0.0, give_up_after=5, callbacks=[Watching()])
    grid = grid_of(*[unsteady(client(growing))] * 4)
    logging.disable(logging.CRITICAL)
    try:
        result = strategy.start(grid, model(), num_rounds=1000)
    finally:
        logging.disable(logging.NOTSET)
    assert len(result.train_metrics_clientapp) > 900  # rounds in which anyone trained
    assert kept[1] <= kept[0] + 1000  # reasons of failures differ in length
