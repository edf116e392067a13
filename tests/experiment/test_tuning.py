"""Which V: the rule, the command, and the hint to keep a budget."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from commands import Command

import feelstream as fs
from feelstream.experiment import tuning
from feelstream.experiment.statistics import Interval, interval
from feelstream.experiment.tuning import CHANGES, LEAST_SENT, affordable

ONE = Interval(1.0, 0.5, 1.5, 5)


def trade(weight: float, energy: float, high: float | None = None) -> tuning.Trade:
    return tuning.Trade(weight, Interval(energy, None if high is None else 0.0, high, 5), ONE, ONE, None)


def test_the_largest_weight_below_all_that_fail_is_recommended() -> None:
    """Weight 4 keeps the budget with its mean, but not with its interval; 8 would, but 4 does not."""
    found = [trade(1, 0.5, 0.6), trade(2, 0.8, 0.99), trade(4, 0.95, 1.1), trade(8, 0.5, 0.9)]
    best = tuning.recommended(found, 1.0, more_is_cheaper=False)
    assert best is not None
    assert best.weight == 2
    assert tuning.recommended(found, 0.1, more_is_cheaper=False) is None
    cheapest_last = tuning.recommended([trade(1, 2.0), trade(2, 0.9), trade(4, 0.5)], 1.0, more_is_cheaper=True)
    assert cheapest_last is not None
    assert cheapest_last.weight == 2


def test_sums_are_made_in_the_order_of_the_seeds() -> None:
    """The same runs give the same digits each time, whatever the threads of a join."""
    rng, seeds = np.random.default_rng(0), range(1000, 1007)
    plan = tuning.tuning_plan(fs.preset("tiny"), [10.0**-n for n in range(15)], seeds, learn=False)
    columns = ("energy_mean_cum_j", "energy_mean_j", "queue_mean_j", "importance_sum", "accuracy", "loss")
    rows = [{"arm": arm.label, "seed": seed, "round": 1} for arm in plan.arms for seed in seeds]
    rows = [row | dict.fromkeys(columns, rng.random()) | {"scheduled": 1, "transmitted": 1} for row in rows]
    results: Any = SimpleNamespace(plan=plan, rounds=lambda: pl.DataFrame(rows))
    values = {arm.label: [row["energy_mean_j"] for row in rows if row["arm"] == arm.label] for arm in plan.arms}
    assert [trade.importance for trade in tuning.trades(results)] == [interval(own) for own in values.values()]


@pytest.mark.slow
def test_the_command_recommends_and_draws(feelstream: Command, tmp_path: Path) -> None:
    # With a budget this small the queues grow from the start, so that energy rises with V from weight to weight.
    quick = ("--set", "policy.cardinality=cap", "--set", "system.energy_budget_j=5e-4", "--weights", "1e-8:1:4")
    quick += ("--seeds", "2", "--workers", "1")
    code, said, _ = feelstream("tune", "tiny", *quick, "--budget", "1.0", "--horizon", "10")
    assert code == 0
    assert "favours importance most and keeps" in said.replace("\n", " ")
    out = tmp_path / "results" / "tune-tiny"
    table = pl.read_csv(out / "trade-off.csv")
    assert table["V"].to_list() == [1e-8, 4.64e-6, 2.15e-3, 1.0]
    assert (table["energy_j"].diff().drop_nulls() >= 0).all()
    assert (out / "figures" / "trade-off-1000mJ.png").stat().st_size > 5000
    code, said, _ = feelstream("tune", "tiny", *quick, "--budget", "1.0", "--horizon", "10", "--json")
    assert code == 0
    told = json.loads(said)
    assert (told["field"], told["weight"], told["budget_j"], told["rounds"]) == ("policy.V", 1.0, 1.0, 10)
    assert [row["energy_j"] for row in told["weights"]] == pytest.approx(table["energy_j"].to_list())
    assert told["failures"] == []
    before = (out / "trade-off.csv").read_bytes()
    code, said, err = feelstream("tune", "tiny", *quick, "--budget", "1e-9", "--horizon", "9")
    assert code == 0
    assert "No weight keeps 0.00000100 mJ" in said
    assert "cardinality" not in said + err.partition("within the budget")[2]  # it is set already
    assert (out / "trade-off.csv").read_bytes() == before
    assert (tmp_path / "results" / "tune-tiny-2" / "trade-off.csv").is_file()


# A hint to keep a budget is what planning found: it keeps the budget, it trains, and it repeats nothing.
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
