"""Runs of every preset, under energy laws and with reports verify, and what goes against one rule of theirs is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import devices_of, found_in, small, to_run, verified
from recorded import series_of_five
from stopped import goes_on_bit_for_bit

import feelstream as fs
from feelstream.experiment.replaying import replay
from feelstream.model.energy import Core, Voltage
from feelstream.model.reporting import Reporting
from feelstream.policies import POLICIES
from feelstream.policies.base import Decision, Observation
from feelstream.policies.solvers import rations
from feelstream.policies.update_norm import UpdateNorm

A72 = ("cpu.energy.kind=voltage", "cpu.profile=rk3399-a72", "cpu.frequency_hz=profile")
LEAKING = (*A72, "cpu.energy.leakage_w=0.08")
SEVERAL = 'devices.classes=[{share=0.5}, {share=0.5, profile="rk3399-a53", cycles=1e8}]'
LAWS: dict[str, tuple[str, ...]] = {
    "cubic": (),
    "interpolated": A72,
    "leaking": LEAKING,
    "discrete": (*A72, "cpu.energy.points=discrete"),
    "the paper's range": ("cpu.energy.kind=voltage", "cpu.profile=rk3288-a12", "cpu.energy.points=discrete"),
    "several cores, and batteries": (*LEAKING, "world.harvest.kind=packets", SEVERAL),
}
NARROW = ("radio.bandwidth_hz=1e6", "radio.received_power_dbm=-36.0")
JOINT = ("lyapunov_joint", "balanced_joint")
OTHERS = ("lyapunov", "greedy_energy", "ocean", "myopic_energy", "select_all")
ASKING = ("update_norm", "gradient_norm")


def played(policy: str, *more: str, seed: int = 0) -> fs.Run:
    rounds = 4 if policy in JOINT else 12
    usual = (f"policy.name={policy}", "policy.size=3", f"system.rounds={rounds}", "system.energy_budget_j=0.15")
    return fs.simulate(small(*usual, *to_run(policy), *more), seed)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [*OTHERS, *JOINT])
@pytest.mark.parametrize("law", LAWS)
def test_runs_agree_under_every_law(law: str, policy: str) -> None:
    for seed, more in enumerate([(), NARROW]):
        verified(played(policy, *LAWS[law], *more, seed=seed))


@pytest.mark.parametrize("policy", ASKING)
@pytest.mark.parametrize(
    "more",
    [
        ("costs.cycles_per_sample=4e6", "world.faults.kind=random", "reports.slot_s=1.0"),
        ("devices.classes=[{share=0.5}, {share=0.5, deadline_s=1.5, power_max_w=0.7}]", "reports.slot_s=0.5"),
        ("reports.pace=slow", "reports.slot_s=2.0", "world.harvest.kind=packets", "reports.least_fading=0.2"),
    ],
    ids=["cycles by data, and faults", "deadlines of single devices", "slow, with batteries"],
)
def test_reports_verify_with(more: tuple[str, ...], policy: str) -> None:
    devices = devices_of(run := played(policy, *more))
    assert devices.filter(devices["gain"] == 0)["e_report_j"].sum() == 0  # in a fault nobody is heard
    assert devices["e_report_j"].sum() > 0
    verified(run)


def test_features_of_those_alone_who_were_asked_verify() -> None:
    more = ("policy.candidates=3", "data.features.kind=sketch", "data.features.cells=4")
    devices = devices_of(run := played("update_norm", *more))
    answered = devices.filter(devices["e_report_j"] > 0).group_by("round").len()["len"]
    assert 0 < answered.to_numpy().max() <= 3
    verified(run)


@pytest.mark.parametrize("policy", ASKING)
def test_a_run_with_reports_goes_on_from_a_checkpoint_and_is_verified(policy: str, tmp_path: Path) -> None:
    kept = ("learning.local.momentum=0.5", "learning.local.keep=momentum", "learning.local.steps=2")
    whole = goes_on_bit_for_bit(tmp_path, small(*to_run(policy), *kept, f"policy.name={policy}"), at=3)
    assert fs.verify(whole).ok
    assert replay(whole).ok


def short(name: str, directory: Path) -> fs.Scenario:
    """The preset with its own policy, few data and rounds."""
    own = ["system.rounds=4", "trace.level=full", "learning.engine=none", "data.dataset=synthetic", "data.samples=1000"]
    match name:
        case "har":
            own += [f"data.dataset={series_of_five(directory / 'five.npz')}", "system.devices=5"]
        case "million":
            own += ["system.devices=300", "policy.size=20", "data.samples=6000"]
        case "within-budget":  # a turn takes the budget of nine rounds
            own += ["system.rounds=12"]
    return fs.preset(name, own)


@pytest.mark.parametrize("name", list(fs.presets()))
def test_every_preset_verifies(name: str, tmp_path: Path) -> None:
    run = fs.simulate(short(name, tmp_path), seed=2)
    verified(run)
    assert run.rounds["scheduled"].sum() > 0


Right = Callable[..., Any]
Decides = Callable[[Observation, Decision], Decision]
CHEAP = "radio.noise_w_per_hz=1e-9"  # sending is cheap, so that slow points are worth it
STRESS = (*NARROW, "radio.noise_w_per_hz=1e-13", "cpu.frequency_hz=[2e7, 1.52e9]")


def times(factor: float) -> Callable[[Right], Right]:
    return lambda right: lambda *of: factor * right(*of)


def decides(wrong: Decides) -> Callable[[Right], Right]:
    return lambda right: lambda self, state, seen, rng: wrong(seen, right(self, state, seen, rng))


def one_fewer(observation: Observation, decision: Decision) -> Decision:
    fewer = decision.schedule[:-1]
    return Decision(fewer, observation.plan(len(fewer)))


def one_missing(observation: Observation, decision: Decision) -> Decision:
    return replace(decision, schedule=decision.schedule[:-1])


def swapped(observation: Observation, decision: Decision) -> Decision:
    """The last device gives way to a feasible one that was left out."""
    others = np.setdiff1d(np.flatnonzero(decision.plan.feasible), decision.schedule)
    if not len(others) or not len(decision.schedule):
        return decision
    return replace(decision, schedule=np.append(decision.schedule[:-1], others[0]))


def smallest(observation: Observation, decision: Decision) -> Decision:
    """The smallest norms."""
    assert decision.score is not None
    able = np.flatnonzero(decision.plan.feasible & ~np.isnan(observation.reports["update_norm"]))
    order = able[np.argsort(-decision.score[able])]
    return replace(decision, schedule=np.sort(order[: len(decision.schedule)]))


def other_score(observation: Observation, decision: Decision) -> Decision:
    assert decision.score is not None
    return replace(decision, score=decision.score * 1.01)


FEW = ("policy.size=1", "reports.slot_s=2.0", "learning.local.steps=2")
# Whose method becomes what, made of the right one, in which runs, and the field that is then wrong.
WRONG: list[tuple[type, str, Callable[[Right], Right], str, tuple[str, ...], str]] = [
    (Core, "volts", times(0.99), "lyapunov", (*A72, CHEAP), "e_cmp_j"),
    (Core, "volts", times(0.99), "lyapunov_joint", (*LAWS["discrete"], CHEAP), "e_cmp_j"),
    (Voltage, "_leakage_of", times(0.0), "lyapunov", (*LEAKING, CHEAP), "e_cmp_j"),
    *((Reporting, "energy_j", times(0), policy, FEW, "scheduled") for policy in ASKING),
    *((Reporting, "energy_j", times(1.001), policy, FEW, "e_report_j") for policy in ASKING),
    (Reporting, "energy_j", lambda right: lambda self, ids: self.own_j + self.training_j, ASKING[0], FEW, "e_report_j"),
    (UpdateNorm, "select", decides(smallest), "update_norm", FEW, "scheduled"),
    *(
        (POLICIES.ours[name], "select", decides(wrong), name, STRESS, field)
        for name, wrong, field in (
            ("select_all", one_fewer, "planned"), ("fedcs", one_missing, "planned"), ("oort", one_missing, "scheduled"),
            ("greedy_energy", swapped, "scheduled"), ("greedy_energy", other_score, "score"),
            ("importance_greedy", swapped, "scheduled"), ("importance_greedy", other_score, "score"),
            ("age", swapped, "scheduled"), ("best_channel", swapped, "scheduled"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("of", "method", "wrong", "policy", "settings", "field"), WRONG)
def test_what_is_wrong_is_seen(
    of: type, method: str, wrong: Callable[[Right], Right], policy: str, settings: tuple[str, ...], field: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    verified(played(policy, *settings))
    monkeypatch.setattr(of, method, wrong(getattr(of, method)))
    assert found_in(played(policy, *settings)).field == field


OWN = '''
from feelstream.model.energy import EnergyLaw

class Linear(EnergyLaw):
    """Half a nanojoule a cycle, at any frequency."""

    def energy_j(self, cpus, cycles, f_hz):
        return 0.0 * f_hz + 5e-10 * cycles

    def pieces(self, cpus, cycles):
        import numpy as np
        from feelstream.model.energy import Pieces
        no = np.zeros((len(cycles), 1))
        return Pieces(no, no + np.inf, no > 0, no, no, no, no)
'''


def test_a_law_of_ones_own_is_not_checked_and_what_it_spends_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    own = (f"cpu.energy.kind={tmp_path / 'own.py'}:Linear", "system.rounds=12")
    for policy in ("lyapunov", *JOINT):
        report = verified(played(policy, *own, "system.energy_budget_j=0.3"))
        assert any("user's own law" in sentence for sentence in report.not_checked)
    monkeypatch.setattr(rations, "left_j", lambda pace, system, t, spent_j: np.full(system.devices, np.inf))
    found = found_in(played("balanced_joint", *own, "system.energy_budget_j=0.01"))
    assert found.rule.startswith("no device spends more than its budget")
