"""The scheduler against brute force over all subsets of devices, written from the model's rules; and V = auto."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import pytest
from builders import devices_of, found_in, observation, small, system
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from feelstream import preset, simulate
from feelstream.errors import ScenarioError
from feelstream.policies.base import Observation
from feelstream.policies.lyapunov import Lyapunov, first_backlog_j, weight_j2
from feelstream.run import Run

Cardinality = Literal["exact", "cap", "free"]
METRICS = ("combined", "amount", "dissimilarity")


@dataclass
class Device:
    """What the draws vary; few different values, so that scores tie."""

    f_hz: float
    beta: float
    stored: int
    labels: tuple[int, int, int]
    queue_j: float


DEVICE = st.builds(
    Device,
    f_hz=st.sampled_from([1.0e8, 1.3e8, 1.3e8, 1.06e8, 2e8, 1e9]),  # the first is always too slow
    beta=st.sampled_from([0.5, 1.0, 2.0]),
    stored=st.sampled_from([0, 9, 9, 9]),
    labels=st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 1)),
    queue_j=st.sampled_from([0.0, 0.0, 0.01, 0.3, 5.0]),
)
SITUATION = {
    "devices": st.lists(DEVICE, min_size=1, max_size=10),
    "used": st.sampled_from([(0, 0, 0), (1, 1, 1), (5, 0, 2)]),
    "V": st.sampled_from([1e-3, 0.05, 1.0, math.inf]),
    "metric": st.sampled_from(METRICS),
    "size": st.integers(1, 10),
    "narrow": st.booleans(),
}


def observe(devices: list[Device], used: tuple[int, ...], narrow: bool) -> Observation:
    """`narrow`: a band on which each further device costs about 0.3 s, so that Π_f(n) shrinks with n."""
    of = system(len(devices), classes=3, bandwidth_hz=1e5 if narrow else 20e6)
    labels = np.array([d.labels if d.stored else (0, 0, 0) for d in devices], np.int32)
    return observation(
        of,
        round=2,
        f_hz=np.array([d.f_hz for d in devices]),
        beta=np.array([d.beta for d in devices]),
        stored=np.array([d.stored for d in devices]),
        available=np.array([d.stored > 0 for d in devices]),
        fresh=labels.sum(axis=1).astype(np.int64),
        fresh_features=labels,
        used_features=np.array(used),
        queue_j=np.array([d.queue_j for d in devices]),
    )


class ByHand:
    """Feasible set and scores of one planned size, in plain Python."""

    def __init__(self, seen: Observation, n: int, V: float, metric: str) -> None:
        s, devices = seen.system, range(seen.system.devices)
        rate = s.rate_discount * s.bandwidth_hz / n
        rate *= math.log2(1 + n * s.received_power_w / (s.bandwidth_hz * s.noise_w_per_hz))
        time_s = s.update_bits / rate
        self.feasible = [k for k in devices if seen.available[k] and s.cycles[k] / seen.f_hz[k] + time_s <= s.round_s]
        total = sum(int(seen.fresh[k]) for k in self.feasible)
        self.score = {}
        for k in self.feasible:
            amount = len(self.feasible) * int(seen.fresh[k]) / total if total else 0.0
            other = self._unlike(seen.fresh_features[k].tolist(), seen.used_features.tolist())
            worth = {"combined": amount + other, "amount": amount, "dissimilarity": other}[metric]
            energy = s.power_coefficient * s.cycles[k] * seen.f_hz[k] ** 2 + s.received_power_w / seen.beta[k] * time_s
            self.score[k] = -worth if math.inf == V else float(seen.queue_j[k] * energy - V * worth)

    @staticmethod
    def _unlike(fresh: list[int], used: list[int]) -> float:
        if not sum(fresh) or not sum(used):
            return 0.0
        x = [3 * count / sum(used) - 1 for count in used]
        y = [3 * count / sum(fresh) - 1 for count in fresh]
        scale = sum(a * a for a in x) + sum(b * b for b in y)
        return sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / scale if scale > 1e-20 else 0.0

    def total(self, chosen: tuple[int, ...]) -> float:
        return math.fsum(self.score[k] for k in chosen)

    def least(self, n: int) -> float:
        return min((self.total(chosen) for chosen in combinations(self.feasible, n)), default=math.inf)


def choose(seen: Observation, V: float, size: int, cardinality: Cardinality, metric: str) -> tuple[int, ...]:
    policy = Lyapunov(V=V, size=size, cardinality=cardinality, metric=metric)
    return tuple(policy.select({}, seen, np.random.default_rng(0)).schedule.tolist())


@pytest.mark.parametrize("cardinality", ["exact", "cap", "free"])
@settings(max_examples=100)
@given(**SITUATION)
def test_no_set_that_is_allowed_has_a_lower_total(cardinality, devices, used, V, metric, size, narrow) -> None:
    """exact: as many as `size` and Π_f allow; cap: up to `size` that lower the total; free: n itself is chosen, too."""
    seen, size = observe(devices, used, narrow), min(size, len(devices))
    chosen = choose(seen, V, size, cardinality, metric)
    planned = len(chosen) if cardinality == "free" else size
    by_size = {n: ByHand(seen, n, V, metric) for n in ([*range(1, size + 1)] if cardinality == "free" else [size])}
    hand = by_size[planned or size]
    least = {
        "exact": lambda: hand.least(min(size, len(hand.feasible))),
        "cap": lambda: min(hand.least(n) for n in range(size + 1)),
        "free": lambda: min([0.0, *(each.least(n) for n, each in by_size.items())]),
    }[cardinality]()
    assert set(chosen) <= set(hand.feasible)
    assert len(chosen) <= size
    assert cardinality != "exact" or len(chosen) == min(size, len(hand.feasible))
    assert cardinality != "cap" or all(hand.score[k] < 1e-12 for k in chosen)
    assert hand.total(chosen) == pytest.approx(least, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("cardinality", ["exact", "cap", "free"])
def test_ties_fall_uniformly(cardinality: Cardinality) -> None:
    """Two devices lead, five tie for two places left: each of the five gets a place in 2 of 5 cases."""
    fresh = np.array([5, 2, 2, 9, 2, 2, 2])
    seen = observation(system(7, classes=1), fresh=fresh, fresh_features=fresh[:, None].astype(np.int32))
    policy, rng = Lyapunov(size=4, cardinality=cardinality), np.random.default_rng(7)
    drawn = np.zeros(7)
    for _ in range(2000):
        drawn[policy.select({}, seen, rng).schedule] += 1
    assert drawn[[0, 3]].tolist() == [2000, 2000]
    assert chisquare(drawn[[1, 2, 4, 5, 6]]).pvalue > 1e-3


@pytest.mark.parametrize(("cardinality", "scheduled"), [("exact", 2), ("cap", 0), ("free", 0)])
def test_a_score_of_nothing_is_no_reason_to_schedule(cardinality: Cardinality, scheduled: int) -> None:
    """Empty queues and nothing fresh: every score is 0, so only `exact` schedules anybody."""
    nothing = {"fresh": np.zeros(3, np.int64), "fresh_features": np.zeros((3, 10), np.int32)}
    assert len(choose(observation(system(3), **nothing), 0.05, 2, cardinality, "combined")) == scheduled


AUTO = ["learning.engine=none", "data.dataset=synthetic", "policy.cardinality=cap", "policy.V=auto"]


def energies(run: Run) -> np.ndarray:
    """(T, K)"""
    table = devices_of(run)
    return (table["e_cmp_j"] + table["e_tr_j"]).to_numpy().reshape(run.scenario.system.rounds, -1)


def test_weight_and_backlog_by_hand() -> None:
    """40 devices of 0.5 mJ, 2 places: 10 mJ a place, 20 places: 0.2 J, V = 20·10⁻⁴ J²; V·q0 is the backlog."""
    of = system(40)
    assert first_backlog_j(of, 2) == pytest.approx(0.2)
    assert weight_j2(of, 2) == pytest.approx(2e-3)
    assert weight_j2(of, 2) / 0.01 == pytest.approx(first_backlog_j(of, 2))
    assert Lyapunov(V="auto").init(of)["backlog_j"] == pytest.approx(0.2)
    assert Lyapunov(V=0.3).init(of) == {}
    with pytest.raises(ScenarioError, match="auto needs an energy budget"):
        simulate(small("policy.V=auto", "system.energy_budget_j=0.0"))


def test_the_budget_is_kept_where_a_fixed_weight_needs_thousands_of_rounds() -> None:
    """Forty rounds, at most two devices: within PLACES/(nT) = ¼ of the budget; V = 0.05 spends ten times as much."""
    auto, fixed = (
        np.mean([energies(simulate(preset("paper-iid", [*AUTO, f"policy.V={V}"]), seed)).mean() for seed in range(3)])
        for V in ("auto", "0.05")
    )
    assert 0.5 * 5e-4 < auto < 1.25 * 5e-4
    assert fixed > 10 * 5e-4


def test_a_fleet_that_forgets_its_queue_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lyapunov, "update", lambda self, state, outcome: state)
    assert found_in(simulate(small("policy.V=auto", "policy.cardinality=cap"))).field == "score"
