"""What a leaderboard's numbers say, in sentences: made from the numbers alone, and no ranking without a test."""

from __future__ import annotations

from typing import Any

import polars as pl

from feelstream.studies.pages import front_of, markdown, worlds
from feelstream.studies.plans import Plan
from feelstream.studies.results import HIGHER, LEAST_SEEDS, LOWER, NO_SEED, QUANTITIES, cell, compared

REFERENCE = "random"
Facts = dict[str, Any]


def discussion(plan: Plan, runs: pl.DataFrame, summary: pl.DataFrame) -> list[str]:
    """Sentences on accuracy, energy, the front, the budget, speed and drops, each where there are numbers for it.

    runs: `results.per_run`; summary: `results.summarise` of them.
    """
    best = {
        words: _best(plan, runs, rows, quantity)
        for quantity, words in (("late_accuracy", "Highest accuracy at the end"), ("energy_j", "Least energy"))
        if len(rows := _values(summary, quantity)) > 1
    }
    reached = {percent: _reached(plan, summary, percent) for percent in (80, 90)}
    said = markdown(
        "feelstream_studies.leaderboard/discussion.md.j2",
        best=best,
        fronts=_fronts(plan, summary),
        against=_against_random(plan, runs),
        budget=_budget(summary),
        reached={percent: found for percent, found in reached.items() if found},
        drops=_drops(summary),
        least=LEAST_SEEDS,
        reference=REFERENCE,
        entered=len(plan.arms),
    )
    return [sentence for sentence in said.splitlines() if sentence]


def _values(summary: pl.DataFrame, quantity: str) -> pl.DataFrame:
    return summary.filter(pl.col("quantity") == quantity, pl.col("n") > 0)


def _best(plan: Plan, runs: pl.DataFrame, rows: pl.DataFrame, quantity: str) -> Facts:
    """The arm with the best mean, and all that the tests, corrected for their number, cannot tell from it."""
    measure = QUANTITIES[quantity]
    best = rows.sort("mean", descending=measure.better == "higher", maintain_order=True).row(0, named=True)
    level = None
    if len(plan.seeds) >= LEAST_SEEDS:
        said = compared(runs, quantity, best["arm"], rows["arm"].to_list())
        level = [arm for arm, (_, verdict) in said.items() if verdict not in (HIGHER, LOWER)]
    return {"arm": best["arm"], "value": f"{cell(best, len(plan.seeds))} {measure.unit}", "level": level}


def _fronts(plan: Plan, summary: pl.DataFrame) -> list[tuple[str, list[Any]]]:
    """Of each world, its points from the cheapest; settings that make no difference on a board are one point."""
    found = []
    for title, points in worlds(plan, summary):
        equals: dict[tuple[float, float], list[str]] = {}
        for point in front_of(points):
            equals.setdefault((point.energy_mj, point.accuracy), []).append(point.arm)
        found.append((title, list(equals.items())))
    return found


def _against_random(plan: Plan, runs: pl.DataFrame) -> dict[str, tuple[list[str], list[str]]]:
    """Which arms are better than random scheduling, and which are worse, by the paired tests."""
    labels = [arm.label for arm in plan.arms]
    if REFERENCE not in labels or len(plan.seeds) < LEAST_SEEDS:
        return {}
    found = {}
    for quantity, name in (("late_accuracy", "accuracy"), ("energy_j", "energy")):
        gaps, better = compared(runs, quantity, REFERENCE, labels), QUANTITIES[quantity].better
        said = {label: verdict for label, (_, verdict) in gaps.items()}
        if any(verdict != NO_SEED for verdict in said.values()):
            worse = {HIGHER, LOWER} - {better}
            found[name] = (
                [label for label, verdict in said.items() if verdict == better],
                [label for label, verdict in said.items() if verdict in worse],
            )
    return found


def _budget(summary: pl.DataFrame) -> Facts:
    rows = _values(summary, "energy_over_budget")
    if rows.is_empty():
        return {}
    least = rows.sort("mean").row(0, named=True)
    return {"within": rows.filter(pl.coalesce("high", "mean") <= 1)["arm"].to_list(), **least}


def _reached(plan: Plan, summary: pl.DataFrame, percent: int) -> Facts:
    """Fastest and cheapest among the arms that got there with every seed: a mean over some seeds would flatter."""
    reached = _values(summary, f"reached_{percent}")
    if reached.is_empty():
        return {}
    always = reached.filter(pl.col("mean") == 1, pl.col("n") == len(plan.seeds))["arm"].to_list()
    found: Facts = {"some": reached.filter(pl.col("mean") > 0)["arm"].to_list(), "always": len(always)}
    if always:
        energy, by = QUANTITIES[f"joules_to_{percent}"], pl.col("arm").is_in(always)
        fast, rounds = _firsts(_values(summary, f"rounds_to_{percent}").filter(by))
        cheap, joules = _firsts(_values(summary, f"joules_to_{percent}").filter(by))
        found |= {"fast": fast, "rounds": rounds, "cheap": cheap, "energy": joules * energy.scale, "unit": energy.unit}
    return found


def _firsts(table: pl.DataFrame) -> tuple[list[str], float]:
    """Those with the least mean, all of them, and that mean."""
    table = table.sort("mean")
    least = float(table["mean"][0])
    return table.filter(pl.col("mean") <= least * (1 + 1e-9))["arm"].to_list(), least


def _drops(summary: pl.DataFrame) -> Facts:
    rows = _values(summary, "drops").sort("mean", descending=True, maintain_order=True)
    return {} if rows.is_empty() else rows.row(0, named=True)
