"""Which V? Energy, importance and queues over a weight, on common random numbers, and the weight that a budget allows;
and which change of a scenario would keep its budget: each is planned on the same world, none is guessed.

A policy that weighs energy against learning has one number for it: V (more is dearer) or price (more is cheaper). All
of its values are run on the same worlds, seed by seed, so that their differences are those of the weight alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from feelstream.display.quantities import QUANTITIES, counted, significant
from feelstream.errors import FeelstreamError, ScenarioError
from feelstream.experiment.plan import Arm, Plan
from feelstream.experiment.runs import of_rounds
from feelstream.experiment.statistics import Interval, interval
from feelstream.experiment.store import Results
from feelstream.run import simulate
from feelstream.scenario import Scenario
from feelstream.scenario.files import from_dict

WEIGHTS = ("V", "price")  # fields that weigh energy against learning, of whatever policy


def evenly(low: float, high: float, count: int) -> list[float]:
    """Weights at even distances on a logarithmic scale, to three digits."""
    return [float(f"{weight:.2e}") for weight in np.geomspace(low, high, count)]


def weight_of(scenario: Scenario) -> str:
    """The field of the scenario's policy that weighs energy against learning; ScenarioError where it has none."""
    for field in WEIGHTS:
        if field in type(scenario.policy).model_fields:
            return field
    raise ScenarioError(
        f"policy.name: '{scenario.policy.plugin_name()}' has no weight to tune; policies with one have a field "
        f"{' or '.join(WEIGHTS)}"
    )


def with_weight(scenario: Scenario, weight: float) -> Scenario:
    """The scenario with another weight."""
    return from_dict(scenario.as_dict(), [f"policy.{weight_of(scenario)}={weight!r}"])


def schedule_only(scenario: Scenario) -> Scenario:
    """The same without learning and with a row per round only: what energy and queues need."""
    return from_dict(scenario.as_dict(), ["learning.engine=none", "trace.level=rounds"])


# Each field of a trade, and the quantity that says how it is shown.
MEASURED = {
    "energy_j": "energy_mean_cum_j", "importance": "importance_sum", "queue_j": "queue_mean_j",
    "accuracy": "late_accuracy",
}  # fmt: skip


@dataclass(frozen=True)
class Trade:
    """What one weight brought, each an interval over seeds."""

    weight: float
    energy_j: Interval  # per device and round
    importance: Interval  # scheduled per round
    queue_j: Interval  # mean over devices, at the end
    accuracy: Interval | None  # over the last fifth of the run; None without learning


def tuning_plan(scenario: Scenario, weights: Sequence[float], seeds: Sequence[int], learn: bool) -> Plan:
    """An arm for each weight, in ascending order; without learning where that is not asked for."""
    field = weight_of(scenario)
    scenario = scenario if learn else schedule_only(scenario)
    arms = tuple(Arm(f"{field}={w:g}", with_weight(scenario, w)) for w in sorted(set(weights)))
    return Plan("tune", arms, seeds)


def trades(results: Results) -> list[Trade]:
    """One entry per weight whose runs finished, in the order of the plan."""
    rounds, found = results.rounds(), []
    importance = rounds.group_by("arm", "seed").agg(importance=pl.col("importance_sum").mean())
    runs = of_rounds(rounds).join(importance, on=["arm", "seed"], maintain_order="left")  # sums keep their bits
    for arm in results.plan.arms:
        own = runs.filter(arm=arm.label)
        energy, scheduled, queue, accuracy = (
            interval(own[name].drop_nulls()) for name in ("energy_j", "importance", "queue_j", "late_accuracy")
        )
        if energy.n:
            weight = float(getattr(arm.scenario.policy, weight_of(arm.scenario)))
            found.append(Trade(weight, energy, scheduled, queue, accuracy if accuracy.n else None))
    return found


def keeps(trade: Trade, budget_j: float) -> bool:
    """Whether the energy is within the budget with the upper end of its interval, or its mean where there is none."""
    return (trade.energy_j.mean if trade.energy_j.high is None else trade.energy_j.high) <= budget_j


def table_of(field: str, found: Sequence[Trade], budget_j: float) -> pl.DataFrame:
    """A row per weight: whether it keeps the budget, and the mean and both ends of the interval of what it brought."""
    rows = []
    for trade in found:
        row: dict[str, float | bool | None] = {field: trade.weight, "kept": keeps(trade, budget_j)}
        for name in MEASURED:
            value: Interval | None = getattr(trade, name)
            if value is not None:
                row |= {name: value.mean, f"{name}_low": value.low, f"{name}_high": value.high}
        rows.append(row)
    known = {name for row in rows for name in row} - {"kept"}
    return pl.DataFrame(rows, schema_overrides=dict.fromkeys(known, pl.Float64))


