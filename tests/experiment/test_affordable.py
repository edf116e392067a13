"""A hint to keep a budget is what planning found: it keeps the budget, it trains, and it repeats nothing."""

from __future__ import annotations

import pytest

import feelstream as fs
from feelstream.experiment.tuning import CHANGES, LEAST_SENT, affordable

SMALL = {"system.rounds": 12, "learning.engine": "none"}


def scenario(budget_j: float, **changes: object) -> fs.Scenario:
    return fs.preset("tiny").with_(**SMALL, **{"system.energy_budget_j": budget_j}, **changes)


@pytest.mark.slow
@pytest.mark.parametrize("budget_j", [0.03, 5e-4])
def test_the_change_that_is_named_keeps_the_budget_and_trains(budget_j: float) -> None:
    chosen = scenario(budget_j)
    assert fs.simulate(chosen).summary()["energy_over_budget"][0] > 1
    found = affordable(chosen, 0, budget_j)
    assert found is not None
    rounds = fs.simulate(chosen.overridden(found.overrides)).rounds
    assert rounds["energy_mean_cum_j"][-1] == found.energy_j <= budget_j
    assert rounds["transmitted"].sum() == found.transmitted >= LEAST_SENT * len(rounds)
    earlier = CHANGES[: CHANGES.index(found.overrides)]
    for overrides in earlier:  # the first that keeps it: those before spend more, or hardly train
        other = fs.simulate(chosen.overridden(overrides)).rounds
        assert other["energy_mean_cum_j"][-1] > budget_j or other["transmitted"].sum() < LEAST_SENT * len(other)


def test_what_is_set_already_is_not_named_again() -> None:
    """At 50 mJ over ten rounds `tiny` needs both V = auto and cap."""
    chosen = fs.preset("tiny").with_(energy_budget_j=0.05, engine="none")
    found = affordable(chosen, 0, 0.05)
    assert found is not None
    assert found.overrides == ("policy.V=auto", "policy.cardinality=cap")
    again = affordable(chosen.with_(cardinality="cap"), 0, 0.05)
    assert again is not None
    assert again.options == "--set policy.V=auto"


def test_no_hint_where_nothing_keeps_the_budget() -> None:
    assert affordable(scenario(1e-9), 0, 1e-9) is None


def test_no_hint_where_planning_takes_long() -> None:
    assert affordable(fs.preset("million"), 0, 1.0) is None
