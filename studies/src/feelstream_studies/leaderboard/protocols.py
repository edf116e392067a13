"""What a reviewer asks of a leaderboard: quality under budget, cost to a target, robustness, and the best in hindsight.

Each protocol is one table over policies, made from the same runs as the boards; the last one from runs of its own
without learning, since its bound holds only where what is fresh does not depend on the schedule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import polars as pl

from feelstream.studies.plans import Plan, arms
from feelstream.studies.results import QUANTITIES, Results, RunError, bound_of, by_arm, cell

Board = tuple[str, str]  # scenario, data.eligible
Summaries = Mapping[Board, tuple[Plan, pl.DataFrame]]
Table = tuple[list[str], list[list[str]]]  # titles, rows; without rows where no policy is in it
EXOGENOUS = ("data.fresh=per_round", "data.eligible=any", "learning.engine=none", "trace.level=full")
TARGETS = (90, 80)  # %, the highest that anyone reached with every seed is used
NONE = "–"
SHOWN = 5  # policies in a table of costs
UNDER_BUDGET = ("late_accuracy", "accuracy_area", "energy_over_budget", "worst_device")


def winners(boards: Summaries) -> list[list[str]]:
    """Of each board the most accurate within the budget, and at any cost; none where nothing was learned."""
    rows = []
    for (name, reading), (_, summary) in boards.items():
        board = f"`{name}`" if len({other for other, _ in boards}) == len(boards) else f"`{name}`, eligible: {reading}"
        rows.append([board, *_firsts(summary, within_budget(summary)), *_firsts(summary, _most_accurate(summary))])
    return rows if any(row[-1] != NONE for row in rows) else []


def _firsts(summary: pl.DataFrame, ranked: list[str]) -> tuple[str, str]:
    """The first with its accuracy, and those with the very same: settings that make no difference share a place."""
    if not ranked:
        return NONE, NONE
    rows = {arm: found["late_accuracy"] for arm, found in by_arm(summary).items() if arm in ranked}
    first = rows[ranked[0]]
    alike = [f"`{arm}`" for arm in ranked if rows[arm]["mean"] == first["mean"]]
    return ", ".join(alike), cell(first, first["n"])


def within_budget(summary: pl.DataFrame) -> list[str]:
    """The policies under which no device exceeded its budget with any seed, the most accurate first."""
    rows = by_arm(summary)
    return [
        arm
        for arm in _most_accurate(summary)
        if all(rows[arm].get(name, {}).get("n") for name in (*UNDER_BUDGET, "devices_over_budget"))
        and rows[arm]["devices_over_budget"]["mean"] == 0
    ]


def _most_accurate(summary: pl.DataFrame) -> list[str]:
    found = {arm: rows["late_accuracy"] for arm, rows in by_arm(summary).items() if "late_accuracy" in rows}
    return sorted((arm for arm, row in found.items() if row["n"]), key=lambda arm: -found[arm]["mean"])


def under_budget(plan: Plan, summary: pl.DataFrame) -> Table:
    """The table of those that kept the budget."""
    return _table(plan, summary, within_budget(summary), UNDER_BUDGET)


def cost_to_target(plan: Plan, summary: pl.DataFrame) -> Table:
    """The cheapest that reached a target with every seed; a mean over some seeds would flatter."""
    for percent in TARGETS:
        costs = {
            arm: found[f"joules_to_{percent}"]["mean"]
            for arm, found in by_arm(summary).items()
            if found.get(f"reached_{percent}", {}).get("mean") == 1
            and found[f"reached_{percent}"]["n"] == len(plan.seeds)
        }
        if costs:
            cheapest = sorted(costs, key=lambda arm: (costs[arm], arm))[:SHOWN]
            shown = (f"joules_to_{percent}", f"rounds_to_{percent}", "energy_over_budget")
            return _table(plan, summary, cheapest, shown)
    return [], []


def _table(plan: Plan, summary: pl.DataFrame, shown: Sequence[str], names: Sequence[str]) -> Table:
    rows = by_arm(summary)
    cells = [[f"`{arm}`", *(cell(rows[arm][name], len(plan.seeds)) for name in names)] for arm in shown]
    return ["policy", *(QUANTITIES[name].column_title for name in names)], cells


def robustness(boards: Summaries) -> list[list[str]]:
    """How far each policy is behind the best of each board, at worst and on average, over the boards that it is on.

    And the largest share of devices over budget. Only policies that are on all boards have a row.
    """
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
        [f"`{arm}`", f"{max(behind[arm]):.1f}", f"{fmean(behind[arm]):.1f}", f"{max(over[arm]):.0f}"]
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
    """By policy, seed by seed: how much less fresh data it used than any schedule could have with its energy, %.

    The nearest to the bound first.
    """
    found: dict[str, list[float]] = {}
    for arm, seed in results.finished:
        found.setdefault(arm, []).append(100 * bound_of(results.run(arm, seed)).gap)
    return dict(sorted(found.items(), key=lambda row: fmean(row[1])))


def hindsight(results: Results) -> list[list[str]] | str:
    """The gaps as rows of a table; where there is no bound, why not."""
    try:
        found = gaps_in_hindsight(results)
    except RunError as reason:
        return str(reason)
    return [[f"`{arm}`", f"{fmean(gaps):.1f}", f"{max(gaps):.1f}"] for arm, gaps in found.items()]
