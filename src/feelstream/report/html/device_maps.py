"""Device × round maps of single runs, packed small enough to put into a page."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from feelstream.columns import spent_j
from feelstream.display.quantities import QUANTITIES, short
from feelstream.run import Run

# Cells of all maps together, and of one; beyond, devices are sampled and rounds are put together.
MOST_CELLS = 600_000
MOST_DEVICES = 120
MOST_ROUNDS = 400
FEWEST_CELLS = 2_400

INELIGIBLE, IDLE, DROPPED, SENT = range(4)
COMPUTING = {"e_cmp_j", "e_report_j"}  # nearly all of a report is; what else is spent is sending


def seeds_that_fit(seeds: Sequence[int], arms: int, devices: int, rounds: int) -> tuple[int, ...]:
    """The first seeds whose maps stay within the page's size; at least one."""
    cells = min(devices, MOST_DEVICES) * min(rounds, MOST_ROUNDS)
    return tuple(seeds[: max(1, MOST_CELLS // max(1, arms * cells))])


def device_map(run: Run, arms: int) -> dict[str, Any] | None:
    """Who was scheduled when, what data waited, and each device's energy; None where no device table was kept."""
    table = run.devices
    if table is None or table.is_empty():
        return None
    devices, rounds = run.scenario.system.devices, run.scenario.system.rounds

    def grid(expression: pl.Expr) -> NDArray:
        """(K, T)"""
        return table.select(expression.alias("value"))["value"].to_numpy().reshape(rounds, devices).T

    status = np.full((devices, rounds), IDLE, np.uint8)
    status[~grid(pl.col("feasible"))] = INELIGIBLE
    status[grid(pl.col("scheduled"))] = DROPPED
    status[grid(pl.col("transmitted"))] = SENT
    stored = grid(pl.col("stored"))
    waiting = _waiting(run, grid)
    parts = (COMPUTING & {*table.columns}, {*table.columns} - COMPUTING)
    computing, sending = (grid(spent_j({name: pl.col(name) for name in part})).mean(axis=1) for part in parts)
    beta, budget = grid(pl.col("beta"))[:, 0], run.scenario.known_system(1).energy_budget_j
    energy, shown = QUANTITIES["e_cmp_j"], _sampled(beta, MOST_DEVICES)
    most_rounds = max(20, min(MOST_ROUNDS, max(FEWEST_CELLS, MOST_CELLS // max(1, arms)) // len(shown)))
    step = -(-rounds // most_rounds)
    starts = np.arange(0, rounds, step)
    return {
        "device": shown.tolist(),
        "devices": devices,
        "rounds": (starts + 1).tolist(),
        "step": step,
        "status": _packed(np.maximum.reduceat(status[shown], starts, axis=1)),
        "waiting": _packed(np.maximum.reduceat(waiting[shown], starts, axis=1)),
        "computing_mj": [short(value, 5) for value in computing[shown] * energy.scale],
        "sending_mj": [short(value, 5) for value in sending[shown] * energy.scale],
        "budget_mj": [short(value, 5) for value in budget[shown] * energy.scale],
        "beta_db": [short(value, 5) for value in 10 * np.log10(beta[shown])],
        "arrival_round": [short(value, 5) for value in _mean_arrival(stored)[shown]],
    }


def _waiting(run: Run, grid: Any) -> NDArray[np.int64]:
    """Samples held and not yet used.

    With `since_use` that is what counts as fresh; with `per_round` it is what is held beyond what was there when the
    device was last used (0 where a buffer has since deleted more than came).
    """
    if run.scenario.data.fresh == "since_use":
        return grid(pl.col("fresh"))
    return np.maximum(grid(pl.col("stored") - pl.col("used_labels").list.sum()), 0)


def _mean_arrival(stored: NDArray) -> NDArray[np.float64]:
    """The mean round in which a device's data came, from the growth of what it holds; the last round if none came."""
    growth = np.maximum(np.diff(stored, axis=1, prepend=0), 0)
    rounds = np.arange(1, stored.shape[1] + 1)
    total = growth.sum(axis=1)
    return np.where(total > 0, growth @ rounds / np.maximum(total, 1), stored.shape[1])


def _sampled(beta: NDArray, most: int) -> NDArray[np.int64]:
    """At most `most` devices, evenly spread over the order of their channels."""
    order = np.argsort(beta, kind="stable")
    if len(order) <= most:
        return np.arange(len(order))
    return np.sort(order[np.linspace(0, len(order) - 1, most).round().astype(np.int64)])


def _packed(values: NDArray) -> dict[str, str]:
    """Little-endian unsigned integers in base64."""
    largest = int(values.max(initial=0))
    kind = "u1" if largest < 2**8 else "u2" if largest < 2**16 else "u4"
    return {"kind": kind, "data": base64.b64encode(values.astype(f"<{kind}").tobytes()).decode("ascii")}