def conclusion(field: str, found: Sequence[Trade], best: Trade | None, budget_j: float, scenario: Scenario) -> str:
    """What was found, in a sentence or two; nothing where no run finished."""
    energy, rounds = QUANTITIES[MEASURED["energy_j"]], counted(scenario.system.rounds, "round")
    if best is not None:
        low, high = best.energy_j.low, best.energy_j.high
        sure = "" if low is None or high is None else f"95 % interval {energy.text(low)} to {energy.text(high)}, "
        return (
            f"policy.{field} = {best.weight:g} favours importance most and keeps {energy.text(budget_j)} per device "
            f"and round over {rounds}. It spent {energy.text(best.energy_j.mean)} ({sure}"
            f"{counted(best.energy_j.n, 'seed')})."
        )
    if not found:
        return ""
    wanted = f"{significant(budget_j * energy.scale, 3)} {energy.unit}"  # of any size
    least = min(found, key=lambda trade: trade.energy_j.mean)
    if least.energy_j.mean <= budget_j and least.energy_j.high is not None:
        return (
            f"No weight is shown to keep {wanted} per device and round over {rounds}. The cheapest, policy.{field} = "
            f"{least.weight:g}, spends {energy.text(least.energy_j.mean)}, but its 95 % interval over "
            f"{counted(least.energy_j.n, 'seed')} reaches {energy.text(least.energy_j.high)}; more seeds would narrow "
            "it."
        )
    return (
        f"No weight keeps {wanted} per device and round over {rounds}. The cheapest, policy.{field} = "
        f"{least.weight:g}, spends {energy.text(least.energy_j.mean)}."
    )


def recommended(found: Sequence[Trade], budget_j: float, more_is_cheaper: bool) -> Trade | None:
    """The weight that asks for most and still keeps the budget, as do all that ask for less; None where none does."""
    best: Trade | None = None
    for trade in sorted(found, key=lambda trade: trade.weight, reverse=more_is_cheaper):
        if not keeps(trade, budget_j):
            break
        best = trade
    return best


# From the smallest change of what was asked for to the largest.
CHANGES = (
    ("policy.cardinality=cap",),
    ("policy.V=auto", "policy.cardinality=cap"),
    ("policy.size=1",),
    ("policy.name=lyapunov_joint",),
    ("policy.name=balanced_joint",),
)
MOST = 10_000  # devices × rounds that are planned; beyond, the joint policies take longer than a hint is worth
LEAST_SENT = 0.5  # updates per round: whoever never trains keeps every budget


@dataclass(frozen=True)
class Affordable:
    """Overrides of a scenario, and what it comes to with them."""

    overrides: tuple[str, ...]
    energy_j: float  # per device and round
    transmitted: int  # updates over the run

    @property
    def options(self) -> str:
        """As they are typed: --set policy.V=auto --set policy.cardinality=cap"""
        return " ".join(f"--set {override}" for override in self.overrides)


def affordable(scenario: Scenario, seed: int, budget_j: float) -> Affordable | None:
    """The first of CHANGES that spends at most budget_j per device and round over the run, and still trains.

    A change that leaves the scenario as it is, or that its policy has no field for, is passed over. Nothing is learned,
    so each takes moments; None where none keeps the budget, or where trying would take long.
    """
    if scenario.system.devices * scenario.system.rounds > MOST:
        return None
    for overrides, changed in _changed(scenario):
        try:
            rounds = simulate(schedule_only(changed), seed).rounds
        except FeelstreamError:  # a policy that cannot run in this world keeps no budget in it
            continue
        spent_j = float(rounds["energy_mean_cum_j"][-1])
        sent = int(rounds["transmitted"].sum())
        if spent_j <= budget_j and sent >= LEAST_SENT * len(rounds):
            return Affordable(overrides, spent_j, sent)
    return None


def _changed(scenario: Scenario) -> Iterator[tuple[tuple[str, ...], Scenario]]:
    """Each change that is possible, without what the scenario says already, and the scenario with it."""
    for overrides in CHANGES:
        changed = _with(scenario, *overrides)
        if changed is not None and changed != scenario:
            yield tuple(override for override in overrides if _with(scenario, override) != scenario), changed


def _with(scenario: Scenario, *overrides: str) -> Scenario | None:
    try:
        return scenario.overridden(overrides)
    except FeelstreamError:
        return None
