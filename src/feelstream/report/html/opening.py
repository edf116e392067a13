"""What the page opens with, as a table that its first paragraph is written from: what was run and what came of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from feelstream.display.quantities import QUANTITIES, number, significant
from feelstream.experiment import Plan
from feelstream.experiment.measures import with_interval
from feelstream.experiment.significance import compared
from feelstream.experiment.statistics import HIGHER, LOWER, UNCLEAR, UNCLEAR_BY_HOLM, compare_arms, interval
from feelstream.report.groups import Group


def opening(plan: Plan, group: Group, runs: pl.DataFrame) -> dict[str, Any]:
    """The arms of one group, which share their worlds: seeds and energy of each, the most accurate, and its lead.

    runs: `statistics.per_run`.
    """
    names = dict(group.arms)
    found = [arm for arm in names if arm in runs["arm"]]
    energy = QUANTITIES["energy_j"]
    spent = {arm: float(np.mean(runs.filter(arm=arm)["energy_j"].to_numpy())) for arm in found}
    arms = []
    for arm in sorted(found, key=lambda arm: spent[arm]):
        budget = float(np.mean(plan.arm(arm).scenario.system.energy_budget_j))
        arms.append({
            "name": names[arm],
            "seeds": runs.filter(arm=arm)["seed"].to_list(),
            "spent": f"{significant(spent[arm] * energy.scale, 3)} {energy.unit}",
            "share": significant(spent[arm] / budget, 3) if budget else "",
        })  # fmt: skip
    system = plan.arm(found[0]).scenario.system if found else None
    return {"arms": arms, "system": system, "best": _best(runs, found, names)}


def _best(runs: pl.DataFrame, arms: list[str], names: dict[str, str]) -> dict[str, str] | None:
    """The most accurate over the last fifth of the run, against the first; the first against the next best."""
    means = {arm: runs.filter(arm=arm)["late_accuracy"].mean() for arm in arms}
    known = {arm: float(mean) for arm, mean in means.items() if isinstance(mean, float)}
    if not known:
        return None
    best = max(known, key=lambda arm: known[arm])
    own = interval(runs.filter(arm=best)["late_accuracy"].drop_nulls() * 100)
    told = {"name": names[best], "accuracy": with_interval(own, 1, "%"), "other": "", "significance": ""}
    first = arms[0]
    if len(known) > 1:
        other = max((arm for arm in known if arm != first), key=lambda arm: known[arm]) if best == first else first
        gap = compare_arms(runs, "late_accuracy", best, other)
        _, verdict = compared(runs, "late_accuracy", first, list(known))[other if best == first else best]
        words = {HIGHER: "significant", LOWER: "significant"}
        words |= {UNCLEAR: "not significant", UNCLEAR_BY_HOLM: "not significant"}
        told |= {"other": names[other], "lead": number(gap.mean * 100, 1), "significance": words.get(verdict, "")}
        told["verdict"] = verdict
    return told
