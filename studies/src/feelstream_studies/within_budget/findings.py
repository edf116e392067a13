"""What the runs say: accuracy, energy and devices a round, and gaps to other ways, seed by seed, with 95 % intervals.

A gap is within a margin where its whole interval is: the mean may lose so much, and chance no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from feelstream.studies.results import Results, interval
from feelstream.studies.results import per_run as measures_of
from feelstream_studies.within_budget.configurations import EVERYONE, FEDAVG, LABELS, Key

ACCURACIES = ("late_accuracy", "accuracy_area")
MEASURES = (
    *ACCURACIES, "energy_j", "energy_over_budget", "devices_over_budget", "worst_device", "devices_a_round",
)  # fmt: skip
AGAINST = {"everyone": EVERYONE, "fedavg": FEDAVG, "labels": LABELS}  # the suffix of a gap, and what it is to
Row = dict[str, Any]


def per_run(results: Results) -> pl.DataFrame:
    """One row per run: scenario, way, seed and the MEASURES."""
    scheduled = (
        results.rounds().group_by("arm", "seed").agg(devices_a_round=pl.col("scheduled").cast(pl.Float64).mean())
    )
    found = measures_of(results).join(scheduled, on=["arm", "seed"], maintain_order="left")
    keys = [Key.of(label) for label in found["arm"]]
    names = [pl.Series("scenario", [key.scenario for key in keys]), pl.Series("way", [key.way for key in keys])]
    return found.with_columns(names).select("scenario", "way", "seed", *MEASURES)


def table_of(runs: pl.DataFrame) -> pl.DataFrame:
    """One row per scenario and way: seeds, means and gaps with their intervals."""
    pairs = runs.select("scenario", "way").unique(maintain_order=True)
    return pl.DataFrame([_row(runs, *pair) for pair in pairs.iter_rows()], infer_schema_length=None)


def _row(runs: pl.DataFrame, scenario: str, way: str) -> Row:
    there = runs.filter(scenario=scenario)
    own = there.filter(way=way)
    row: Row = {"scenario": scenario, "way": way, "seeds": len(own)}
    for name in MEASURES:
        row |= _spread(name, own[name].drop_nulls())
    for suffix, other in AGAINST.items():
        for name in ACCURACIES:
            both = own.join(there.filter(way=other), on="seed", suffix="_other").sort("seed")
            gaps = (
                (both[name] - both[f"{name}_other"]).drop_nulls() if way != other else pl.Series([], dtype=pl.Float64)
            )
            row |= _spread(f"{name}_{suffix}", gaps)
    return row


def _spread(name: str, values: pl.Series) -> Row:
    found = interval(values)
    return {name: found.mean if found.n else None, f"{name}_low": found.low, f"{name}_high": found.high}


def row_of(table: pl.DataFrame, scenario: str, way: str) -> Row | None:
    return next(iter(table.filter(scenario=scenario, way=way).to_dicts()), None)


def within(table: pl.DataFrame, way: str, gap: str, points: float, scenarios: Sequence[str]) -> tuple[list[str], ...]:
    """Scenarios in which a whole interval loses at most so many points, and those in which the mean alone does."""
    rows = [row for name in scenarios if (row := row_of(table, name, way)) and row[gap] is not None]
    whole = [row["scenario"] for row in rows if row[f"{gap}_low"] is not None and 100 * row[f"{gap}_low"] >= -points]
    return whole, [row["scenario"] for row in rows if row["scenario"] not in whole and 100 * row[gap] >= -points]
