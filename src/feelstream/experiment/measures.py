"""A comparison as tables of words: which quantities a summary has, each arm's, and its differences from the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from feelstream.experiment.plan import Plan
from feelstream.experiment.statistics import NO_SEED, Interval
from feelstream.quantities import QUANTITIES, Quantity, number, of_table

GROUPS = ("learning", "resources")  # a table each: together they would be too wide for any screen
AGAINST_FIRST = ("late_accuracy", "accuracy_area", "energy_j")  # summary.csv has the differences of all
Rows = dict[str, dict[str, dict[str, Any]]]  # of a summary, by arm and quantity


def measured(summary: pl.DataFrame, group: str | None = None) -> list[Quantity]:
    """The quantities that arms are compared by, of one group or of all, of those that a summary has."""
    present = of_table("runs", summary["quantity"].unique().to_list())
    return [quantity for quantity in present if quantity.group and group in (None, quantity.group)]


def by_arm(summary: pl.DataFrame) -> Rows:
    found: Rows = {}
    for row in summary.rows(named=True):
        found.setdefault(row["arm"], {})[row["quantity"]] = row
    return found


def tables(plan: Plan, summary: pl.DataFrame) -> list[tuple[list[str], dict[str, list[str]]]]:
    """Titles, and the cells of each arm, of every group that has quantities."""
    found = []
    for group in GROUPS:
        shown = measured(summary, group)
        if shown:
            rows = {arm.label: cells(summary, arm.label, shown, len(plan.seeds)) for arm in plan.arms}
            found.append(([quantity.column_title for quantity in shown], rows))
    return found


def cells(summary: pl.DataFrame, arm: str, shown: Sequence[Quantity], seeds: int) -> list[str]:
    """One line of the table that compares all arms."""
    rows = by_arm(summary.filter(arm=arm))[arm]
    return [cell(rows[quantity.name], seeds, rows.get(_reached(quantity.name))) for quantity in shown]


def differences(plan: Plan, summary: pl.DataFrame) -> tuple[list[str], dict[str, list[tuple[str, str]]]]:
    """Titles, and for each arm but the first its difference from it, seed by seed: [95 % interval], and the verdict."""
    rows = by_arm(summary)
    shown = [quantity for quantity in measured(summary) if quantity.name in AGAINST_FIRST]
    gaps = {arm.label: [difference(rows[arm.label][quantity.name]) for quantity in shown] for arm in plan.arms[1:]}
    return [quantity.column_title for quantity in shown], gaps if shown else {}


def difference(row: dict[str, Any]) -> tuple[str, str]:
    """A row of the summary against the first arm: the difference with its interval, and what may be said of it."""
    if not row["pairs"]:
        return "–", NO_SEED
    quantity = QUANTITIES[row["quantity"]]
    mean, low, high = (
        None if row[end] is None else row[end] * quantity.scale
        for end in ("difference", "difference_low", "difference_high")
    )
    return with_interval(Interval(mean or 0.0, low, high, row["pairs"]), quantity.digits, signed=True), row["verdict"]


def with_interval(value: Interval, digits: int, unit: str = "", signed: bool = False) -> str:
    """mean unit [low, high]; the mean alone for one seed."""
    mean = " ".join(part for part in (number(value.mean, digits, signed), unit) if part)
    if value.low is None or value.high is None:
        return mean
    return f"{mean} [{number(value.low, digits, signed)}, {number(value.high, digits, signed)}]"


def cell(row: dict[str, Any], seeds: int, reached: dict[str, Any] | None = None) -> str:
    """A row of the summary in words: mean ± half of its interval, and how many of the seeds have a value if not all.

    reached: for a time to an accuracy, the row that says which share of the seeds got there.
    """
    quantity = QUANTITIES[row["quantity"]]
    if not row["n"]:
        return "–"
    if reached is not None:
        got = round(reached["mean"] * reached["n"])
        if got == 0:
            return "never"
        if got < seeds:
            return f"≥ {cell(row, row['n'])} ({got}/{seeds})"
    half = "" if row["low"] is None else f" ± {(row['high'] - row['low']) / 2 * quantity.scale:.{quantity.digits}f}"
    part = "" if row["n"] == seeds else f" ({row['n']}/{seeds})"
    return f"{number(row['mean'] * quantity.scale, quantity.digits)}{half}{part}"


def _reached(quantity: str) -> str:
    """The quantity that says whether the accuracy was reached, of a time to it; none otherwise."""
    return f"reached_{quantity.rpartition('_')[2]}" if "_to_" in quantity else ""
