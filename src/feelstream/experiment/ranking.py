"""Which arms are better: paired tests against a reference, and the Pareto front of energy and accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from feelstream.experiment.measures import by_arm
from feelstream.experiment.significance import holm
from feelstream.experiment.statistics import (
    HIGHER,
    LEVEL,
    LOWER,
    UNCLEAR,
    Interval,
    compare_arms,
    pareto_front,
    t_quantile,
)
from feelstream.quantities import QUANTITIES


def verdicts(runs: pl.DataFrame, quantity: str, reference: str, arms: Sequence[str]) -> dict[str, str]:
    """How each arm compares with a reference: higher, lower, unclear, or why nothing may be said.

    Two-sided paired t-tests at 5 % with Holm's correction over all arms that may be judged (`Interval.verdict` says
    which may not). runs: `comparison.per_run`.
    """
    found = {arm: compare_arms(runs, quantity, arm, reference) for arm in arms if arm != reference}
    said = {arm: gap.verdict for arm, gap in found.items()}
    judged = [arm for arm, verdict in said.items() if verdict in (HIGHER, LOWER, UNCLEAR)]
    p = holm([_p_value(found[arm]) for arm in judged])
    for arm, adjusted in zip(judged, p, strict=True):
        higher = HIGHER if found[arm].mean > 0 else LOWER
        said[arm] = higher if adjusted <= 1 - LEVEL else UNCLEAR
    return said


def _p_value(gap: Interval) -> float:
    """Of the two-sided t-test whose 95 % interval this is: the interval says mean, standard error and n."""
    from scipy.special import stdtr  # here: slow to import, and a run alone is ranked by nothing

    half = gap.half_width
    if not half:
        return 1.0
    t = abs(gap.mean) / (half / float(t_quantile(gap.n)))
    return float(2 * stdtr(gap.n - 1, -t))


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
