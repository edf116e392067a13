"""`feelstream explain` knows fields, columns and policies; `feelstream run` says where a budget was exceeded."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from feelstream.cli import app


def said(*words: str) -> str:
    done = CliRunner().invoke(app, [*words])
    if done.exception is not None:
        raise done.exception
    return " ".join(done.output.split())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("queue_j", "queue_j (devices.parquet, J): Q_k before the round"),
        ("scheduled", "scheduled (rounds.parquet): |Π*|, devices that trained"),
        ("battery_j", "charge before the round; only with batteries"),
        ("policy.V", "policy.V: weight of importance against energy"),
        ("lr", "learning rate"),
        ("fairness", "Jain's index"),
        ("random", "`size` feasible devices, all equally likely"),
    ],
)
def test_a_name_is_explained(name: str, words: str) -> None:
    assert words in said("explain", name)


def test_without_a_name_it_says_what_can_be_asked() -> None:
    shown = CliRunner().invoke(app, ["explain"]).output
    assert "A field (policy.V), a column" in " ".join(shown.split())


def test_the_first_run_keeps_its_budget_and_one_that_does_not_is_told_what_would() -> None:
    assert "× the budget" not in said("run", "tiny")
    exceeding = said("run", "tiny", "--set", "system.energy_budget_j=0.0005", "--set", "learning.engine=none")
    assert "× the budget; why: docs/how-to/budget.md" in exceeding
    assert "within the budget: --set policy.name=balanced_joint" in exceeding


def test_a_budget_that_carries_no_turn_is_told_with_its_numbers() -> None:
    idle = said("run", "tiny", "--rounds", "2", "--set", "policy.name=balanced_joint", "--set",
                "system.energy_budget_j=1e-6", "--set", "learning.engine=none")  # fmt: skip
    assert "nobody trained in any round. Round 2, device" in idle
    assert "of its budget is left" in idle
