"""What a reviewer asks of a leaderboard: quality under budget, cost to a target, robustness, and the best in hindsight.

Each protocol is one table over policies, made from the same runs as the boards; the last one from runs of its own
without learning, since its bound holds only where what is fresh does not depend on the schedule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from feelstream.studies.plans import Plan, arms
from feelstream.studies.results import Results, RunError, bound_of, by_arm, cell

Board = tuple[str, str]  # scenario, data.eligible
Summaries = Mapping[Board, tuple[int, pl.DataFrame]]  # of each board its seeds and its summary
Rows = list[list[str]]  # a policy and its cells
EXOGENOUS = ("data.fresh=per_round", "data.eligible=any", "learning.engine=none", "trace.level=full")
TARGETS = (90, 80)  # %, the highest that anyone reached with every seed is used
SHOWN = 5  # policies in a table; the rest is in leaderboard.csv
UNDER_BUDGET = ("late_accuracy", "accuracy_area", "energy_j", "worst_device")


def leaders(summary: pl.DataFrame) -> dict[str, Any]:
    """The most accurate within the budget and at any cost, by how much and at what share of the energy."""
    kept, ranked, rows = within_budget(summary), most_accurate(summary), by_arm(summary)
    found: dict[str, Any] = {"kept": kept, "first": alike(summary, kept), "best": alike(summary, ranked)}
    if not kept or kept[0] in found["best"]:
        return found
    own, best = rows[kept[0]], rows[ranked[0]]
    behind = 100 * (best["late_accuracy"]["mean"] - own["late_accuracy"]["mean"])
    return found | {"behind": behind, "times": best["energy_j"]["mean"] / own["energy_j"]["mean"]}


def alike(summary: pl.DataFrame, ranked: Sequence[str]) -> list[str]:
    """The first and those with the very same accuracy: settings that make no difference share a place."""
    late = {arm: row["late_accuracy"]["mean"] for arm, row in by_arm(summary).items() if arm in ranked}
    return [arm for arm in ranked if late[arm] == late[ranked[0]]]


def within_budget(summary: pl.DataFrame) -> list[str]:
    """The policies under which no device exceeded its budget with any seed, the most accurate first."""
    rows = by_arm(summary)
    return [
        arm
        for arm in most_accurate(summary)
        if all(rows[arm].get(name, {}).get("n") for name in (*UNDER_BUDGET, "devices_over_budget"))
        and rows[arm]["devices_over_budget"]["mean"] == 0
    ]


def most_accurate(summary: pl.DataFrame) -> list[str]:
    found = {arm: rows["late_accuracy"] for arm, rows in by_arm(summary).items() if "late_accuracy" in rows}
    return sorted((arm for arm, row in found.items() if row["n"]), key=lambda arm: -found[arm]["mean"])


def under_budget(seeds: int, summary: pl.DataFrame) -> tuple[Rows, Rows]:
    """Those that kept the budget, and the most accurate of all the others."""
    kept = within_budget(summary)
    first = [arm for arm in alike(summary, most_accurate(summary)) if arm not in kept]
    return _cells(seeds, summary, kept, UNDER_BUDGET), _cells(seeds, summary, first, UNDER_BUDGET)


def cost_to_target(seeds: int, summary: pl.DataFrame) -> Rows:
    """The cheapest that reached a target with every seed, by the median: target, energy and rounds."""
    for percent in TARGETS:
        costs = {
            arm: found[f"joules_to_{percent}"]["median"]
            for arm, found in by_arm(summary).items()
            if found.get(f"joules_to_{percent}", {}).get("reached") == seeds
        }
        if costs:
            cheapest = sorted(costs, key=lambda arm: costs[arm])[:SHOWN]
            shown = (f"joules_to_{percent}", f"rounds_to_{percent}")
            return [[name, str(percent), *cells] for name, *cells in _cells(seeds, summary, cheapest, shown)]
    return []


def _cells(seeds: int, summary: pl.DataFrame, shown: Sequence[str], names: Sequence[str]) -> Rows:
    rows = by_arm(summary)
    return [[f"`{arm}`", *(cell(rows[arm][name], seeds) for name in names)] for arm in shown]


def robustness(boards: Summaries) -> Rows:
    """How far each policy that is on all boards is behind the best of each, at worst; its largest share over budget."""
    behind: dict[str, list[float]] = {}
    over: dict[str, list[float]] = {}
    for _, summary in boards.values():
        rows = by_arm(summary)
        late = {arm: found["late_accuracy"]["mean"] for arm, found in rows.items() if "late_accuracy" in found}
        late = {arm: value for arm, value in late.items() if value is not None}
        for arm, value in late.items():
            behind.setdefault(_generic(arm), []).append(100 * (max(late.values()) - value))
            share = rows[arm].get("devices_over_budget", {}).get("mean")
            over.setdefault(_generic(arm), []).append(100 * (share or 0.0))
    everywhere = [arm for arm, gaps in behind.items() if len(gaps) == len(boards)]
    return [
        [f"`{arm}`", f"{max(behind[arm]):.1f}", f"{max(over[arm]):.0f}"]
        for arm in sorted(everywhere, key=lambda arm: max(behind[arm]))
    ]


def _generic(arm: str) -> str:
    """A tuned weight has another value on every board, and is the same entry: `balanced(price=…)`."""
    name, _, fields = arm.partition("(")
    field, _, value = fields.rstrip(")").partition("=")
    tuned = field in ("price", "V") and value[:1].isdigit() and "," not in value
    return f"{name}({field}=…)" if tuned else arm


def hindsight_plan(plan: Plan, name: str, changes: Sequence[str], policies: Sequence[str]) -> Plan:
    """The entries of a board in the world in which the bound holds: no learning, fresh is what came this round."""
    entered = arms(name, policies, [*changes, *EXOGENOUS])
    return Plan(f"hindsight {name}", entered, plan.seeds, study=plan.study)


def gaps_in_hindsight(results: Results) -> dict[str, list[float]]:
    """By policy, seed by seed: the share by which it used less fresh data than any schedule could with its energy.

    Empty where there is no bound.
    """
    found: dict[str, list[float]] = {}
    for arm, seed in results.finished:
        try:
            found.setdefault(arm, []).append(bound_of(results.run(arm, seed)).gap)
        except RunError:
            return {}
    return found


def hindsight(rows: pl.DataFrame) -> tuple[list[str], Rows]:
    """The scenarios, and the mean gap of each policy in all of them, %, the nearest to the bound first.

    rows: the table of the leaderboard.
    """
    known = rows.drop_nulls("gap_to_bound") if "gap_to_bound" in rows.columns else rows.clear()
    scenarios, gaps = known["scenario"].unique(maintain_order=True).to_list(), dict[str, list[float]]()
    for row in known.rows(named=True):
        gaps.setdefault(_generic(row["policy"]), []).append(100 * row["gap_to_bound"])
    everywhere = sorted((arm for arm in gaps if len(gaps[arm]) == len(scenarios)), key=lambda arm: max(gaps[arm]))
    return scenarios, [[f"`{arm}`", *(f"{gap:.1f}" for gap in gaps[arm])] for arm in everywhere]
