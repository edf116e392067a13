"""What the rules do over many rounds."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from builders import alike, devices_of, observe, to_run, verified
from scipy.optimize import minimize

from feelstream import preset, simulate
from feelstream.errors import ScenarioError
from feelstream.policies import POLICIES
from feelstream.policies.ocean import sending_time_s, split
from feelstream.policies.oort import Oort
from feelstream.run import Run

OURS = list(POLICIES.ours)
# Fast computers with data from the first round on, so that everyone is always feasible.
ALWAYS = [
    "data.arrivals.kind=poisson",
    "data.arrivals.rate=20.0",
    "cpu.frequency_hz=[1e9, 1.5e9]",
    "learning.engine=none",
    "system.devices=10",
]


def play(name: str, *overrides: str, seed: int = 0, scenario: str = "tiny") -> Run:
    return simulate(preset(scenario, ["learning.engine=none", *to_run(name), f"policy.name={name}", *overrides]), seed)


def turns(run: Run) -> np.ndarray:
    """How often each device was scheduled."""
    return devices_of(run).group_by("device").agg(pl.col("scheduled").sum()).sort("device")["scheduled"].to_numpy()


def test_proportional_fair_is_fair_in_the_long_run() -> None:
    """Nearly equal turns (Jain's index) although mean gains differ by up to 8 dB; best_channel serves two alone."""
    counts = turns(play("proportional_fair", *ALWAYS, "system.rounds=600")).astype(float)
    assert counts.sum() ** 2 / (10 * np.square(counts).sum()) > 0.97
    assert np.count_nonzero(turns(play("best_channel", *ALWAYS, "system.rounds=50"))) == 2


def test_the_exploration_of_oort_decays() -> None:
    """With 2000 devices, of which none is ever exhausted, the share of new ones follows ε_t."""
    rule, system = Oort(size=50), alike(2000, energy_budget_j=0.0, bandwidth_hz=1e9, received_power_w=1e-3)
    assert [rule.explores(n) for n in (0, 10, 1000)] == pytest.approx([0.9, 0.9 * 0.98**10, 0.3])
    half = np.arange(2000) % 2 == 0
    state = rule.init(system) | {"last": half.astype(np.int64)}
    for t in (1, 40, 200):
        drawn = [rule.select(state, observe(system, t), np.random.default_rng(seed)).schedule for seed in range(20)]
        assert np.mean([(~half[ids]).mean() for ids in drawn]) == pytest.approx(rule.explores(t), abs=0.02)


def test_myopic_energy_keeps_the_budget_at_every_moment() -> None:
    """Without fading the plan is exact, so no device is ever ahead of what it was granted."""
    run = play("myopic_energy", *ALWAYS, "radio.fading=none", "system.energy_budget_j=0.05", "system.rounds=60",
               "cpu.frequency_hz=[5e8, 1.5e9]")  # fmt: skip
    assert run.rounds["scheduled"].sum() > 20
    spent_j = (devices_of(run)["e_cmp_j"] + devices_of(run)["e_tr_j"]).to_numpy().reshape(60, -1).cumsum(axis=0)
    assert (spent_j <= 0.05 * np.arange(1, 61)[:, None] * (1 + 1e-9)).all()


def test_oracles_are_refused_by_a_deployment() -> None:
    pytest.importorskip("flwr")
    from feelstream.flower.scheduler import Scheduler

    with pytest.raises(ScenarioError, match="no server can know"):
        Scheduler(preset("tiny", ["policy.name=best_channel", "policy.gain=oracle"]), 10)


@pytest.mark.parametrize("scenario", ["paper-iid", "stress"])
def test_power_control_spends_less_on_sending_and_verifies(scenario: str) -> None:
    """The same set, sent in all the time that is left, costs less than at P0/β; the whole run passes `verify`."""
    spent = {}
    for power in ("control", "fixed"):
        plain = ["data.dataset=synthetic", "system.rounds=12", "radio.fading=none"]
        run = play("ocean", *plain, "policy.V=inf", f"policy.power={power}", scenario=scenario)
        spent[power] = devices_of(run)["e_tr_j"].sum()
        verified(run)
    assert spent["control"] < 0.5 * spent["fixed"]


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # of SciPy itself, before 1.16
@pytest.mark.parametrize("seed", range(20))
def test_the_split_of_the_band_is_the_cheapest(seed: int) -> None:
    """Against a general solver, over SNRs from −20 to 50 dB and weights over eight decades."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    weight, snr, unit_s = 10.0 ** rng.uniform(-6, 2, n), 10.0 ** rng.uniform(-2, 5, n), 0.5
    weight[0] *= rng.integers(0, 2)
    least = rng.uniform(0.05, 0.9, n) / n
    shares = split(weight, snr, least, unit_s)
    assert shares.sum() == pytest.approx(1, abs=1e-12)
    assert (shares >= least * (1 - 1e-9)).all()

    def cost(b: np.ndarray) -> float:
        return float((weight * sending_time_s(b, snr, unit_s)).sum())

    equal = np.full(n, 1 / n)
    whole = {"type": "eq", "fun": lambda b: b.sum() - 1}
    found = minimize(
        lambda b: cost(b) / cost(equal), equal, bounds=[(low, 1) for low in least], constraints=whole,
        method="SLSQP", options={"ftol": 1e-13, "maxiter": 500},
    )  # fmt: skip
    assert cost(shares) / cost(equal) <= found.fun * (1 + 1e-7)


SHORT = ("data.dataset=synthetic", "system.rounds=8", "trace.level=full")
SETTINGS: dict[str, tuple[str, ...]] = {
    **{f"short {name}": (name, *SHORT) for name in ("paper-2digit", "stress")},
    "one device": ("tiny", "system.devices=1", "policy.size=1"),
    "all devices": ("tiny", "policy.size=10"),
    "hardly anyone is fast enough": ("tiny", "cpu.frequency_hz=[2e7, 1.1e8]"),
}
ORACLE, AUTO = "policy.gain=oracle", "policy.V=auto"
MORE = [
    f"best_channel, {ORACLE}", f"proportional_fair, {ORACLE}",
    *(f"lyapunov, {AUTO}, policy.cardinality={cardinality}" for cardinality in ("exact", "cap", "free")),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("policy", [*OURS, *MORE])
def test_runs_verify(policy: str, settings: str) -> None:
    name, *fields = policy.split(", ")
    scenario, *changes = SETTINGS[settings]
    if to_run(name) and "short" not in settings:
        changes += ["system.round_s=8.0", "reports.slot_s=4.1"]  # room to train for a report
    run = play(name, *fields, *changes, seed=3, scenario=scenario)
    verified(run)
    assert not any(run.rounds[column].is_nan().any() for column in ("energy_mean_cum_j", "queue_mean_j"))
    assert settings != "all devices" or name != "select_all" or run.rounds["scheduled"].max() == 10
