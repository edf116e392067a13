"""Runs under every energy law re-checked: right ones agree, wrong ones are seen, a law of one's own is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import small

from feelstream import simulate, verify
from feelstream.model.energy import Core, Voltage
from feelstream.policies.solvers import rations
from feelstream.verification.findings import Report

A72 = ("cpu.energy.kind=voltage", "cpu.profile=rk3399-a72", "cpu.frequency_hz=profile")
SEVERAL = 'devices.classes=[{share=0.5}, {share=0.5, profile="rk3399-a53", cycles=1e8}]'
LAWS = {
    "cubic": (),
    "interpolated": A72,
    "leaking": (*A72, "cpu.energy.leakage_w=0.08"),
    "discrete": (*A72, "cpu.energy.points=discrete"),
    "the paper's range": ("cpu.energy.kind=voltage", "cpu.profile=rk3288-a12", "cpu.energy.points=discrete"),
    "several cores, and batteries": (*A72, "cpu.energy.leakage_w=0.08", "world.harvest.kind=packets", SEVERAL),
}
JOINT = ("lyapunov_joint", "balanced_joint")
OTHERS = ("lyapunov", "greedy_energy", "ocean", "myopic_energy", "select_all")


def checked(directory: Path, policy: str, *more: str, seed: int = 0, rounds: int = 12) -> Report:
    usual = (f"policy.name={policy}", "policy.size=3", f"system.rounds={rounds}", "system.energy_budget_j=0.15")
    return verify(simulate(small(*usual, *more), seed).save(directory / f"run{seed}"))


@pytest.mark.slow
@pytest.mark.parametrize("policy", [*OTHERS, *JOINT])
@pytest.mark.parametrize("law", LAWS)
def test_runs_agree_under_every_law(law: str, policy: str, tmp_path: Path) -> None:
    narrow = ("radio.bandwidth_hz=1e6", "radio.received_power_dbm=-36.0")
    for seed, more in enumerate([(), narrow]):
        report = checked(tmp_path, policy, *LAWS[law], *more, seed=seed, rounds=4 if policy in JOINT else 12)
        assert report.ok, str(report)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of", "name", "wrong", "policy", "law"),
    [
        (Core, "volts", lambda right: lambda *of: 0.99 * right(*of), "lyapunov", "interpolated"),
        (Core, "volts", lambda right: lambda *of: 0.99 * right(*of), "lyapunov_joint", "discrete"),
        (Voltage, "_leakage_of", lambda right: lambda *of: 0.0, "lyapunov", "leaking"),
    ],
)
def test_wrong_laws_are_seen(
    of: type, name: str, wrong: Any, policy: str, law: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of, name, wrong(getattr(of, name)))
    more = ("radio.noise_w_per_hz=1e-9",)  # sending is cheap, so that slow points are worth it
    report = checked(tmp_path, policy, *LAWS[law], *more, rounds=4)
    assert report.disagreement is not None
    assert report.disagreement.field in ("e_cmp_j", "score"), report.disagreement


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
    file = tmp_path / "own.py"
    file.write_text(OWN)
    own = f"cpu.energy.kind={file}:Linear"
    for policy in ("lyapunov", *JOINT):
        report = checked(tmp_path / policy, policy, own, "system.energy_budget_j=0.3")
        assert report.ok, str(report)
        assert any("user's own law" in sentence for sentence in report.not_checked)
    monkeypatch.setattr(rations, "left_j", lambda pace, system, t, spent_j: np.full(system.devices, np.inf))
    report = checked(tmp_path, "balanced_joint", own, "system.energy_budget_j=0.01")
    assert report.disagreement is not None
    assert report.disagreement.rule.startswith("no device spends more than its budget")
