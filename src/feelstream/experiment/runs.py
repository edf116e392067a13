"""What a run comes to, one number for each quantity, and its curves: by arm and seed.

`of_rounds` needs the rounds alone; `per_run` adds the measures that need the table of devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from feelstream.arrays import Flags, Ints, Reals
from feelstream.columns import REACHED, SPENT, spent_j
from feelstream.data.streaming.buffers import Buffer
from feelstream.display.quantities import measures
from feelstream.experiment.store import Results
from feelstream.scenario import Scenario

LATE = 0.2  # of the run: the window at its end over which accuracy is averaged
WORK = ("stored", "scheduled", "transmitted")
COLUMNS = (*WORK, *SPENT)  # of the device table, as far as they are there
SHARES = ("energy_over_budget", "devices_over_budget", "worst_device", "data_used", "fairness")
REPORTS = "e_report_j"


def per_run(results: Results) -> pl.DataFrame:
    """`of_rounds` of every finished run, with the measures that need its device table."""
    rows = [
        {"arm": arm, "seed": seed} | participation(results.devices(arm, seed, COLUMNS), results.plan.arm(arm).scenario)
        for arm, seed in results.finished
    ]
    schema = {"arm": pl.String, "seed": pl.Int64} | dict.fromkeys(SHARES, pl.Float64)
    found = pl.DataFrame(rows, schema=schema)
    return of_rounds(results.rounds()).join(found, on=["arm", "seed"], how="left", maintain_order="left")


def of_rounds(rounds: pl.DataFrame) -> pl.DataFrame:
    """One row per arm and seed: arm, seed and the numbers below.

    late_accuracy, the mean accuracy over the last fifth of the run; final_accuracy, final_loss; accuracy_area,
    `normalised_auc` of the accuracy curve; energy_j per device and round, averaged over the run; queue_j, the mean
    queue at the end; drops, the share of all scheduled that was
    then not admitted, Σ|Π*∖Π̄| / Σ|Π*|; rounds_to_80, joules_to_80 and the same for 90 %: until that was reached, or
    the whole run where it was not, in which case reached_80 is 0 and not 1: such a value is censored, and no mean is
    made of it. Those about learning are null where nothing was learned. For every number of an evaluator late_NAME,
    its mean over the last fifth, and final_NAME, null where it was not measured.
    """
    measured = [quantity.name for quantity in measures(rounds.columns)]
    last, accuracy, learned = pl.col("round").last(), pl.col("accuracy"), pl.col("accuracy").is_not_null().any()
    scheduled, sent = (pl.col(name).cast(pl.Int64).sum() for name in ("scheduled", "transmitted"))
    numbers = {
        "late_accuracy": _late("accuracy"),
        "final_accuracy": accuracy.last(),
        "accuracy_area": _area(pl.col("round").filter(accuracy.is_not_null()), accuracy.drop_nulls()),
        "final_loss": pl.col("loss").last(),
        "energy_j": pl.col("energy_mean_cum_j").last(),
        "queue_j": pl.col("queue_mean_j").last(),
        "drops": pl.when(scheduled > 0).then((scheduled - sent) / scheduled),
    }
    for percent in REACHED:
        when = pl.col("round").filter(accuracy >= percent / 100).first()
        until = pl.coalesce(when, last)
        spent_j = pl.col("energy_mean_j").filter(pl.col("round") <= until).sum()
        about = {"rounds_to": until, "joules_to": spent_j, "reached": when.is_not_null()}
        numbers |= {f"{what}_{percent}": pl.when(learned).then(number) for what, number in about.items()}
    for name in measured:
        numbers |= {f"late_{name}": _late(name), f"final_{name}": pl.col(name).last()}
    shown = {name: number.cast(pl.Float64) for name, number in numbers.items()}
    return rounds.group_by("arm", "seed", maintain_order=True).agg(**shown)


def _late(name: str) -> pl.Expr:
    """Mean over the tests of the last fifth of the run, at least the last one: one test alone is noisy."""
    in_time = pl.col("round") > (1 - LATE) * pl.col("round").last()
    return pl.coalesce(pl.col(name).filter(in_time).mean(), pl.col(name).drop_nulls().last())


def _area(x: pl.Expr, y: pl.Expr) -> pl.Expr:
    """`normalised_auc`, run by run; null where there is no point."""
    area = ((y + y.shift(1)) / 2 * x.diff()).sum()
    return pl.when(x.len() > 1).then(area / (x.last() - x.first())).otherwise(y.last())


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


def arrivals(stored: Ints, sent: Flags, buffer: Buffer) -> Ints | None:
    """Samples that arrived at each device in each round, from what it held and when it transmitted, (T, K) each.

    |S(t)| − |S(t−1)| plus what left: all, where a transmission empties the buffer, or the arrivals of round t − w,
    where samples are held w rounds. None where the promises of the buffer do not tell.
    """
    rounds, empties = buffer.holds_rounds, buffer.empties_on_use
    if not buffer.admits_all or not (buffer.keeps or rounds) or (empties and rounds):
        return None
    came = np.diff(stored, axis=0, prepend=0)
    if empties:
        came[1:] += np.where(sent[:-1], stored[:-1], 0)
    for t in range(rounds or len(came), len(came)):
        came[t] += came[t - (rounds or 0)]
    return came


def data_used(stored: Ints, sent: Flags, buffer: Buffer) -> float | None:
    """Share of all samples that arrived which were held by a device at least once when it transmitted.

    A buffer that holds the newest arrivals puts min(|S_k(t)|, arrived since t̂_k) samples to their first use at t.
    stored, sent: (T, K), what each device held and whether it transmitted. None where nothing arrived, and for buffers
    that may discard samples unseen (fifo, reservoir), whose arrivals the table does not tell.
    """
    came = arrivals(stored, sent, buffer)
    if came is None or not came.any():
        return None
    arrived = came.cumsum(axis=0)
    # What had arrived by the last use before each round.
    by_last_use = np.maximum.accumulate(np.where(sent, arrived, 0), axis=0)
    by_last_use = np.vstack([np.zeros_like(arrived[:1]), by_last_use[:-1]])
    first_use = np.where(sent, np.minimum(stored, arrived - by_last_use), 0)
    return float(first_use.sum() / came.sum())


def normalised_auc(x: ArrayLike, y: ArrayLike) -> float:
    """Area under the curve over its length: ∫ y dx / (x_last − x_first) by trapezes, in the unit of y.

    One point: its height.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    return float(y[0]) if len(y) == 1 else float(np.trapezoid(y, x) / (x[-1] - x[0]))


