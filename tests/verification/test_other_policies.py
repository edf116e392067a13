"""Runs of policies that do not keep to their rule are seen, as far as what is stored can tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from feelstream import preset, simulate
from feelstream.policies import POLICIES
from feelstream.policies.base import Decision, Observation, Policy
from feelstream.verification import verify

Wrong = Callable[[Observation, Decision], Decision]


def one_fewer(observation: Observation, decision: Decision) -> Decision:
    fewer = decision.schedule[:-1]
    return Decision(fewer, observation.plan(len(fewer)))


def another(observation: Observation, decision: Decision) -> Decision:
    """The last device gives way to a feasible one that was left out."""
    others = np.setdiff1d(np.flatnonzero(decision.plan.feasible), decision.schedule)
    if not len(others) or not len(decision.schedule):
        return decision
    return replace(decision, schedule=np.append(decision.schedule[:-1], others[0]))


def other_score(observation: Observation, decision: Decision) -> Decision:
    return replace(decision, score=None if decision.score is None else decision.score * 1.01)


@pytest.mark.parametrize(
    ("name", "wrong", "field"),
    [
        ("select_all", one_fewer, "planned"),
        ("greedy_energy", another, "scheduled"),
        ("greedy_energy", other_score, "score"),
        ("importance_greedy", another, "scheduled"),
        ("importance_greedy", other_score, "score"),
        ("age", another, "scheduled"),
        ("best_channel", another, "scheduled"),
        ("oort", lambda o, d: replace(d, schedule=d.schedule[:-1]), "scheduled"),
        ("fedcs", lambda o, d: replace(d, schedule=d.schedule[:-1]), "planned"),
    ],
)
def test_a_wrong_decision_is_seen(
    name: str, wrong: Wrong, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cls = POLICIES.lookup(name)
    assert issubclass(cls, Policy)
    right = cls.select
    monkeypatch.setattr(cls, "select", lambda self, state, o, rng: wrong(o, right(self, state, o, rng)))
    run = simulate(preset("stress", ["learning.engine=none", "data.dataset=synthetic", f"policy.name={name}"]))
    found = verify(run.save(tmp_path / "run")).disagreement
    assert found is not None
    assert found.field == field
