"""Runs with reports: verified, repeated, continued; what is wrong in them is seen, and what cannot be is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import small
from stopped import goes_on_bit_for_bit

import feelstream as fs
from feelstream.errors import ScenarioError
from feelstream.experiment.replaying import replay
from feelstream.model.reporting import Reporting
from feelstream.verification import verify

LEARNING = ("learning.engine=native", "learning.local.steps=2", "learning.local.batch=4", "system.rounds=6")
POLICIES = ("update_norm", "gradient_norm")


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_goes_on_from_a_checkpoint_bit_for_bit_and_is_verified(policy: str, tmp_path: Path) -> None:
    scenario = small(*LEARNING, f"policy.name={policy}", "learning.local.momentum=0.5", "learning.local.keep=momentum")
    whole = goes_on_bit_for_bit(tmp_path, scenario, at=3)
    report = verify(whole)
    assert report.ok, str(report)
    assert replay(whole).ok


@pytest.mark.parametrize("policy", POLICIES)
def test_reports_are_in_the_energy_of_the_round_and_take_their_time(policy: str) -> None:
    run = fs.simulate(small(*LEARNING, f"policy.name={policy}", "reports.slot_s=1.0"))
    assert run.devices is not None
    devices = run.devices
    total = (devices["e_cmp_j"] + devices["e_tr_j"] + devices["e_report_j"]).to_numpy().reshape(6, 6)
    np.testing.assert_allclose(run.rounds["energy_mean_j"].to_numpy(), total.mean(axis=1), rtol=1e-12)
    assert run.rounds["sim_time_s"].to_list() == [4.0 * t for t in range(1, 7)]
    feasible = devices["feasible"].to_numpy()
    computing_s = 419328000.0 / devices["f_hz"].to_numpy()
    assert (computing_s[feasible] < 3.0).all()  # what the slot leaves of 4 s
    assert ((computing_s > 3.0) & (computing_s < 3.9)).any()


def test_others_have_no_such_column_and_all_of_the_round() -> None:
    run = fs.simulate(small("reports.slot_s=1.0"))
    assert run.devices is not None
    assert "e_report_j" not in run.devices.columns
    plain = fs.simulate(small()).devices
    assert plain is not None
    assert run.devices.equals(plain)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("factor", [0.0, 1.001], ids=["free", "too dear"])
def test_a_wrong_charge_is_seen(policy: str, factor: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Reporting.energy_j
    monkeypatch.setattr(Reporting, "energy_j", lambda self, schedule: factor * right(self, schedule))
    run = fs.simulate(small(*LEARNING, f"policy.name={policy}"))
    found = verify(run.save(tmp_path / "run")).disagreement
    assert found is not None
    assert (found.field, found.round) == ("scheduled" if factor == 0 else "e_report_j", found.round)


def test_training_that_is_charged_twice_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reporting, "energy_j", lambda self, schedule: self.own_j + self.training_j)
    run = fs.simulate(small(*LEARNING, "policy.name=update_norm"))
    found = verify(run.save(tmp_path / "run")).disagreement
    assert found is not None
    assert found.field == "e_report_j"


def test_another_than_the_largest_norm_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from feelstream.policies.update_norm import UpdateNorm

    right = UpdateNorm.select

    def smallest(self: Any, state: Any, observation: Any, rng: Any) -> Any:
        decision: Any = right(self, state, observation, rng)
        able = np.flatnonzero(decision.plan.feasible & ~np.isnan(observation.reports["update_norm"]))
        order = able[np.argsort(-decision.score[able])]
        return replace(decision, schedule=np.sort(order[: len(decision.schedule)]))

    monkeypatch.setattr(UpdateNorm, "select", smallest)
    run = fs.simulate(small(*LEARNING, "policy.name=update_norm", "policy.size=1", "reports.slot_s=2.0"))
    found = verify(run.save(tmp_path / "run")).disagreement
    assert found is not None
    assert found.field == "scheduled"


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["learning.engine=none"], r"learning\.engine: must not be none for policy 'gradient_norm', which asks"),
        (["reports.slot_s=4.0"], r"reports\.slot_s: must be below system\.round_s = 4 for policy 'gradient_norm'"),
        (["reports.slot_s=0.001"], r"reports\.slot_s: no report can ever fit a slot of 0\.001 s"),
        (["costs.download_bits=1e6"], r"costs\.download_bits: must be 0 for the policy gradient_norm"),
        (
            ["devices.classes=[{share=0.5}, {share=0.5, deadline_s=0.4}]"],
            r"devices\.deadline_s: must be above reports\.slot_s = 0\.5 s for a policy that asks",
        ),
        (
            ["reports.slot_s=3.9"],
            r"no update can ever fit a round of 4 s, of which reports leave 0\.1 s",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(overrides: list[str], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        small(*LEARNING, "policy.name=gradient_norm", *overrides)
    small(*LEARNING, *overrides)  # of no interest to others


def test_deadlines_of_single_devices_count_from_the_start_of_the_round(tmp_path: Path) -> None:
    classes = "devices.classes=[{share=0.5}, {share=0.5, deadline_s=1.5, power_max_w=0.7}]"
    run = fs.simulate(small(*LEARNING, "policy.name=gradient_norm", classes, "reports.slot_s=0.5"))
    assert run.devices is not None
    feasible = run.devices.filter("feasible")
    allowed_s = np.where(feasible["device"].to_numpy() < 3, 3.5, 1.0)
    assert (419328000.0 / feasible["f_hz"].to_numpy() <= allowed_s).all()
    report = verify(run.save(tmp_path / "run"))
    assert report.ok, str(report)


def test_a_bare_name_means_the_field_that_it_always_meant() -> None:
    changed = small().with_(cycles=1e8, samples=100, slot_s=0.25, bits=64.0)
    assert (changed.cpu.cycles, changed.data.samples) == (1e8, 100)
    assert (changed.reports.slot_s, changed.reports.bits) == (0.25, 64.0)


@pytest.mark.parametrize("policy", POLICIES)
def test_reports_go_with_cycles_by_data_and_with_faults(policy: str, tmp_path: Path) -> None:
    more = ("costs.cycles_per_sample=4e6", "world.faults.kind=random", "reports.slot_s=1.0", "system.rounds=8")
    run = fs.simulate(small(*LEARNING, f"policy.name={policy}", *more))
    assert run.devices is not None
    assert run.devices.filter(run.devices["gain"] == 0)["e_report_j"].sum() == 0  # in a fault nobody is heard
    assert run.devices["e_report_j"].sum() > 0
    report = verify(run.save(tmp_path / "run"))
    assert report.ok, str(report)
