"""What a deployment makes of fields that nobody set: joules are not known there before the first turn."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from deployed_clients import CLASSES, FAST, client, grid_of, growing, model

import feelstream as fs
from feelstream.flower import ScheduledFedAvg
from feelstream.policies import Balanced, Lyapunov

DEVICES: dict[str, Any] = {"system": {"devices": 4, "round_s": 60.0, "energy_budget_j": 5.0}}


def policy_of(scenario: Any, policy: Any = None) -> Any:
    return ScheduledFedAvg(scenario, policy, classes=CLASSES).scenario.policy


def test_what_a_table_leaves_unset_suits_any_joules() -> None:
    assert policy_of(DEVICES) == Lyapunov(V="auto")
    assert policy_of(DEVICES, "balanced") == Balanced(price="auto")


def test_what_is_said_stands() -> None:
    table = {**DEVICES, "policy": {"name": "lyapunov", "V": 3.0}}
    assert policy_of(table) == Lyapunov(V=3.0)
    assert policy_of({**DEVICES, "policy": {"name": "balanced", "price": 2.0}}) == Balanced(price=2.0)
    assert policy_of(DEVICES, Balanced()) == Balanced()
    whole = fs.preset("tiny", FAST)
    assert policy_of(whole) == whole.policy
    assert len(whole.population.energy_budget_j) == 4  # a scenario that was used before can be given another policy
    assert policy_of(whole, Lyapunov(V=2.0)) == Lyapunov(V=2.0)


@pytest.mark.parametrize(("budget_j", "warns"), [(0.5, True), (5.0, False)])
def test_budgets_of_another_order_are_told_in_the_first_round(
    budget_j: float, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Two turns of 20 J a round; four devices are granted 2 J together, or 20 J."""
    grid = grid_of(*[client(growing, after={"e_cmp_j": 20.0, "t_cmp_s": 1.0})] * 4)
    table = {**DEVICES, "system": {**DEVICES["system"], "energy_budget_j": budget_j}}
    with caplog.at_level(logging.WARNING):
        ScheduledFedAvg(table, classes=CLASSES).start(grid, model(), num_rounds=2)
    told = [r.getMessage() for r in caplog.records if "the budgets grant" in r.getMessage()]
    assert len(told) == warns
    assert all("a turn takes 20 J" in each and "grant 1 J" in each for each in told)
