"""The joint policy: obeys its limits, spends no more than equal shares at full frequency, and runs verify."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from builders import devices_of, verified

from feelstream import preset, simulate
from feelstream.errors import ScenarioError
from feelstream.model.system import System
from feelstream.policies.base import Observation
from feelstream.policies.lyapunov import Lyapunov
from feelstream.policies.lyapunov_joint import LyapunovJoint
from feelstream.policies.solvers.joint import admit, weights
from feelstream.policies.solvers.modes import allocate
from feelstream.run import Run


def observation(rng: np.random.Generator, devices: int = 12, stress: bool = False, **changes: float) -> Observation:
    """A random round of the paper's table, or of its radio-bound variant."""
    scenario = preset("stress" if stress else "paper-iid", [f"system.devices={devices}"])
    system: System = replace(scenario.known_system(10), **changes)
    low, high = system.frequency_hz
    return Observation(
        system=system,
        round=3,
        f_hz=rng.uniform(low, high, devices),
        beta=10 ** (rng.uniform(-5, 3, devices) / 10),
        stored=rng.integers(0, 50, devices),
        available=np.ones(devices, bool),
        fresh=rng.integers(0, 20, devices),
        fresh_features=rng.integers(0, 5, (devices, 10)).astype(np.int32),
        used_features=rng.integers(0, 50, 10),
        queue_j=rng.uniform(0, 0.05, devices) * (rng.random(devices) < 0.7),
    )


@pytest.mark.slow
@pytest.mark.parametrize("stress", [False, True])
@pytest.mark.parametrize("gamma", [1.0, 0.5])
def test_planned_energy_is_never_above_equal_shares_at_full_frequency(stress: bool, gamma: float) -> None:
    """Σ w e ≤ Σ w E~ for lyapunov's own device set (the plain plan is one allowed point), and so Σ Q e ≤ Σ Q E~."""
    rng = np.random.default_rng(5)
    compared = 0
    for _ in range(60):
        seen = observation(rng, stress=stress, rate_discount=gamma)
        size = int(rng.integers(1, 5))
        plain = Lyapunov(size=size).select({}, seen, rng)
        ids = plain.schedule
        if len(ids) < size:
            continue
        policy = LyapunovJoint(size=size)
        devices = policy.planned_devices(seen, size)
        allocation = allocate(devices.take(ids))
        assert allocation.feasible
        ours, theirs = allocation.energy_j, plain.plan.energy_j[ids]
        assert (weights(seen)[ids] * ours).sum() <= (weights(seen)[ids] * theirs).sum() * (1 + 1e-12)
        assert (seen.queue_j[ids] * ours).sum() <= (seen.queue_j[ids] * theirs).sum() * (1 + 1e-12)
        compared += 1
    assert compared >= 30


@pytest.mark.slow
def test_free_is_the_best_of_all_sizes() -> None:
    rng = np.random.default_rng(9)
    sizes = set()
    for _ in range(12):
        seen = observation(rng, devices=8, stress=True)
        V = float(10 ** rng.uniform(-6, -4))
        free = LyapunovJoint(size=4, cardinality="free", V=V).select({}, seen, np.random.default_rng(0))
        totals = {0: 0.0}
        for n in range(1, 5):
            policy = LyapunovJoint(size=n, V=V)
            decision = policy.select({}, seen, np.random.default_rng(0))
            if len(decision.schedule) < n:
                continue
            devices = policy.planned_devices(seen, n).take(decision.schedule)
            assert decision.importance is not None
            worth = V * decision.importance[decision.schedule]
            totals[n] = float((devices.weight * allocate(devices).energy_j - worth).sum())
        assert totals[len(free.schedule)] == pytest.approx(min(totals.values()), rel=1e-9)
        sizes.add(len(free.schedule))
    assert len(sizes) >= 3


def test_admission_by_hand() -> None:
    share, ratio = np.array([0.5, 0.4, 0.3, np.inf, 0.2]), np.array([2.0, 0.1, 1.0, 9.0, 0.5])
    # Device 3 can never send. Of the others, 1.4 of the band: the weakest is 1, which leaves exactly 1.
    assert admit(share, ratio, "paper").tolist() == [True, False, True, False, True]
    # The least shares: 0.2, 0.3, 0.4; with 0.5 it would be too much.
    assert admit(share, ratio, "largest").tolist() == [False, True, True, False, True]


