"""Which V? Energy, importance and queues over a weight, on common random numbers, and the weight that a budget allows.

A policy that weighs energy against learning has one number for it: V (more is dearer) or price (more is cheaper). All
of its values meet the same worlds, seed by seed, so that their differences are those of the weight alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log
from pathlib import Path

import numpy as np
import polars as pl

from feelstream.errors import ScenarioError
from feelstream.experiment import leaderboard
from feelstream.experiment.plan import Arm, Plan
from feelstream.experiment.statistics import Interval, interval
from feelstream.run import simulate
from feelstream.scenario import Scenario
from feelstream.scenario.files import from_dict, load

WEIGHTS = ("V", "price")  # fields that weigh energy against learning, of whatever policy
TUNING_SEEDS = (1000, 1001)  # none of those that a leaderboard is played with
STEPS = 8  # halvings of the logarithm of the weight
RANGE = (1e-7, 1e3)  # weights between which one is searched


def weight_of(scenario: Scenario) -> str | None:
    """The field of the scenario's policy that weighs energy against learning; None where it has none."""
    for field in WEIGHTS:
        if field in type(scenario.policy).model_fields:
            return field
    return None


def with_weight(scenario: Scenario, weight: float) -> Scenario:
    """The scenario with another weight; ScenarioError where its policy has none."""
    field = weight_of(scenario)
    if field is None:
        raise ScenarioError(
            f"policy.name: '{scenario.policy.plugin_name()}' has no weight to tune; policies with one have a field "
            f"{' or '.join(WEIGHTS)}"
        )
    return from_dict(scenario.as_dict(), [f"policy.{field}={weight!r}"])


def schedule_only(scenario: Scenario) -> Scenario:
    """The same without learning and with a row per round only: what energy and queues need."""
    return from_dict(scenario.as_dict(), ["learning.engine=none", "trace.level=rounds"])


def energy_j(scenario: Scenario, seeds: Sequence[int]) -> float:
    """Mean energy per device and round over the run, without learning."""
    quick = schedule_only(scenario)
    return float(np.mean([simulate(quick, seed).rounds["energy_mean_cum_j"][-1] for seed in seeds]))


def match_energy(scenario: Scenario, target_j: float, seeds: Sequence[int] = TUNING_SEEDS) -> float:
    """The weight with which the policy spends nearest to target_j, without learning; two significant digits.

    Energy is taken to rise with V, and to fall with price, so the weight is found by halving; of the weights met on
    the way, the one whose energy is nearest in ratio.
    """
    cheaper_with_more = weight_of(scenario) == "price"
    met: dict[float, float] = {}

    def distance(weight: float) -> float:
        return abs(log(max(met[weight], 1e-300) / target_j))

    low, high = (log(end) for end in RANGE)
    for _ in range(STEPS):
        middle = (low + high) / 2
        weight = float(f"{exp(middle):.1e}")
        if weight not in met:
            met[weight] = energy_j(with_weight(scenario, weight), seeds)
        if (met[weight] > target_j) == cheaper_with_more:
            low = middle
        else:
            high = middle
    return min(met, key=distance)


def entries(source: str | Path, overrides: Sequence[str]) -> list[str]:
    """What a leaderboard enters: every policy, its variants, and those with a weight at the energy of the first.

    That is `lyapunov` with the weight of the scenario. The rule is the same for all: `match_energy`.
    """
    scenario = load(source, overrides)
    variants = [text.replace("=K)", f"={scenario.system.devices})") for text in leaderboard.VARIANTS]
    first = leaderboard.WEIGHED[0]
    reference = load(source, [*overrides, f"policy.name={first}"])
    target_j = energy_j(reference, TUNING_SEEDS)
    tuned = []
    for name in leaderboard.WEIGHED[1:]:
        own = load(source, [*overrides, f"policy.name={name}"])
        tuned.append(f"{name}({weight_of(own)}={match_energy(own, target_j)!r})")
    return ["all", *variants, *tuned]


@dataclass(frozen=True)
class Trade:
    """What one weight brought, each an interval over seeds."""

    weight: float
    energy_j: Interval  # per device and round
    worst_over_budget: Interval  # of the devices the one with the greatest mean energy over its budget
    importance: Interval  # scheduled per round
    queue_j: Interval  # mean over devices, at the end
    accuracy: Interval | None  # over the last fifth of the run; None without learning


def tuning_plan(scenario: Scenario, weights: Sequence[float], seeds: Sequence[int], learn: bool) -> Plan:
    """An arm for each weight."""
    if not learn:
        scenario = from_dict(scenario.as_dict(), ["learning.engine=none"])
    field = weight_of(scenario)
    arms = tuple(Arm(f"{field}={weight:g}", with_weight(scenario, weight)) for weight in sorted(set(weights)))
    return Plan("tune", arms, tuple(seeds))


def recommended(
    trades: Sequence[Trade], more_is_cheaper: bool, keeps: Callable[[Trade], bool]
) -> tuple[Trade | None, Trade]:
    """(the weight that asks for most importance and still keeps the budget, None where none does; the cheapest)."""
    ordered = sorted(trades, key=lambda trade: trade.weight, reverse=more_is_cheaper)
    kept: Trade | None = None
    for trade in ordered:  # from the cheapest on, and no further than the first that fails
        if not keeps(trade):
            break
        kept = trade
    return kept, min(trades, key=lambda trade: trade.energy_j.mean)


def trade_off(
    weight: float, rounds: Sequence[pl.DataFrame], over_budget: Sequence[float], late: Sequence[float] | None
) -> Trade:
    """One weight's runs, one table of rounds and one worst ratio per seed, as intervals."""
    last = [table.row(-1, named=True) for table in rounds]
    return Trade(
        weight,
        interval([row["energy_mean_cum_j"] for row in last]),
        interval([value for value in over_budget if isfinite(value)]),
        interval([float(table["importance_sum"].mean() or 0.0) for table in rounds]),  # type: ignore[arg-type]
        interval([row["queue_mean_j"] for row in last]),
        interval(late) if late else None,
    )
