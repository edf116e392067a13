"""Arms whose values per seed are given, compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
import pytest

from feelstream.display.quantities import QUANTITIES, Quantity
from feelstream.experiment import Arm, Plan, Results, comparison
from feelstream.experiment.measures import by_arm, cell
from feelstream.scenario.files import preset


def summary_of(values: Mapping[str, Mapping[str, Sequence[float | None]]]) -> tuple[Plan, pl.DataFrame, pl.DataFrame]:
    """Plan, runs and summary of arms whose values per seed are given."""
    seeds = len(next(iter(next(iter(values.values())).values())))
    arms = tuple(Arm(name, preset("tiny", [f"policy.V={n}.0"])) for n, name in enumerate(values, start=1))
    plan = Plan("x", arms, tuple(range(seeds)))
    rows = [
        {"arm": arm, "seed": seed} | {quantity: given.get(quantity, [None] * seeds)[seed] for quantity in all_of()}
        for arm, given in values.items()
        for seed in range(seeds)
    ]
    runs = pl.DataFrame(rows, schema={"arm": pl.String, "seed": pl.Int64} | dict.fromkeys(all_of(), pl.Float64))
    return plan, runs, comparison.summarise(Results(plan, {}, []), runs)


def cells(summary: pl.DataFrame, arm: str, shown: Sequence[Quantity], seeds: int) -> list[str]:
    """What a table says of an arm."""
    return [cell(by_arm(summary)[arm][quantity.name], seeds) for quantity in shown]


def all_of() -> tuple[str, ...]:
    return tuple(quantity.name for quantity in QUANTITIES.values() if quantity.table == "runs")


def spread(mean: float, step: float) -> list[float | None]:
    """Five seeds around a mean."""
    return [mean + step * offset for offset in (-2, -1, 0, 1, 2)]


@pytest.fixture
def three_arms():
    return summary_of(
        {
            "dear": {"late_accuracy": spread(0.91, 0.01), "energy_j": spread(4e-3, 1e-5),
                     "energy_over_budget": spread(8.0, 0.1), "rounds_to_80": [10.0, 40.0, 40.0, 40.0, 40.0],
                     "joules_to_80": spread(0.04, 0.01), "reached_80": [1.0, 0.0, 0.0, 0.0, 0.0],
                     "reached_90": [0.0] * 5, "rounds_to_90": [40.0] * 5, "drops": [0.0] * 5},
            "random": {"late_accuracy": spread(0.81, -0.01), "energy_j": spread(5e-3, 2e-5),
                       "energy_over_budget": spread(10.0, 0.2), "rounds_to_80": spread(25.0, 1.0),
                       "joules_to_80": spread(0.125, 0.01), "reached_80": [1.0] * 5, "reached_90": [0.0] * 5,
                       "rounds_to_90": [40.0] * 5, "drops": spread(0.03, 0.001)},
            "cheap": {"late_accuracy": spread(0.3, 0.02), "energy_j": spread(4e-4, 3e-6),
                      "energy_over_budget": spread(0.8, 0.01), "reached_80": [0.0] * 5, "rounds_to_80": [40.0] * 5,
                      "joules_to_80": [0.016] * 5, "reached_90": [0.0] * 5, "rounds_to_90": [40.0] * 5,
                      "drops": [0.0] * 5},
        }
    )  # fmt: skip
