"""The leaderboard: what policies are compared by, and how each number is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from feelstream.experiment.statistics import pareto_front

# What docs/leaderboard.md shows, and what its runs change. A test of the accuracy takes as long as several rounds of
# training, so the longer a run is, the less often it is tested.
BOARD: dict[str, tuple[str, ...]] = {
    "paper-3digit": ("learning.eval_every=2",),
    "stress": ("learning.eval_every=4",),
    "long-iid": ("learning.eval_every=20",),
}


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
        Measure("final_accuracy", "accuracy", "%", 100.0, 2, "learning", "higher"),
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
    "accuracy": "on the test set after the last round",
    "mean accuracy": "area under the accuracy curve over its length",
    "rounds, energy to 80 %, 90 %": "until the first test with that accuracy; energy is the sum over the rounds until "
    "then, mean of all devices; (7/10): only 7 of 10 seeds got there, and the mean is over those",
    "energy": "per device and round, mean over the run",
    "energy / budget": "each device's mean energy over its budget, mean of all devices",
    "devices over budget": "share of devices that spent more than their budget over the run",
    "data used": "share of all samples that arrived which a device held at least once when its update was aggregated",
    "fairness": "Jain's index of how often each device was scheduled: 1 if all equally often, 1/K if always the same",
    "drops": "share of scheduled devices that trained and were then not admitted to the channel",
}


def shown(summary: pl.DataFrame, group: str | None = None) -> list[Measure]:
    """The measures that a summary has, of one group or of all."""
    present = set(summary["quantity"].to_list())
    return [m for m in MEASURES.values() if m.quantity in present and group in (None, m.group)]


def cell(row: dict[str, Any], seeds: int) -> str:
    """A row of the summary in words: mean ± half of its interval, and how many of the seeds have a value if not all."""
    measure = MEASURES[row["quantity"]]
    if not row["n"]:
        return "–"
    half = "" if row["low"] is None else f" ± {(row['high'] - row['low']) / 2 * measure.scale:.{measure.digits}f}"
    part = "" if row["n"] == seeds else f" ({row['n']}/{seeds})"
    return f"{row['mean'] * measure.scale:.{measure.digits}f}{half}{part}"


def cells(summary: pl.DataFrame, arm: str, measures: Sequence[Measure], seeds: int) -> list[str]:
    """One line of the leaderboard."""
    rows = {row["quantity"]: row for row in summary.filter(arm=arm).rows(named=True)}
    return [cell(rows[measure.quantity], seeds) for measure in measures]


@dataclass(frozen=True)
class Point:
    """One arm in the plane of energy and accuracy; half-widths are None for one seed."""

    arm: str
    energy_mj: float
    energy_half: float | None
    accuracy: float  # %
    accuracy_half: float | None
    on_front: bool


def pareto_points(summary: pl.DataFrame) -> list[Point]:
    """Every arm with an accuracy, in the summary's order; the front is that of the means. None without learning."""
    wide: dict[str, dict[str, dict[str, Any]]] = {}
    for row in summary.rows(named=True):
        wide.setdefault(row["arm"], {})[row["quantity"]] = row
    both = {
        arm: (rows["energy_j"], rows["final_accuracy"])
        for arm, rows in wide.items()
        if rows.get("final_accuracy", {}).get("n") and rows.get("energy_j", {}).get("n")
    }
    front = pareto_front([e["mean"] for e, _ in both.values()], [a["mean"] for _, a in both.values()])

    def half(row: dict[str, Any], scale: float) -> float | None:
        return None if row["low"] is None else (row["high"] - row["low"]) / 2 * scale

    return [
        Point(arm, e["mean"] * 1e3, half(e, 1e3), a["mean"] * 100, half(a, 100.0), bool(best))
        for (arm, (e, a)), best in zip(both.items(), front, strict=True)
    ]
