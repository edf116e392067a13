"""What the runs say: accuracy against training everyone, energy against the budget, and who exceeded it.

Two margins were fixed beforehand: late accuracy at most 1 point below that of training everyone, and accuracy over the
whole run at most 2. Either holds where a one-sided paired t-test rejects a larger loss at 5 %, after Holm's correction
over all scenarios and both margins of a policy. The reference has FedAvg. What a better server would do for everyone,
too, shows in the gap to everyone with the same server, which no margin is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from feelstream.studies.results import LEAST_SEEDS, LEVEL, Results, holm, interval, one_sided_p
from feelstream.studies.results import per_run as measures_of
from feelstream_studies.within_budget.configurations import REFERENCE, WITH, Key

MARGINS = {"late_accuracy": 0.01, "accuracy_area": 0.02}
MEASURES = ("late_accuracy", "accuracy_area", "energy_j", "energy_over_budget", "devices_over_budget", "worst_device")


def per_run(results: Results) -> pl.DataFrame:
    """One row per run: scenario, policy, seed and the MEASURES."""
    found = measures_of(results)
    keys = [Key.of(label) for label in found["arm"]]
    names = [pl.Series("scenario", [key.scenario for key in keys]), pl.Series("policy", [key.policy for key in keys])]
    return found.with_columns(names).select("scenario", "policy", "seed", *MEASURES)


def table_of(runs: pl.DataFrame) -> pl.DataFrame:
    """One row per scenario and policy: means with 95 % intervals, losses against everyone, and which margins hold."""
    rows = [
        _row(runs.filter(scenario=scenario), str(scenario), str(policy))
        for scenario, policy in runs.select("scenario", "policy").unique(maintain_order=True).iter_rows()
    ]
    return pl.DataFrame(_judged(rows), infer_schema_length=None)


def _row(runs: pl.DataFrame, scenario: str, policy: str) -> dict[str, Any]:
    own = runs.filter(policy=policy)
    row: dict[str, Any] = {"scenario": scenario, "policy": policy, "seeds": len(own)}
    for name in MEASURES:
        found = interval(own[name].drop_nulls())
        row |= {name: found.mean if found.n else None, f"{name}_low": found.low, f"{name}_high": found.high}
    _, _, server = policy.partition(WITH)
    same = f"{REFERENCE}{WITH}{server}"  # no run has it where the policy has FedAvg
    for name, margin in MARGINS.items():
        beside = interval(_gaps(runs, own, name, same) if policy != same else ())
        row |= {f"{name}_same": beside.mean if beside.n else None}
        row |= {f"{name}_same_low": beside.low, f"{name}_same_high": beside.high}
        gap = _gaps(runs, own, name, REFERENCE)
        found = interval(gap)
        row |= {f"{name}_gap": found.mean if found.n else None, f"{name}_gap_low": found.low}
        row |= {f"{name}_gap_high": found.high}
        row[f"{name}_p"] = one_sided_p(gap + margin) if len(gap) >= LEAST_SEEDS and policy != REFERENCE else None
    return row


def _gaps(runs: pl.DataFrame, own: pl.DataFrame, name: str, reference: str) -> np.ndarray:
    """What each seed's run has above the one of the reference with the same seed."""
    others = runs.filter(policy=reference).select("seed", other=name)
    pairs = own.join(others, on="seed").sort("seed")
    return (pairs[name] - pairs["other"]).drop_nulls().to_numpy()


def _judged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each row with the p values of its margins corrected within its policy, and whether they hold."""
    for policy in dict.fromkeys(row["policy"] for row in rows):
        own = [(row, name) for row in rows if row["policy"] == policy for name in MARGINS]
        tested = [(row, name) for row, name in own if row[f"{name}_p"] is not None]
        adjusted = holm([row[f"{name}_p"] for row, name in tested])
        for row, name in own:
            row[f"{name}_holds"] = None
        for (row, name), p in zip(tested, adjusted, strict=True):
            row[f"{name}_p"], row[f"{name}_holds"] = p, p <= 1 - LEVEL
    return rows


def held(table: pl.DataFrame, policy: str, measure: str) -> tuple[Sequence[str], Sequence[str]]:
    """The scenarios in which a margin holds for a policy, and those in which it is not shown to."""
    own = table.filter(policy=policy)
    holds = own[f"{measure}_holds"].cast(pl.Boolean).fill_null(False)
    return own.filter(holds)["scenario"].to_list(), own.filter(~holds)["scenario"].to_list()


def pairs(table: pl.DataFrame, policy: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The scenarios that have both a policy and training everyone, each with the row of everyone and its own."""
    rows = {(row["scenario"], row["policy"]): row for row in table.iter_rows(named=True)}
    names = table["scenario"].unique(maintain_order=True)
    both = [(name, rows.get((name, REFERENCE)), rows.get((name, policy))) for name in names]
    return [(name, everyone, own) for name, everyone, own in both if everyone and own]


def same_server(table: pl.DataFrame, policy: str) -> list[dict[str, Any] | None]:
    """For each of these scenarios, everyone with the policy's own server, if it was played with as many seeds."""
    _, _, server = policy.partition(WITH)
    rows = {row["scenario"]: row for row in table.filter(policy=f"{REFERENCE}{WITH}{server}").iter_rows(named=True)}
    both = [(rows.get(name), own) for name, _, own in pairs(table, policy)]
    return [row if row and row["seeds"] == own["seeds"] else None for row, own in both]
