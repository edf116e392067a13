"""How the page opens: what was run and what came of it, in three sentences."""

from __future__ import annotations

import numpy as np
import polars as pl

from feelstream.display.quantities import QUANTITIES, counted, number, significant
from feelstream.experiment import Plan
from feelstream.experiment.measures import with_interval
from feelstream.experiment.significance import verdicts
from feelstream.experiment.statistics import (
    HIGHER,
    LOWER,
    UNCLEAR,
    compare_arms,
    interval,
    per_run,
)
from feelstream.report.html.charts import Group

SIGNIFICANT = "significant at 5 %, corrected for the number of comparisons"


def sentences(plan: Plan, group: Group, rounds: pl.DataFrame) -> list[str]:
    """Three sentences on the arms of one group, which share their worlds; two where nothing was learned."""
    labels, names = [arm for arm, _ in group.arms], dict(group.arms)
    runs = per_run(rounds.filter(pl.col("arm").is_in(labels)))
    found = [arm for arm in labels if not runs.filter(arm=arm).is_empty()]
    if not found:
        return []
    system = plan.arm(found[0]).scenario.system
    size = f"{counted(system.devices, 'device')} and {counted(system.rounds, 'round')}"
    if len(found) == 1:
        seeds = runs.filter(arm=found[0])["seed"].to_list()
        who = f"One run of {names[found[0]]}" if len(seeds) == 1 else f"{names[found[0]]} ran"
        said = [f"{who} with {size}, {f'seed {seeds[0]}' if len(seeds) == 1 else f'over {len(seeds)} seeds'}."]
    else:
        most = max(runs.filter(arm=arm).height for arm in found)
        said = [f"{len(found)} configurations ran with {size}, each over the same {counted(most, 'seed')}."]
    accuracy = _accuracy(runs, found, names)
    return [*said, *([accuracy] if accuracy else []), _energy(plan, runs, found, names)]


def _accuracy(runs: pl.DataFrame, arms: list[str], names: dict[str, str]) -> str:
    means = {arm: runs.filter(arm=arm)["late_accuracy"].mean() for arm in arms}
    known = {arm: float(mean) for arm, mean in means.items() if isinstance(mean, float)}
    if not known:
        return ""
    best = max(known, key=lambda arm: known[arm])
    own = interval(runs.filter(arm=best)["late_accuracy"].drop_nulls() * 100)
    if len(known) == 1:
        return f"Over the last fifth of the run, its test accuracy is {with_interval(own, 1, '%')}."
    text = f"Over the last fifth of the run, {names[best]} is the most accurate, with {with_interval(own, 1, '%')}"
    first = arms[0]
    other = max((arm for arm in known if arm != first), key=lambda arm: known[arm]) if best == first else first
    gap = compare_arms(runs, "late_accuracy", best, other)
    verdict = verdicts(runs, "late_accuracy", first, list(known))[other if best == first else best]
    words = {HIGHER: SIGNIFICANT, LOWER: SIGNIFICANT, UNCLEAR: f"not {SIGNIFICANT}"}.get(verdict, verdict)
    return f"{text}; its lead over {names[other]} is {number(gap.mean * 100, 1)} percentage points ({words})."


def _energy(plan: Plan, runs: pl.DataFrame, arms: list[str], names: dict[str, str]) -> str:
    spent = {arm: float(np.mean(runs.filter(arm=arm)["energy_j"].to_numpy())) for arm in arms}

    energy = QUANTITIES["energy_j"]

    def words(arm: str) -> str:
        budget = float(np.mean(plan.arm(arm).scenario.system.energy_budget_j))
        share = f", {significant(spent[arm] / budget, 3)} × the budget" if budget else ""
        return f"{significant(spent[arm] * energy.scale, 3)} {energy.unit} per device and round{share}"

    if len(arms) == 1:
        return f"It spends {words(arms[0])}."
    least, most = min(arms, key=lambda arm: spent[arm]), max(arms, key=lambda arm: spent[arm])
    return f"{names[least]} spends the least, {words(least)}; {names[most]} the most, {words(most)}."
