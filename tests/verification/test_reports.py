"""Runs with reports: verified, repeated, continued; and what is wrong in them is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import devices_of, found_in, small, verified
from stopped import goes_on_bit_for_bit

import feelstream as fs
from feelstream.experiment.replaying import replay
from feelstream.model.reporting import Reporting
from feelstream.policies.update_norm import UpdateNorm
from feelstream.verification import verify

LEARNING = ("learning.engine=native", "learning.local.steps=2", "learning.local.batch=4", "system.rounds=6")
POLICIES = ("update_norm", "gradient_norm")


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_goes_on_from_a_checkpoint_bit_for_bit_and_is_verified(policy: str, tmp_path: Path) -> None:
    scenario = small(*LEARNING, f"policy.name={policy}", "learning.local.momentum=0.5", "learning.local.keep=momentum")
    whole = goes_on_bit_for_bit(tmp_path, scenario, at=3)
    assert verify(whole).ok
    assert replay(whole).ok


def smallest(right: Any) -> Any:
    """Schedules the smallest norms."""

    def select(self: Any, state: Any, observation: Any, rng: Any) -> Any:
        decision = right(self, state, observation, rng)
        able = np.flatnonzero(decision.plan.feasible & ~np.isnan(observation.reports["update_norm"]))
        order = able[np.argsort(-decision.score[able])]
        return replace(decision, schedule=np.sort(order[: len(decision.schedule)]))

    return select


@pytest.mark.parametrize(
    ("of", "wrong", "policy", "field"),
    [
        *((Reporting, lambda right: lambda *of: 0 * right(*of), policy, "scheduled") for policy in POLICIES),
        *((Reporting, lambda right: lambda *of: 1.001 * right(*of), policy, "e_report_j") for policy in POLICIES),
        (Reporting, lambda right: lambda self, schedule: self.own_j + self.training_j, "update_norm", "e_report_j"),
        (UpdateNorm, smallest, "update_norm", "scheduled"),
    ],
    ids=["free", "free", "too dear", "too dear", "training charged twice", "smallest norms"],
)
def test_what_is_wrong_is_seen(
    of: type, wrong: Callable[[Any], Any], policy: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = "energy_j" if of is Reporting else "select"
    monkeypatch.setattr(of, method, wrong(getattr(of, method)))
    run = fs.simulate(small(*LEARNING, f"policy.name={policy}", "policy.size=1", "reports.slot_s=2.0"))
    assert found_in(run).field == field


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "more",
    [
        ("costs.cycles_per_sample=4e6", "world.faults.kind=random", "reports.slot_s=1.0", "system.rounds=8"),
        ("devices.classes=[{share=0.5}, {share=0.5, deadline_s=1.5, power_max_w=0.7}]", "reports.slot_s=0.5"),
        ("reports.pace=slow", "reports.slot_s=2.0", "world.harvest.kind=packets", "reports.least_fading=0.2"),
    ],
    ids=["cycles by data, and faults", "deadlines of single devices", "slow, with batteries"],
)
def test_reports_verify_with(more: tuple[str, ...], policy: str) -> None:
    run = fs.simulate(small(*LEARNING, f"policy.name={policy}", *more))
    devices = devices_of(run)
    assert devices.filter(devices["gain"] == 0)["e_report_j"].sum() == 0  # in a fault nobody is heard
    assert devices["e_report_j"].sum() > 0
    verified(run)


def test_features_of_those_alone_who_were_asked_verify() -> None:
    more = ("policy.candidates=3", "data.features.kind=sketch", "data.features.cells=4")
    devices = devices_of(run := fs.simulate(small(*LEARNING, "policy.name=update_norm", *more)))
    answered = devices.filter(devices["e_report_j"] > 0).group_by("round").len()["len"]
    assert 0 < answered.to_numpy().max() <= 3
    verified(run)
