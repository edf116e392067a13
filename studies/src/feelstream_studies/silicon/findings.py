"""What the runs say: what each policy saves under each law, what is left of it, and which rankings flip.

The measure is the energy per update that arrived, over the whole run: a policy that trains fewer devices saves nothing
by that. A saving is 1 − own/random's, seed by seed under the same law, so scaling a law changes no saving.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np
import polars as pl

from feelstream.studies.results import LEAST_SEEDS, LEVEL, Results, holm, interval, student
from feelstream.studies.results import per_run as measures_of
from feelstream_studies.silicon.configurations import CUBIC, REFERENCE, Key

GROUP = ("scenario", "budget", "law", "policy")


def per_run(results: Results) -> pl.DataFrame:
    """One row per run: the key, seed, energy_j per device and round, updates and importance per round, J per update.

    per_update_j is null where no update arrived, and accuracy (of the last fifth of the rounds) where none was trained.
    """
    rounds = results.rounds()
    accuracy = measures_of(results).select("arm", "seed", accuracy="late_accuracy")
    table = (
        rounds.group_by("arm", "seed", maintain_order=True)
        .agg(
            energy_j=pl.col("energy_mean_j").mean(),
            updates=pl.col("transmitted").mean(),
            importance=pl.col("importance_sum").mean(),
        )
        .join(accuracy, on=["arm", "seed"], how="left", maintain_order="left")
    )
    devices = {arm.label: arm.scenario.system.devices for arm in results.plan.arms}
    keys = pl.DataFrame([{"arm": label, **vars(Key.of(label)), "devices": devices[label]} for label in devices])
    spent = pl.col("energy_j") * pl.col("devices") / pl.col("updates")
    return table.join(keys, on="arm", maintain_order="left").select(
        *GROUP,
        "seed",
        "energy_j",
        "updates",
        "importance",
        "accuracy",
        per_update_j=pl.when(pl.col("updates") > 0).then(spent),
    )


def savings(runs: pl.DataFrame) -> pl.DataFrame:
    """One row per configuration: saving with low and high, its n, the means of a run, and what is left of the saving.

    left: the saving over that under the cubic law; null where the latter may be 0, or nobody trained.
    """
    rows = [_saving(runs, group) for group in runs.select(GROUP).unique(maintain_order=True).rows(named=True)]
    table = pl.DataFrame(rows, infer_schema_length=None)
    cubic = table.filter(pl.col("law") == CUBIC, pl.col("low") > 0)
    cubic = cubic.select("scenario", "budget", "policy", whole="saving")
    joined = table.join(cubic, on=["scenario", "budget", "policy"], how="left", maintain_order="left")
    return joined.with_columns(left=pl.col("saving") / pl.col("whole")).drop("whole")


def _saving(runs: pl.DataFrame, group: dict[str, str]) -> dict[str, object]:
    own = runs.filter(**group)
    other = runs.filter(**{**group, "policy": REFERENCE}).select("seed", reference="per_update_j")
    both = own.join(other, on="seed").drop_nulls(["per_update_j", "reference"]).sort("seed")
    found = interval((1 - both["per_update_j"] / both["reference"]).to_numpy())
    accuracy = interval(own["accuracy"].drop_nulls())
    return {
        **group,
        "saving": found.mean if found.n else None,
        "low": found.low,
        "high": found.high,
        "seeds": found.n,
        "per_update_j": both["per_update_j"].mean(),
        "updates": own["updates"].mean(),
        "importance": own["importance"].mean(),
        "accuracy": accuracy.mean if accuracy.n else None,
        "accuracy_low": accuracy.low,
        "accuracy_high": accuracy.high,
    }


@dataclass(frozen=True)
class Ranking:
    """How the order of policies by energy per update changes from the cubic law to another."""

    scenario: str
    law: str
    agreement: float  # Kendall's τ of the means
    flips: tuple[tuple[str, str], ...]  # (cheaper under the cubic law, cheaper under this one), both beyond doubt
    lost: int  # pairs that differ beyond doubt under the cubic law, and do not under this one
    pairs: int


def rankings(runs: pl.DataFrame, scenario: str, budget: str, laws: Sequence[str]) -> list[Ranking]:
    """Every law but the cubic against it; pairs by paired t-tests at 5 % with Holm's correction over all pairs."""
    some = runs.filter(scenario=scenario, budget=budget)
    tables = {law: _by_policy(some.filter(law=law)) for law in laws}
    names = [name for name in tables[CUBIC] if all(name in table for table in tables.values())]
    said = {law: _signs(tables[law], names) for law in laws}
    found = []
    for law in laws:
        if law == CUBIC:
            continue
        before, after = said[CUBIC], said[law]
        flips = [(a, b) if sign < 0 else (b, a) for (a, b), sign in before.items() if sign * after[a, b] < 0]
        lost = sum(before[pair] != 0 and after[pair] == 0 for pair in before)
        agreement = _kendall(tables[CUBIC], tables[law], names)
        found.append(Ranking(scenario, law, agreement, tuple(flips), lost, len(before)))
    return found


def _by_policy(runs: pl.DataFrame) -> dict[str, np.ndarray]:
    """J per update by seed, of the policies of which every run has some."""
    tables = {str(policy): own.sort("seed")["per_update_j"] for (policy,), own in runs.group_by("policy")}
    return {name: values.to_numpy() for name, values in sorted(tables.items()) if values.null_count() == 0}


def _signs(table: dict[str, np.ndarray], names: Sequence[str]) -> dict[tuple[str, str], int]:
    """−1 where the first of a pair is cheaper beyond doubt, 1 where it is dearer, else 0."""
    pairs = list(combinations(names, 2))
    gaps = [table[a] - table[b] for a, b in pairs]
    if not gaps or len(gaps[0]) < LEAST_SEEDS:
        return dict.fromkeys(pairs, 0)
    p = holm([_p_value(gap) for gap in gaps])
    return {
        pair: int(np.sign(gap.mean())) if adjusted <= 1 - LEVEL else 0
        for pair, gap, adjusted in zip(pairs, gaps, p, strict=True)
    }


def _p_value(gap: np.ndarray) -> float:
    """Two-sided, of Student's t; 1 where all seeds agree to the last digit."""
    spread = float(gap.std(ddof=1))
    alike = spread <= 1e-12 * float(np.abs(gap).max(initial=0.0))
    return 1.0 if alike else 2 * student(abs(float(gap.mean())), spread / sqrt(len(gap)), len(gap))


def _kendall(a: dict[str, np.ndarray], b: dict[str, np.ndarray], names: Sequence[str]) -> float:
    """(concordant − discordant) pairs over all pairs."""
    signs = [np.sign(a[x].mean() - a[y].mean()) * np.sign(b[x].mean() - b[y].mean()) for x, y in combinations(names, 2)]
    return float(np.mean(signs)) if signs else float("nan")