def jain_index(shares: ArrayLike | Sequence[float]) -> float:
    """Fairness (Σx)² / (n Σx²): 1 where all x ≥ 0 are equal, 1/n where one has it all. All 0: 1.

    Reference: R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and Discrimination", DEC-TR-301, 1984.
    """
    x = np.asarray(shares, float)
    if len(x) == 0 or (x < 0).any():
        raise ValueError("fairness needs at least one share, and none below 0")
    x = x / (x.max() or 1.0)  # no overflow, no underflow
    return float(x.sum() ** 2 / (len(x) * (x**2).sum())) if x.any() else 1.0


Span = Literal["final", "mean", "early", "late", "end"]

SPANS: dict[Span, str] = {
    "final": "after the last round",
    "mean": "mean over the rounds (area under the curve)",
    "early": "mean over the first third",
    "late": "mean over the last third",
    "end": "mean over the last tenth",
}


@dataclass(frozen=True)
class Series:
    """One arm's values of one quantity: a row per seed, a column per round where it is known."""

    seeds: tuple[int, ...]
    rounds: NDArray[np.int64]  # (R,)
    values: Reals  # (seeds, R)

    def over(self, span: Span) -> dict[int, float]:
        """The number of each seed: the last value, or the mean over a part of the run.

        With T the last round: early is rounds ≤ T/3, late is rounds > 2T/3, end is rounds > 9T/10. A part in which no
        round was evaluated takes the evaluated round nearest to it; the last one always is.
        """
        last = self.rounds[-1]
        if span == "final":
            part = self.rounds == last
        elif span == "mean":
            return {seed: normalised_auc(self.rounds, row) for seed, row in zip(self.seeds, self.values, strict=True)}
        elif span == "early":
            part = self.rounds * 3 <= last
            part = part if part.any() else self.rounds == self.rounds[0]
        else:
            part = self.rounds * 3 > 2 * last if span == "late" else self.rounds * 10 > 9 * last
        means = self.values[:, part].mean(axis=1)
        return dict(zip(self.seeds, means.tolist(), strict=True))


def series(rounds: pl.DataFrame, arm: str, column: str) -> Series | None:
    """One arm's series from the rows of all runs; None where the quantity was never measured."""
    rows = rounds.filter((pl.col("arm") == arm) & pl.col(column).is_not_null()).select("seed", "round", column)
    if rows.is_empty():
        return None
    # Seeds of an arm share its scenario, so they were evaluated in the same rounds.
    table = rows.sort("seed", "round").pivot(on="round", index="seed", values=column).drop_nulls()
    if table.is_empty():
        return None
    names = table.columns[1:]
    return Series(
        tuple(table["seed"].to_list()),
        np.array([int(name) for name in names]),
        table.select(names).to_numpy().astype(np.float64),
    )
