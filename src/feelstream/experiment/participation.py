"""What a run's device table says of a policy: who worked, what it cost each, and how much of the data was used."""

from __future__ import annotations

import numpy as np
import polars as pl

from feelstream.arrays import Flags, Ints, Reals
from feelstream.columns import SPENT, spent_j
from feelstream.data.streaming.buffers import Buffer
from feelstream.experiment.statistics import jain_index
from feelstream.scenario import Scenario

WORK = ("stored", "scheduled", "transmitted")
COLUMNS = (*WORK, *SPENT)  # of the device table, as far as they are there
SHARES = ("energy_over_budget", "devices_over_budget", "worst_device", "data_used", "fairness")
REPORTS = "e_report_j"


def participation(devices: pl.DataFrame | None, scenario: Scenario) -> dict[str, float | None]:
    """The `SHARES` of a run from the `COLUMNS` of its device table; all None where no such table was kept.

    energy_over_budget: `budget_ratio`. devices_over_budget: share of devices with (1/T) Σ E_k > E_k^avg. worst_device:
    the greatest Ē_k / E_k^avg. data_used: `data_used`. fairness: Jain's index of how often each device was scheduled,
    None if nobody ever was.
    """
    if devices is None or devices.is_empty():
        return dict.fromkeys(SHARES)
    shape = (scenario.system.rounds, scenario.system.devices)
    # (T, K) each: rows are sorted by round, then device.
    stored, scheduled, sent = (devices[column].to_numpy().reshape(shape) for column in WORK)

    def mean_j(table: pl.DataFrame) -> Reals:
        return spent_j(table).to_numpy().reshape(shape).mean(axis=0)

    energy_j = mean_j(devices.drop(REPORTS, strict=False))
    if REPORTS in devices.columns:  # by themselves, so that summary.csv keeps its bits
        energy_j = energy_j + mean_j(devices.select(REPORTS))
    budget_j = np.broadcast_to(np.asarray(scenario.system.energy_budget_j, float), shape[1])
    return {
        "energy_over_budget": budget_ratio(energy_j, budget_j),
        "devices_over_budget": float((energy_j > budget_j).mean()),
        "worst_device": float((energy_j / budget_j).max()) if (budget_j > 0).all() else None,
        "data_used": data_used(stored, sent, scenario.data.buffer),
        "fairness": jain_index(scheduled.sum(axis=0)) if scheduled.any() else None,
    }


def budget_ratio(energy_j: Reals, budget_j: Reals) -> float | None:
    """(1/K) Σ Ē_k / E_k^avg: 1 where all spend their budget; None where a budget is 0. Both (K,), J per round."""
    return float((energy_j / budget_j).mean()) if (budget_j > 0).all() else None


def data_used(stored: Ints, sent: Flags, buffer: Buffer) -> float | None:
    """Share of all samples that arrived which were held by a device at least once when it transmitted.

    A buffer that holds the newest arrivals puts min(|S_k(t)|, arrived since t̂_k) samples to their first use at t.
    stored, sent: (T, K), what each device held and whether it transmitted. None where nothing arrived, and for buffers
    that may discard samples unseen (fifo, reservoir), whose arrivals the table does not tell.
    """
    came = buffer.arrivals(stored, sent)
    if came is None or not came.any():
        return None
    arrived = came.cumsum(axis=0)
    # What had arrived by the last use before each round.
    by_last_use = np.maximum.accumulate(np.where(sent, arrived, 0), axis=0)
    by_last_use = np.vstack([np.zeros_like(arrived[:1]), by_last_use[:-1]])
    first_use = np.where(sent, np.minimum(stored, arrived - by_last_use), 0)
    return float(first_use.sum() / came.sum())
