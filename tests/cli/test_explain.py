"""`feelstream explain` knows topics, fields, quantities and policies, and `feelstream run` points there."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from feelstream.cli import app
from feelstream.errors import ScenarioError


def said(*words: str) -> str:
    done = CliRunner().invoke(app, [*words])
    if done.exception is not None:
        raise done.exception
    return " ".join(done.output.split())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("budget", "balanced_joint never lets any device exceed its budget"),
        ("comparison", "There is no verdict below five seeds"),
        ("policy.V", "policy.V: weight of importance against energy"),
        ("lr", "learning rate"),
        ("fairness", "Jain's index"),
        ("random", "`size` feasible devices, all equally likely"),
    ],
)
def test_a_name_is_explained(name: str, words: str) -> None:
    assert words in said("explain", name)


def test_without_a_name_the_topics_are_listed() -> None:
    assert said("explain").startswith("budget Keeping an energy budget")


def test_an_unknown_name_is_a_sentence_with_the_nearest() -> None:
    with pytest.raises(ScenarioError, match="there is no topic 'budgte'; did you mean 'budget'"):
        said("explain", "budgte")


def test_the_first_run_keeps_its_budget_and_one_that_does_not_is_told_what_would() -> None:
    assert "× the budget" not in said("run", "tiny")
    exceeding = said("run", "tiny", "--set", "system.energy_budget_j=0.0005", "--set", "learning.engine=none")
    assert "× the budget; why: feelstream explain budget" in exceeding
    assert "within the budget: --set policy.name=balanced_joint" in exceeding


def test_a_budget_that_carries_no_turn_is_told_with_its_numbers() -> None:
    idle = said("run", "tiny", "--rounds", "2", "--set", "policy.name=balanced_joint", "--set",
                "system.energy_budget_j=1e-6", "--set", "learning.engine=none")  # fmt: skip
    assert "nobody trained in any round. Round 2, device" in idle
    assert "of its budget is left" in idle
