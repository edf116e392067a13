"""The bound in hindsight: against every schedule that there is, and against what runs gained."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from builders import small
from hypothesis import given, settings
from hypothesis import strategies as st

import feelstream as fs
from feelstream.errors import RunError
from feelstream.experiment.hindsight import Instance, bound_of, dual, upper_bound


def drawn(seed: int, T: int, K: int, most: int) -> Instance:
    rng = np.random.default_rng(seed)
    energy_j = rng.uniform(0.1, 1.0, (T, K))
    budget_j = rng.uniform(0.2, 0.6) * energy_j.sum(axis=0)
    return Instance(rng.exponential(size=(T, K)), energy_j, rng.random((T, K)) < 0.8, most, budget_j)


def best_of_all(instance: Instance) -> float:
    """By trying every schedule."""
    T, K = instance.value.shape
    sets = [
        [
            chosen
            for n in range(instance.most + 1)
            for chosen in itertools.combinations(range(K), n)
            if instance.allowed[t, list(chosen)].all()
        ]
        for t in range(T)
    ]
    best = 0.0
    for schedule in itertools.product(*sets):
        spent, gained = np.zeros(K), 0.0
        for t, chosen in enumerate(schedule):
            spent[list(chosen)] += instance.energy_j[t, list(chosen)]
            gained += instance.value[t, list(chosen)].sum()
        if (spent <= instance.budget_j).all():
            best = max(best, gained)
    return best


@pytest.mark.parametrize("seed", range(12))
def test_no_schedule_beats_the_bound(seed: int) -> None:
    instance = drawn(seed, T=4, K=3, most=1 + seed % 2)
    best, bound = best_of_all(instance), upper_bound(instance)
    assert best <= bound * (1 + 1e-9)
    # A vertex of the relaxation has at most one split turn for each of the K + T constraints that bind.
    assert bound - best <= instance.value.max() * 3
    assert bound < dual(instance, np.zeros(3)) or best == pytest.approx(bound)


@given(st.integers(0, 10_000), st.lists(st.floats(0, 20), min_size=3, max_size=3))
@settings(deadline=None, max_examples=60)
def test_every_price_gives_a_bound(seed: int, price: list[float]) -> None:
    instance = drawn(seed, T=3, K=3, most=1)
    assert best_of_all(instance) <= dual(instance, np.array(price)) * (1 + 1e-9)


def test_with_ample_budgets_the_bound_is_the_best() -> None:
    instance = drawn(1, T=4, K=3, most=2)
    ample = Instance(instance.value, instance.energy_j, instance.allowed, 2, np.full(3, 1e3))
    assert upper_bound(ample) == pytest.approx(best_of_all(ample), rel=1e-9)


@pytest.mark.parametrize("policy", ["lyapunov", "random", "select_all", "balanced_joint", "lyapunov_joint", "ocean"])
def test_runs_are_below_their_bound(policy: str) -> None:
    for budget in ("0.0005", "0.05"):
        fields = ("data.fresh=per_round", f"policy.name={policy}", f"system.energy_budget_j={budget}")
        found = bound_of(fs.simulate(small(*fields, "system.rounds=30"), 1))
        assert 0 <= found.gained <= found.with_its_energy * (1 + 1e-9)
        assert 0 <= found.gap <= 1
        if not found.devices_over_budget:
            assert found.gained <= found.within_budget * (1 + 1e-9)


def test_greed_without_a_budget_has_no_gap() -> None:
    """The largest amounts in every round are the best schedule of that size, where energy does not matter."""
    fields = ("data.fresh=per_round", "policy.name=importance_greedy", "policy.metric=amount")
    found = bound_of(fs.simulate(small(*fields, "system.energy_budget_j=1e3"), 1))
    assert found.gained == pytest.approx(found.within_budget, rel=1e-9)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((), "data.fresh = per_round"),
        (("data.fresh=per_round", "trace.level=rounds"), "trace.level = full"),
        (("data.fresh=per_round", "world.harvest.kind=solar"), "without batteries"),
        (
            ("data.fresh=per_round", "policy.name=lyapunov_joint", "cpu.profile=rk3399-a72", "cpu.energy.kind=voltage"),
            "needs the energy law cubic",
        ),
    ],
)
def test_what_has_no_bound_is_refused(fields: tuple[str, ...], message: str) -> None:
    with pytest.raises(RunError, match=message):
        bound_of(fs.simulate(small(*fields), 1))
