"""V = "auto": the weight, the queue of the fleet, and what it promises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from builders import small, system

from feelstream import preset, simulate, verify
from feelstream.errors import ScenarioError
from feelstream.policies.lyapunov import PLACES, Lyapunov, first_backlog_j, weight_j2
from feelstream.run import Run

QUICK = ["learning.engine=none", "data.dataset=synthetic", "policy.cardinality=cap"]


def energies(run: Run) -> np.ndarray:
    """(T, K)"""
    assert run.devices is not None
    table = run.devices["e_cmp_j"] + run.devices["e_tr_j"]
    return table.to_numpy().reshape(run.scenario.system.rounds, run.scenario.system.devices)


def test_weight_and_backlog_by_hand() -> None:
    """40 devices of 0.5 mJ, 2 places: 10 mJ a place, 20 places: 0.2 J, V = 20·10⁻⁴ J²; V·q0 is the backlog."""
    of = system(40)
    assert first_backlog_j(of, 2) == pytest.approx(0.2)
    assert weight_j2(of, 2) == pytest.approx(2e-3)
    assert weight_j2(of, 2) / 0.01 == pytest.approx(first_backlog_j(of, 2))
    assert Lyapunov(V="auto").init(of)["backlog_j"] == pytest.approx(0.2)
    assert Lyapunov(V=0.3).init(of) == {}


def test_without_a_budget_there_is_no_auto() -> None:
    with pytest.raises(ScenarioError, match="auto needs an energy budget"):
        simulate(small("policy.V=auto", "system.energy_budget_j=0.0"))


@pytest.mark.parametrize("cardinality", ["cap", "exact", "free"])
def test_the_promise_holds_on_every_path_and_verify_checks_it(cardinality: str, tmp_path: Path) -> None:
    """The fleet's queue, computed here from the energies alone, bounds what the fleet spends."""
    run = simulate(preset("paper-iid", [*QUICK, "policy.V=auto", f"policy.cardinality={cardinality}"]))
    spent, granted = energies(run).sum(axis=1), 40 * 5e-4
    z = start = PLACES * granted / 2
    for joules in spent:
        z = max(z + joules - granted, 0.0)
    assert spent.mean() <= granted + (z - start) / len(spent) + 1e-12
    report = verify(run.save(tmp_path / "run"))
    assert report.ok, str(report)


def test_the_budget_is_kept_where_a_fixed_weight_needs_thousands_of_rounds() -> None:
    """Forty rounds, at most two devices: within PLACES/(nT) = ¼ of the budget; V = 0.05 spends ten times as much."""
    auto, fixed = (
        np.mean([energies(simulate(preset("paper-iid", [*QUICK, f"policy.V={V}"]), seed)).mean() for seed in range(3)])
        for V in ("auto", "0.05")
    )
    assert 0.5 * 5e-4 < auto < 1.25 * 5e-4
    assert fixed > 10 * 5e-4


def test_a_fleet_that_forgets_its_queue_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lyapunov, "update", lambda self, state, outcome: state)
    run = simulate(small("policy.V=auto", "policy.cardinality=cap"))
    found = verify(run.save(tmp_path / "run")).disagreement
    assert found is not None
    assert found.field == "score"