def test_a_dead_channel_is_dropped() -> None:
    rng = np.random.default_rng(2)
    seen = observation(rng)
    policy = LyapunovJoint(size=3)
    decision = policy.select({}, seen, rng)
    gain = seen.beta[decision.schedule].copy()
    gain[1] = 0.0
    assert policy.transmit(seen, decision, gain).sent.tolist() == [True, False, True]


MIXED = (
    "devices.classes=[{share=0.5, cycles=5e7}, {share=0.3, cycles=6e8}, {share=0.2, cycles=1.2e9, gain_db=[-9, -4]}]"
)
VARIANTS = {
    "exact": ["tiny"],
    "cap": ["tiny", "policy.cardinality=cap"],
    "free": ["tiny", "policy.cardinality=free"],
    "infinite-V": ["tiny", "policy.V=inf"],
    "all": ["tiny", "policy.size=10"],
    "one-device": ["tiny", "system.devices=1", "policy.size=1"],
    "short-rounds": ["tiny", "system.round_s=0.4"],
    "no-budget": ["tiny", "system.energy_budget_j=0.0", "policy.cardinality=cap"],
    "stress": ["stress", "system.rounds=8"],
    "stress-cap-largest": ["stress", "system.rounds=8", "policy.cardinality=cap", "radio.admission=largest"],
    "stress-free": ["stress", "system.rounds=6", "system.devices=6", "policy.cardinality=free", "policy.V=0.0001"],
    "stress-weak": ["stress", "system.rounds=8", "policy.power_max_w=3e-7"],
    "stress-no-reserve": ["stress", "system.rounds=8", "policy.fade_reserve=1.0", "radio.rate_discount=0.7"],
    "stress-optimist": ["stress", "system.rounds=8", "radio.rate_discount=2.0", "policy.metric=amount"],
    "rounds-only": ["tiny", "trace.level=rounds"],
    "mixed-cycles": ["tiny", MIXED, "policy.size=3"],
    "mixed-cycles-cap": ["tiny", MIXED, "policy.cardinality=cap", "policy.V=1e-4", "system.rounds=8"],
    "mixed-cycles-free": ["stress", MIXED, "system.rounds=6", "system.devices=6", "policy.cardinality=free"],
    # At 20 MHz the first class computes for 2.5 s and the others beyond the round: a floor for some, none for others.
    "mixed-floors": ["tiny", MIXED, "system.round_s=20.0", "policy.size=3"],
    "floors": ["paper-iid", "system.rounds=10", "cpu.frequency_hz=[4e8, 1.52e9]"],
    "stress-floors": ["stress", "system.rounds=10", "cpu.frequency_hz=[4e8, 1.52e9]"],
    "stress-moving": ["stress", "system.rounds=6", "world.mobility.kind=random_direction"],
}


def run(name: str, *changes: str) -> Run:
    scenario, *settings = VARIANTS[name]
    common = ["data.dataset=synthetic", "learning.engine=none", "policy.name=lyapunov_joint"]
    return simulate(preset(scenario, [*common, *settings, *changes]), seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_runs_verify(name: str) -> None:
    played = run(name)
    verified(played)
    if played.devices is not None:  # who sends has all of the round, and together they have all of the band
        sent, round_s = played.devices.filter("transmitted"), played.scenario.system.round_s
        np.testing.assert_allclose(sent["t_cmp_s"] + sent["t_tr_s"], round_s, rtol=1e-12)
        shares = sent.group_by("round").agg(pl.col("bandwidth_share").sum())["bandwidth_share"]
        np.testing.assert_allclose(shares, 1.0, atol=1e-12)
    if name == "stress":  # or the others would prove little
        assert (played.rounds["transmitted"] < played.rounds["scheduled"]).sum() >= 2
    assert name != "stress-free" or played.rounds["planned"].n_unique() >= 2


@pytest.mark.parametrize("name", ["floors", "stress-floors"])
def test_no_device_computes_more_slowly_than_its_lowest_frequency(name: str) -> None:
    """At 0.4 GHz and more, computing takes 1.05 s of 4 s at most; without the floor it would be stretched to 3.9 s."""
    busy = devices_of(run(name)).filter("scheduled")["t_cmp_s"].to_numpy()
    assert (419328000 / busy >= 4e8 * (1 - 1e-12)).all()


def test_rounds_of_which_computing_takes_nothing_are_refused() -> None:
    with pytest.raises(ScenarioError, match="must take at least 1e-07 of a round"):
        run("stress", "cpu.cycles=1.0")
