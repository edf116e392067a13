"""What a reviewer asks of a leaderboard: quality under budget, cost to a target, robustness, and the best in hindsight.

Each protocol is one table over policies, made from the same runs as the boards; the last one from runs of its own
without learning, since its bound holds only where what is fresh does not depend on the schedule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import polars as pl

from feelstream.studies.plans import Plan, arms
from feelstream.studies.results import LEAST_SEEDS, QUANTITIES, Results, RunError, bound_of, by_arm, cell, counted

Board = tuple[str, str]  # scenario, data.eligible
Summaries = Mapping[Board, tuple[Plan, pl.DataFrame]]
EXOGENOUS = ("data.fresh=per_round", "data.eligible=any", "learning.engine=none", "trace.level=full")
TARGETS = (90, 80)  # %, the highest that anyone reached with every seed is used
NONE = "–"
SHOWN = 5  # policies in a table of costs


def markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [list(titles), ["---", *["---:"] * (len(titles) - 1)], *map(list, rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines) + "\n"


UNDER_BUDGET = ("late_accuracy", "accuracy_area", "energy_over_budget", "worst_device")


def opening(boards: Summaries) -> str:
    """The winners of each board: the most accurate within the budget, and at any cost."""
    rows = []
    for (name, reading), (_, summary) in boards.items():
        board = f"`{name}`" if len({other for other, _ in boards}) == len(boards) else f"`{name}`, eligible: {reading}"
        winners = [_winners(summary, rank(summary)) for rank in (within_budget, _most_accurate)]
        rows.append([board, *(cell for both in winners for cell in both)])
    if all(row[-1] == NONE for row in rows):
        return "Nothing was learned, so there is no most accurate policy.\n"
    fewest = min(len(plan.seeds) for plan, _ in boards.values())
    caution = f" With {counted(fewest, 'seed')} this is no ranking yet." if fewest < LEAST_SEEDS else ""
    said = (
        "The most accurate policies: of those that kept every device within its energy budget with every seed, and at "
        f"any cost.{caution}\n"
    )
    accuracy = QUANTITIES["late_accuracy"].column_title
    lines = [["scenario", "within the budget", accuracy, "at any cost", accuracy], ["---"] * 5, *rows]
    return f"{said}\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _winners(summary: pl.DataFrame, ranked: list[str]) -> tuple[str, str]:
    """Those in the first place, and their accuracy."""
    if not ranked:
        return NONE, NONE
    row = by_arm(summary)[ranked[0]]["late_accuracy"]
    return ", ".join(f"`{arm}`" for arm in _firsts(summary, ranked)), cell(row, row["n"])


def _firsts(summary: pl.DataFrame, ranked: list[str]) -> list[str]:
    """The first, and those with its very accuracy: settings that make no difference on a board share a place."""
    rows = by_arm(summary)
    means = [rows[arm]["late_accuracy"]["mean"] for arm in ranked]
    return [arm for arm, mean in zip(ranked, means, strict=True) if mean == means[0]]


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


def under_budget(plan: Plan, summary: pl.DataFrame) -> str:
    """The table of those that kept the budget."""
    rows, arms = by_arm(summary), within_budget(summary)
    if not arms:
        return "No policy kept every device within its budget with every seed.\n"
    cells = [[f"`{arm}`", *(cell(rows[arm][name], len(plan.seeds)) for name in UNDER_BUDGET)] for arm in arms]
    return markdown(["policy", *(QUANTITIES[name].column_title for name in UNDER_BUDGET)], cells)


def cost_to_target(plan: Plan, summary: pl.DataFrame) -> str:
    """The cheapest that reached a target with every seed; a mean over some seeds would flatter."""
    for percent in TARGETS:
        rows = [
            (found[f"joules_to_{percent}"]["mean"], arm, found)
            for arm, found in by_arm(summary).items()
            if found.get(f"reached_{percent}", {}).get("mean") == 1
            and found[f"reached_{percent}"]["n"] == len(plan.seeds)
        ]
        if rows:
            shown = (f"joules_to_{percent}", f"rounds_to_{percent}", "energy_over_budget")
            titles = ["policy", *(QUANTITIES[name].column_title for name in shown)]
            cells = [
                [f"`{arm}`", *(cell(found[name], len(plan.seeds)) for name in shown)]
                for _, arm, found in sorted(rows, key=lambda row: row[:2])[:SHOWN]
            ]
            return markdown(titles, cells)
    return f"No policy reached {TARGETS[-1]} % with every seed.\n"


def robustness(boards: Summaries) -> str:
    """How far each policy is behind the best of each board, at worst and on average, over the boards that it is on."""
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
    everywhere = {arm: gaps for arm, gaps in behind.items() if len(gaps) == len(boards)}
    if not everywhere:
        return "No policy is on all boards.\n"
    titles = ["policy", "points behind the best, worst board", "mean of the boards", "devices over budget, worst, %"]
    order = sorted(everywhere, key=lambda arm: max(everywhere[arm]))
    return markdown(
        titles,
        [[f"`{a}`", f"{max(behind[a]):.1f}", f"{fmean(behind[a]):.1f}", f"{max(over[a]):.0f}"] for a in order],
    )


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
    """By policy, seed by seed: how much less fresh data it used than any schedule could have with its energy, %."""
    found: dict[str, list[float]] = {}
    for arm, seed in results.finished:
        found.setdefault(arm, []).append(100 * bound_of(results.run(arm, seed)).gap)
    return found


def hindsight_table(results: Results) -> str:
    """The nearest to the bound first; where there is no bound, why not."""
    try:
        found = gaps_in_hindsight(results)
    except RunError as reason:
        return f"There is no bound here: {reason}.\n"
    rows = sorted(found.items(), key=lambda row: fmean(row[1]))
    cells = [[f"`{arm}`", f"{fmean(gaps):.1f}", f"{max(gaps):.1f}"] for arm, gaps in rows]
    return markdown(["policy", "gap to the bound, mean, %", "worst seed, %"], cells)
