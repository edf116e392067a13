"""A comparison as tables of words: which quantities a summary has, each arm's, and its differences from the first;
and as points of energy and accuracy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from feelstream.display.quantities import QUANTITIES, Quantity, number, of_table
from feelstream.experiment.plan import Plan
from feelstream.experiment.statistics import HIGHER, LOWER, NO_SEED, UNCLEAR, UNCLEAR_BY_HOLM, Interval, pareto_front

GROUPS = ("learning", "resources")  # a table each: together they would be too wide for any screen
HEADLINE = ("late_accuracy", "energy_j", "energy_over_budget")  # what a comparison is about, at a glance
JUDGED = ("late_accuracy", "energy_j")  # those of them that the first arm is compared by
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


def differing(labels: Sequence[str]) -> dict[str, str]:
    """Of each label what tells it from the others: settings in brackets that all of one policy share are left out.

    >>> differing(["random", "balanced(size=4,price=0.1)", "balanced(size=4,price=0.2)"])
    {'random': 'random', 'balanced(size=4,price=0.1)': 'balanced(price=0.1)', 'balanced(size=4,price=0.2)': 'balanced(price=0.2)'}
    """  # noqa: E501
    parts = {label: re.fullmatch(r"([^( ]+)(?:\(([^()[\]]*)\))?(.*)", label) for label in labels}
    settings = {label: (part[1], part[2].split(",") if part[2] else []) for label, part in parts.items() if part}
    found = {}
    for label, (policy, own) in settings.items():
        others = [set(theirs) for other, (name, theirs) in settings.items() if name == policy and other != label]
        left = [each for each in own if not others or any(each not in theirs for theirs in others)]
        inside = f"({','.join(left)})" if left else ""
        found[label] = f"{policy}{inside}{parts[label][3]}"  # pyright: ignore
    return found if len(set(found.values())) == len(labels) else dict(zip(labels, labels, strict=True))


def tables(plan: Plan, summary: pl.DataFrame) -> list[tuple[list[str], dict[str, list[str]]]]:
    """Titles, and the cells of each arm, of every group that has quantities."""
    found, seeds = [], len(plan.seeds)
    for group in GROUPS:
        if shown := measured(summary, group):
            rows = {
                arm: [cell(own[quantity.name], seeds) for quantity in shown] for arm, own in by_arm(summary).items()
            }
            found.append(([quantity.column_title for quantity in shown], rows))
    return found


def ranked(summary: pl.DataFrame) -> list[str]:
    """The arms from the best to the worst by the first of HEADLINE that has values; without one, as they are."""
    for name in HEADLINE:
        rows = summary.filter(pl.col("quantity") == name, pl.col("n") > 0)
        if len(rows):
            order = rows.sort("mean", descending=QUANTITIES[name].better == "higher", maintain_order=True)
            return list(dict.fromkeys([*order["arm"], *summary["arm"]]))
    return list(dict.fromkeys(summary["arm"]))


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
    if row["difference"] is None:
        return "–", row["verdict"]
    quantity = QUANTITIES[row["quantity"]]
    mean, low, high = (
        None if row[end] is None else row[end] * quantity.scale
        for end in ("difference", "difference_low", "difference_high")
    )
    digits = quantity.decimals(*(end for end in (mean, low, high) if end is not None))
    return with_interval(Interval(mean or 0.0, low, high, row["pairs"]), digits, signed=True), row["verdict"]


def with_interval(value: Interval, digits: int, unit: str = "", signed: bool = False) -> str:
    """mean unit [low, high]; the mean alone for one seed."""
    mean = " ".join(part for part in (number(value.mean, digits, signed), unit) if part)
    if value.low is None or value.high is None:
        return mean
    return f"{mean} [{number(value.low, digits, signed)}, {number(value.high, digits, signed)}]"


def cell(row: dict[str, Any], seeds: int) -> str:
    """A row of the summary in words: mean ± half of its interval, and how many of the seeds have a value if not all.

    Of a time to an accuracy the median, > where it is only known to be later, and how many seeds reached it.
    """
    quantity = QUANTITIES[row["quantity"]]
    if not row["n"]:
        return "–"
    if row.get("reached") is not None:
        more = "> " * bool(row["median_is_bound"])
        part = "" if row["reached"] in (0, seeds) else f" ({row['reached']}/{seeds})"
        median = row["median"] * quantity.scale
        return f"{more}{number(median, quantity.decimals(median))}{part}"
    part = "" if row["n"] == seeds else f" ({row['n']}/{seeds})"
    return f"{plus_minus(quantity, Interval(row['mean'], row['low'], row['high'], row['n']))}{part}"


def plus_minus(quantity: Quantity, value: Interval) -> str:
    """mean ± half of the interval, in the quantity's unit; the mean alone for one seed."""
    mean = value.mean * quantity.scale
    digits = quantity.decimals(mean)
    half = "" if value.half_width is None else f" ± {number(value.half_width * quantity.scale, digits)}"
    return f"{number(mean, digits)}{half}"


Judgement = Literal["better", "worse", "unclear", ""]


def judgement(row: dict[str, Any]) -> Judgement:
    """What the verdict of a row means to someone who wants the quantity high, or low; empty where nothing is said."""
    if row["verdict"] in (UNCLEAR, UNCLEAR_BY_HOLM):
        return "unclear"
    if row["verdict"] not in (HIGHER, LOWER):
        return ""
    return "better" if row["verdict"] == QUANTITIES[row["quantity"]].better else "worse"


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
    both = {
        arm: (rows["energy_j"], rows["late_accuracy"])
        for arm, rows in by_arm(summary).items()
        if rows.get("late_accuracy", {}).get("n") and rows.get("energy_j", {}).get("n")
    }
    front = pareto_front([e["mean"] for e, _ in both.values()], [a["mean"] for _, a in both.values()])

    def shown(row: dict[str, Any]) -> tuple[float, float | None]:
        scale = QUANTITIES[row["quantity"]].scale
        return row["mean"] * scale, None if row["low"] is None else (row["high"] - row["low"]) / 2 * scale

    return [
        Point(arm, *shown(e), *shown(a), bool(best)) for (arm, (e, a)), best in zip(both.items(), front, strict=True)
    ]
