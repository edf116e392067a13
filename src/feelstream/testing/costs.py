"""The contract of a cost rule: `feelstream check my_cost.py:Mine`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from feelstream.model.costs import COST_RULES, FIGURES, CostContext, CostRule, RoundCosts, costs_problem, cycles_by_data
from feelstream.testing.contract import Kind, Promise, frozen
from feelstream.testing.trials import SYSTEM


@dataclass(frozen=True)
class Case:
    """Some devices with what they hold, and whether cycles follow it."""

    devices: int = 12
    most: int = 20  # samples
    cycles_per_sample: float = 0.0

    def seen(self, round: int) -> CostContext:
        K, rng = self.devices, np.random.default_rng([3, round])
        labels = frozen(rng.integers(0, self.most // 3 + 1, (K, 3)).astype(np.int32))
        fresh = labels.sum(axis=1).astype(np.int64)
        system = replace(
            SYSTEM,
            devices=K,
            energy_budget_j=frozen(np.full(K, 5e-3)),
            cycles_per_sample=self.cycles_per_sample,
            cycles=self.cycles_per_sample or SYSTEM.cycles,
        )
        f_hz, beta = frozen(rng.uniform(*system.frequency_hz, K)), frozen(rng.uniform(0.3, 2.0, K))
        return CostContext(system, round, f_hz, beta, frozen(fresh + rng.integers(0, 9, K)), frozen(fresh), labels)


CASES = {
    "ordinary": Case(),
    "one device": Case(devices=1),
    "nothing fresh": Case(most=0),
    "much data": Case(most=100_000),
    "cycles that follow the data": Case(cycles_per_sample=1e6),
    "many devices": Case(devices=2000),
}


@dataclass(frozen=True)
class Asked:
    """What a rule says of a round, twice."""

    rule: CostRule
    seen: CostContext
    found: RoundCosts
    again: RoundCosts


def _play(rule: CostRule, case: Case) -> Iterator[tuple[str, Asked]]:
    for t in range(1, 11):
        seen = case.seen(t)
        found, again = (rule.costs(seen, np.random.default_rng([4, t])) for _ in range(2))
        yield f"round {t}", Asked(rule, seen, found, again)


def _figures(asked: Asked) -> str | None:
    problem = costs_problem(asked.rule, _without_forbidden_bits(asked), asked.seen)
    return f"it {problem}" if problem else None


def _without_forbidden_bits(asked: Asked) -> object:
    """What was found, without bits that a flag forbids: that is another promise."""
    found = asked.found
    return replace(found, update_bits=None) if isinstance(found, RoundCosts) and asked.rule.keeps_bits else found


def _repeatable(asked: Asked) -> str | None:
    for name in FIGURES:
        one, other = getattr(asked.found, name), getattr(asked.again, name)
        if (one is None) != (other is None) or (one is not None and not np.array_equal(one, other)):
            return f"{name} is {one!r:.60}, then {other!r:.60}"
    return None


def _flags(asked: Asked) -> str | None:
    found, rule = asked.found, asked.rule
    if rule.keeps_bits and found.update_bits is not None:
        return "`keeps_bits`, and it gave update_bits"
    if not rule.of_settings:
        return None
    usual = cycles_by_data(asked.seen.system, asked.seen.stored)
    same = found.cycles is usual if usual is None or found.cycles is None else np.array_equal(found.cycles, usual)
    right = same and found.update_bits is None and found.download_s is None and found.download_j is None
    return None if right else "`of_settings`, and it gave what the fields of the scenario do not say"


COST_RULE = Kind(
    "cost",
    COST_RULES,
    CASES,
    _play,
    (
        Promise("figures", "it gives RoundCosts: finite numbers of each device, none below 0, no work of 0", _figures),
        Promise("repeatable", "the same round and random numbers give the same costs", _repeatable),
        Promise("flags", "it does what its flags promise to other code", _flags),
    ),
)
