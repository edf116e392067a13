"""What a leaderboard's numbers say, in sentences: made from the numbers alone, and no ranking without a test."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from feelstream.studies.pages import front_of, worlds
from feelstream.studies.plans import Plan
from feelstream.studies.results import HIGHER, LEAST_SEEDS, LOWER, NO_SEED, QUANTITIES, cell, verdicts

REFERENCE = "random"


def discussion(plan: Plan, runs: pl.DataFrame, summary: pl.DataFrame) -> list[str]:
    """Sentences on accuracy, energy, the front, the budget, speed and drops, each where there are numbers for it.

    runs: `comparison.per_run`; summary: `comparison.summarise` of them.
    """
    said = [_best(plan, runs, summary, "late_accuracy", "Highest accuracy at the end")]
    said += [_best(plan, runs, summary, "energy_j", "Least energy")]
    said += [_front(plan, summary), _against_random(plan, runs), _budget(summary)]
    said += [_reached(plan, summary, percent) for percent in (80, 90)] + [_drops(summary)]
    return [sentence for sentence in said if sentence]


def _values(summary: pl.DataFrame, quantity: str) -> pl.DataFrame:
    return summary.filter(pl.col("quantity") == quantity, pl.col("n") > 0)


def _best(plan: Plan, runs: pl.DataFrame, summary: pl.DataFrame, quantity: str, words: str) -> str:
    """The arm with the best mean, and all that the tests, corrected for their number, cannot tell from it."""
    rows, measure = _values(summary, quantity), QUANTITIES[quantity]
    if len(rows) < 2:
        return ""
    best = rows.sort("mean", descending=measure.better == "higher", maintain_order=True).row(0, named=True)
    value = f"{cell(best, len(plan.seeds))} {measure.unit}"
    if len(plan.seeds) < LEAST_SEEDS:
        return f"{words}: `{best['arm']}` ({value}); fewer than {LEAST_SEEDS} seeds give no ranking."
    said = verdicts(runs, quantity, best["arm"], rows["arm"].to_list())
    level = [arm for arm, verdict in said.items() if verdict not in (HIGHER, LOWER)]
    others = f"no difference is shown for: {_names(level)}" if level else "all others are worse"
    return f"{words}: `{best['arm']}` ({value}); {others}."


def _front(plan: Plan, summary: pl.DataFrame) -> str:
    sentences = []
    for title, points in worlds(plan, summary):
        where = "" if len(worlds(plan, summary)) == 1 else f" ({title})"
        equals: dict[tuple[float, float], list[str]] = {}  # settings that make no difference on a board are one point
        for point in front_of(points):
            equals.setdefault((point.energy_mj, point.accuracy), []).append(f"`{point.arm}`")
        listed = ", ".join(
            f"{' = '.join(arms)} ({energy_mj:.3g} mJ, {accuracy:.1f} %)"
            for (energy_mj, accuracy), arms in equals.items()
        )
        sentences.append(f"On the Pareto front of the means{where}, from the cheapest: {listed}.")
    return " ".join(sentences)


def _against_random(plan: Plan, runs: pl.DataFrame) -> str:
    """Which arms are better than random scheduling, by the paired tests."""
    labels = [arm.label for arm in plan.arms]
    if REFERENCE not in labels or len(plan.seeds) < LEAST_SEEDS:
        return ""
    parts = []
    for quantity in ("late_accuracy", "energy_j"):
        measure = QUANTITIES[quantity]
        found = verdicts(runs, quantity, REFERENCE, labels)
        if any(verdict != NO_SEED for verdict in found.values()):
            better = [label for label, verdict in found.items() if verdict == measure.better]
            worse = [label for label, verdict in found.items() if verdict in {HIGHER, LOWER} - {measure.better}]
            name = "accuracy" if quantity == "late_accuracy" else "energy"
            parts.append(f"{name} is better for {_names(better)} and worse for {_names(worse)}")
    return f"Against `{REFERENCE}`, {'; '.join(parts)}; for the rest, no difference is shown." if parts else ""


def _budget(summary: pl.DataFrame) -> str:
    rows = _values(summary, "energy_over_budget")
    if rows.is_empty():
        return ""
    within = rows.filter(pl.coalesce("high", "mean") <= 1)["arm"].to_list()
    if within:
        return f"Within the energy budget on average: {_names(within)}; all others exceed it or may do so."
    least = rows.sort("mean").row(0, named=True)
    return f"No policy surely keeps the energy budget on average; `{least['arm']}` spends {least['mean']:.2f} times it."


def _reached(plan: Plan, summary: pl.DataFrame, percent: int) -> str:
    """Fastest and cheapest among the arms that got there with every seed: a mean over some seeds would flatter."""
    reached = _values(summary, f"reached_{percent}")
    if reached.is_empty():
        return ""
    some = reached.filter(pl.col("mean") > 0)["arm"].to_list()
    always = reached.filter(pl.col("mean") == 1, pl.col("n") == len(plan.seeds))["arm"].to_list()
    every = [
        _values(summary, f"{what}_to_{percent}").filter(pl.col("arm").is_in(always)).sort("mean")
        for what in ("rounds", "joules")
    ]
    if not some:
        return f"No policy reached {percent} % with any seed."
    if not always:
        return f"No policy reached {percent} % with every seed; {_names(some)} reached it with some."
    energy = QUANTITIES[f"joules_to_{percent}"]
    (fast, rounds), (cheap, joules) = (_first(table) for table in every)
    return (
        f"{len(every[0])} of {len(plan.arms)} policies reached {percent} % with every seed. On average, {fast} took "
        f"the fewest rounds ({rounds:.1f}) and {cheap} the least energy ({joules * energy.scale:.3g} {energy.unit} per "
        "device)."
    )


def _first(table: pl.DataFrame) -> tuple[str, float]:
    """Those with the least mean, all of them, and that mean."""
    least = float(table["mean"][0])
    level = table.filter(pl.col("mean") <= least * (1 + 1e-9))["arm"].to_list()
    return (_names(level) if len(level) <= 3 else f"{len(level)} of them alike"), least


def _drops(summary: pl.DataFrame) -> str:
    rows = _values(summary, "drops").sort("mean", descending=True, maintain_order=True)
    if rows.is_empty():
        return ""
    most = rows.row(0, named=True)
    if most["mean"] == 0:
        return "Admission dropped nobody."
    share = f"{most['mean'] * 100:.3g} % of its scheduled devices"
    return f"Admission dropped the most under `{most['arm']}`: {share}."


def _names(arms: Sequence[str]) -> str:
    return ", ".join(f"`{arm}`" for arm in arms) or "none"
