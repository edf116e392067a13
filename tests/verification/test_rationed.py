"""balanced_joint re-checked: right runs agree, whatever the scenario, and every wrong rule is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from builders import small

from feelstream import simulate, verify
from feelstream.policies import balanced_joint
from feelstream.policies.solvers import rations
from feelstream.policies.solvers.balance import Balance
from feelstream.verification import reading

pytestmark = pytest.mark.slow
FIELDS = ("policy.name=balanced_joint", "policy.size=5", "system.rounds=16", "system.energy_budget_j=0.002")


def checked(directory: Path, *more: str, seed: int = 0):
    return verify(simulate(small(*FIELDS, *more), seed).save(directory / "run"))


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("policy.pace=running",),
        ("policy.knows=sizes",),
        ("policy.memory=1.0", "policy.spread=0.0", "policy.price=0.0", "policy.scarcity=0.0", "policy.lead=100.0"),
        ("policy.lead=0.7", "policy.lead_part=0.0", "policy.tolerance=0.0"),
        ("policy.lead=0.7", "policy.lead_part=0.2"),
        ("policy.haste=3.0", "policy.peak=0.4", "policy.scarcity=0.0"),
        ("policy.haste=1.0", "policy.peak=100.0", "policy.least=1"),
        ("policy.size=2", "policy.tolerance=0.1", "data.partition.kind=digits", "data.partition.per_device=1"),
        ("policy.least=4", "data.partition.kind=digits", "data.partition.per_device=2"),
        ("data.buffer.kind=window", "data.fresh=per_round"),
        ("data.buffer.kind=reservoir", "data.buffer.capacity=9", "data.arrivals.kind=poisson"),
        ("radio.bandwidth_hz=1e6", "radio.received_power_dbm=-36.0", "radio.admission=largest"),
        ("radio.noise_w_per_hz=1e-7", "system.energy_budget_j=0.02"),  # sending costs as much as computing
        (
            "cpu.power_coefficient=1.5e-51",
            "radio.fading=none",
            "radio.link_margin=1",
        ),  # sending costs as planned
        ("policy.power_max_w=1e-86",),  # nobody can send, not even with the whole band
        ("world.availability.kind=markov",),
    ],
    ids=lambda more: " ".join(more) or "usual",
)
def test_right_runs_agree(more: tuple[str, ...], tmp_path: Path) -> None:
    """Once each; the attack `budgets` plays and verifies this policy in hundreds of scenarios."""
    report = checked(tmp_path, *more)
    assert report.ok, str(report)


def test_the_state_goes_on_from_block_to_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BLOCK_ROWS", 6 * 4)  # four rounds of six devices
    report = checked(tmp_path)
    assert report.ok, str(report)


def never_due(patch: pytest.MonkeyPatch) -> None:
    """Paces by the round alone, not since data was there."""
    right = rations.due_j
    patch.setattr(rations, "due_j", lambda pace, system, t, first, haste: right(pace, system, t, 0 * first + 1, haste))


def forgets_what_was_spent(patch: pytest.MonkeyPatch) -> None:
    right = balanced_joint.BalancedJoint.update

    def wrong(self: Any, state: Any, outcome: Any) -> Any:
        return right(self, state, outcome) | {"spent_j": state["spent_j"]}

    patch.setattr(balanced_joint.BalancedJoint, "update", wrong)


def takes_the_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Balance, "choose", lambda self, most: list(range(min(most, len(self.cost)))))


def takes_the_worst(patch: pytest.MonkeyPatch) -> None:
    right = Balance.value
    patch.setattr(Balance, "value", lambda self, *sums: -right(self, *sums))


def one_too_many(patch: pytest.MonkeyPatch) -> None:
    right = rations.turns
    patch.setattr(rations, "turns", lambda *known: right(*known) + 1)


def runs_ahead(patch: pytest.MonkeyPatch) -> None:
    """Every lead counts as a hundred turns."""
    right = balanced_joint.BalancedJoint._candidates

    def wrong(self: Any, state: Any, observation: Any) -> Any:
        return right(self.model_copy(update={"lead": 100.0}), state, observation)

    patch.setattr(balanced_joint.BalancedJoint, "_candidates", wrong)


def counts_turns_alone(patch: pytest.MonkeyPatch) -> None:
    """No part of the budget lets a device get further ahead."""
    patch.setattr(rations, "whole_j", lambda pace, system, t: np.zeros(system.devices))


def takes_its_time(patch: pytest.MonkeyPatch) -> None:
    """Rations that grow evenly, whatever the haste."""
    right = rations.due_j
    patch.setattr(rations, "due_j", lambda pace, system, t, first, haste: right(pace, system, t, first, 1.0))


def knows_no_peak(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rations, "carried", lambda system, turn_j, peak: system.devices)


def never_waits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(balanced_joint.BalancedJoint, "_waits", lambda self, known, members: False)


def knows_no_scarcity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rations, "part", lambda pace, system, t, turn_j: np.zeros(len(turn_j)))


def spends_without_limit(patch: pytest.MonkeyPatch) -> None:
    right = balanced_joint.BalancedJoint.transmit

    def wrong(self: Any, observation: Any, decision: Any, gain: Any) -> Any:
        return right(self, observation, replace(decision, allowance_j=None), gain)

    patch.setattr(balanced_joint.BalancedJoint, "transmit", wrong)


@pytest.mark.parametrize(
    ("wrong", "more"),
    [
        (never_due, ("policy.least=1", "policy.peak=100.0", "data.arrivals.kind=truncated_normal")),
        (forgets_what_was_spent, ()),
        (takes_the_first, ()),
        (takes_the_worst, ()),
        (one_too_many, ("policy.least=1", "policy.scarcity=0.0", "policy.peak=100.0")),
        (runs_ahead, ("policy.lead=1.0", "policy.lead_part=0.0")),
        (counts_turns_alone, ("policy.lead=1.0",)),
        (takes_its_time, ("policy.haste=2.0", "policy.least=1", "policy.scarcity=0.0", "policy.peak=100.0")),
        (knows_no_peak, ("policy.peak=0.2", "policy.least=1", "policy.scarcity=0.0")),
        (never_waits, ("policy.tolerance=0.01", "data.partition.kind=digits", "data.partition.per_device=2")),
        (knows_no_scarcity, ("policy.scarcity=2.0",)),
        (spends_without_limit, ("radio.noise_w_per_hz=1e-7", "system.energy_budget_j=0.02")),
    ],
)
def test_wrong_rules_are_seen(
    wrong: Callable[[pytest.MonkeyPatch], None], more: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong(monkeypatch)
    found = (checked(tmp_path / str(seed), *more, seed=seed).disagreement for seed in range(3))
    assert any(found), "nothing was seen in three runs"


def test_counts_of_stored_labels_must_fit_the_others(tmp_path: Path) -> None:
    run = simulate(small(*FIELDS))
    assert run.devices is not None
    assert run.devices["stored_labels"].dtype == pl.List(pl.Int32)
    total = run.devices["stored_labels"].list.sum()
    assert (total == run.devices["stored"]).all()
