"""The contract of policies: every registered one keeps it, and every way to break it is seen."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from feelstream.model.system import System
from feelstream.policies import POLICIES
from feelstream.policies.base import Decision, Observation, Outcome, Policy, State
from feelstream.testing import check
from feelstream.testing.player import OF_ALL

VARIANTS = [
    *((name, {}) for name in POLICIES.ours),
    ("lyapunov", {"cardinality": "cap"}),
    ("lyapunov", {"cardinality": "free", "metric": "amount"}),
    ("lyapunov", {"V": np.inf}),
    ("best_channel", {"gain": "last"}),
    ("proportional_fair", {"window": 1}),
    ("fedcs", {"share": 1.0}),
    ("myopic_energy", {"budget": "static"}),
    ("oort", {"exploration": 0.0, "exploration_min": 0.0}),
    pytest.param("ocean", {"V": 100.0, "eta": "descending"}, marks=pytest.mark.nightly),
    ("ocean", {"V": 100.0, "eta": "descending", "power": "fixed", "least_share": 0.01}),
    ("best_channel", {"gain": "oracle"}),
    ("proportional_fair", {"gain": "oracle"}),
    ("oort", {"alpha": 1e5}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fields"), VARIANTS, ids=lambda value: str(value))
def test_every_policy_keeps_the_contract(name: str, fields: dict[str, Any]) -> None:
    results = check(POLICIES.lookup(name)(**fields))  # type: ignore[arg-type]
    assert {result.name for result in results if result.tried} == OF_ALL.keys()
    assert [result.problem for result in results if not result.ok] == []


class First(Policy):
    """Lawful: the first feasible devices. The others below break one promise each."""

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        return Decision(np.flatnonzero(plan.feasible)[: self.size], plan)


class Infeasible(First):
    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        return Decision(np.arange(self.size), observation.plan(self.size))


class Twice(First):
    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        decision = super().select(state, observation, rng)
        return Decision(np.repeat(decision.schedule[:1], len(decision.schedule)), decision.plan)


class OtherPlan(First):
    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        return Decision(np.flatnonzero(observation.plan(1).feasible), observation.plan(1))


class Writes(First):
    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        observation.queue_j[:] = 0
        return super().select(state, observation, rng)


class WritesState(First):
    def init(self, system: System) -> State:
        return {"count": np.zeros(1)}

    def update(self, state: State, outcome: Outcome) -> State:
        state["count"] += 1
        return state


class Global(First):
    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        np.random.random()  # noqa: NPY002
        return super().select(state, observation, rng)


class PythonGlobal(First):
    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        random.random()
        return super().select(state, observation, rng)


CALLS = iter(range(10**9))


class Hidden(First):
    """Remembers what is not in its state."""

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        return Decision(np.roll(np.flatnonzero(plan.feasible), next(CALLS))[: self.size], plan)


class ListState(First):
    def init(self, system: System) -> State:
        return {"devices": [1, 2]}  # type: ignore[dict-item]


class InfiniteState(First):
    def update(self, state: State, outcome: Outcome) -> State:
        return {"best": np.array(np.inf)}


class NaNImportance(First):
    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        decision = super().select(state, observation, rng)
        return Decision(decision.schedule, decision.plan, importance=np.full(len(observation.beta), np.nan))


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (Infeasible, "contract"),
        (Twice, "contract"),
        (OtherPlan, "contract"),
        (Writes, "runs"),
        (WritesState, "runs"),
        (Global, "global random"),
        (PythonGlobal, "global random"),
        (Hidden, "repeatable"),
        (ListState, "contract"),
        (InfiniteState, "contract"),
        (NaNImportance, "contract"),
    ],
)
def test_a_broken_promise_is_seen(broken: type[Policy], promise: str) -> None:
    problems = {result.name: result.problem for result in check(broken()) if not result.ok}
    assert promise in problems
    assert "case '" in (problems[promise] or "")


class NoScore(First):
    """Lawful: a score may be NaN, which says that there is none."""

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        decision = super().select(state, observation, rng)
        return Decision(decision.schedule, decision.plan, score=np.full(len(observation.beta), np.nan))


@pytest.mark.parametrize("lawful", [First, NoScore])
def test_the_lawful_ones_pass(lawful: type[Policy]) -> None:
    assert all(result.ok for result in check(lawful()))
