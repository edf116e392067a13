"""The per-seed series of one quantity, and the single numbers that claims compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from feelstream.arrays import Reals
from feelstream.experiment.statistics import normalised_auc

Span = Literal["final", "mean", "early", "late", "late_quarter", "late_half", "end"]

SPANS: dict[Span, str] = {
    "final": "after the last round",
    "mean": "mean over the rounds (area under the curve)",
    "early": "mean over the first third",
    "late": "mean over the last third",
    "late_quarter": "mean over the last quarter",
    "late_half": "mean over the last half",
    "end": "mean over the last tenth",
}
_LATE: dict[str, tuple[int, int]] = {"late": (3, 2), "late_quarter": (4, 3), "late_half": (2, 1), "end": (10, 9)}


@dataclass(frozen=True)
class Series:
    """One arm's values of one quantity: a row per seed, a column per round where it is known."""

    seeds: tuple[int, ...]
    rounds: NDArray[np.int64]  # (R,)
    values: Reals  # (seeds, R)

    def over(self, span: Span) -> dict[int, float]:
        """The number of each seed: the last value, or the mean over a part of the run.

        With T the last round: early is rounds ≤ T/3, late is rounds > 2T/3 (a quarter: > 3T/4, half: > T/2), end is
        rounds > 9T/10. A part in which no round was evaluated takes the evaluated round nearest to it; the last one
        always is.
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
            whole, before = _LATE[span]
            part = self.rounds * whole > before * last
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
