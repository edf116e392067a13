"""The quantities that arms are compared by, as people read them: heading, unit, scale, and numbers in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl


@dataclass(frozen=True)
class Measure:
    """A quantity of `comparison.summarise` as people read it: value × scale, in `unit`."""

    quantity: str
    heading: str
    unit: str
    scale: float
    digits: int
    group: Literal["learning", "resources"]
    better: Literal["higher", "lower"]

    @property
    def title(self) -> str:
        return f"{self.heading}, {self.unit}" if self.unit else self.heading


MEASURES: dict[str, Measure] = {
    measure.quantity: measure
    for measure in (
        Measure("late_accuracy", "accuracy", "%", 100.0, 2, "learning", "higher"),
        Measure("accuracy_area", "mean accuracy", "%", 100.0, 2, "learning", "higher"),
        Measure("rounds_to_80", "rounds to 80 %", "", 1.0, 1, "learning", "lower"),
        Measure("joules_to_80", "energy to 80 %", "mJ", 1e3, 2, "learning", "lower"),
        Measure("rounds_to_90", "rounds to 90 %", "", 1.0, 1, "learning", "lower"),
        Measure("joules_to_90", "energy to 90 %", "mJ", 1e3, 2, "learning", "lower"),
        Measure("energy_j", "energy", "mJ", 1e3, 3, "resources", "lower"),
        Measure("energy_over_budget", "energy / budget", "", 1.0, 2, "resources", "lower"),
        Measure("devices_over_budget", "devices over budget", "%", 100.0, 1, "resources", "lower"),
        Measure("data_used", "data used", "%", 100.0, 1, "resources", "higher"),
        Measure("fairness", "fairness", "", 1.0, 3, "resources", "higher"),
        Measure("drops", "drops", "%", 100.0, 2, "resources", "lower"),
    )
}

EXPLAINED = {
    "accuracy": "on the test set, mean over the tests of the last fifth of the run",
    "mean accuracy": "area under the accuracy curve over its length",
    "rounds, energy to 80 %, 90 %": "until the first test with that accuracy; energy is the sum over the rounds until "
    "then, mean of all devices; ≥ and (7/10): only 7 of 10 seeds got there, the others count with the whole run, so "
    "the mean is a lower bound; never: no seed did",
    "energy": "per device and round, mean over the run",
    "energy / budget": "each device's mean energy over its budget, mean of all devices",
    "devices over budget": "share of devices that spent more than their budget over the run",
    "data used": "share of all samples that arrived which a device held at least once when its update was aggregated",
    "fairness": "Jain's index of how often each device was scheduled: 1 if all equally often, 1/K if always the same",
    "drops": "share of scheduled devices that trained and were then not admitted to the channel",
}


def measured(summary: pl.DataFrame, group: str | None = None) -> list[Measure]:
    """The measures that a summary has, of one group or of all."""
    present = set(summary["quantity"].to_list())
    return [m for m in MEASURES.values() if m.quantity in present and group in (None, m.group)]


def cell(row: dict[str, Any], seeds: int, reached: dict[str, Any] | None = None) -> str:
    """A row of the summary in words: mean ± half of its interval, and how many of the seeds have a value if not all.

    reached: for a time to an accuracy, the row that says which share of the seeds got there.
    """
    measure = MEASURES[row["quantity"]]
    if not row["n"]:
        return "–"
    if reached is not None:
        got = round(reached["mean"] * reached["n"])
        if got == 0:
            return "never"
        if got < seeds:
            return f"≥ {cell(row, row['n'])} ({got}/{seeds})"
    half = "" if row["low"] is None else f" ± {(row['high'] - row['low']) / 2 * measure.scale:.{measure.digits}f}"
    part = "" if row["n"] == seeds else f" ({row['n']}/{seeds})"
    return f"{row['mean'] * measure.scale:.{measure.digits}f}{half}{part}"


def cells(summary: pl.DataFrame, arm: str, measures: Sequence[Measure], seeds: int) -> list[str]:
    """One line of the table that compares all arms."""
    rows = {row["quantity"]: row for row in summary.filter(arm=arm).rows(named=True)}
    return [cell(rows[measure.quantity], seeds, rows.get(_reached(measure.quantity))) for measure in measures]


def _reached(quantity: str) -> str:
    """The quantity that says whether the accuracy was reached, of a time to it; none otherwise."""
    return f"reached_{quantity.rpartition('_')[2]}" if "_to_" in quantity else ""
