"""V, size and budget that change while a run is under way: the run heeds them, run.json notes them, verify too."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from builders import devices_of, small, verified
from sealing import seal
from stopped import stop_in

from feelstream.errors import RunError
from feelstream.loop.changes import from_list, scenario_in
from feelstream.run import Change, read, simulate, simulate_in
from feelstream.run.run import read_so_far, saved_so_far
from feelstream.scenario.files import stored_scenario
from feelstream.verification import verify

CHANGES = (Change(3, "policy.V", "0.4"), Change(5, "policy.size", "3"), Change(6, "system.energy_budget_j", "0.02"))


def tables(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*.parquet"))}


def test_nothing_changes_before_its_round_and_all_of_it_from_then_on() -> None:
    run = simulate(small(), 2, changes=CHANGES)
    assert run.rounds["scheduled"].to_list() == [2, 2, 2, 2, 3, 3, 3, 3]
    noted = [(change["round"], change["field"], change["value"]) for change in run.about["changes"]]
    assert noted == [(3, "policy.V", 0.4), (5, "policy.size", 3), (6, "system.energy_budget_j", 0.02)]
    plain, changed = devices_of(simulate(small(), 2)), devices_of(run)
    for t in (1, 2):
        assert plain.filter(round=t).equals(changed.filter(round=t))
    # score = Q·E~ − V·I, so the difference of scores between two V in the same state is their difference times I.
    third, other = (devices.filter(round=3, feasible=True) for devices in (plain, changed))
    np.testing.assert_allclose(third["score"] - other["score"], (0.4 - 0.05) * third["importance"], rtol=1e-9)
    # Who is idle loses the budget in force, 0.02 J from round 6 on.
    idle = changed.filter(round=6, scheduled=False)
    expected = np.maximum(idle["queue_j"].to_numpy() - 0.02, 0)
    np.testing.assert_allclose(idle["queue_next_j"], expected, rtol=1e-12)


@pytest.mark.parametrize("V", ["0.05", "auto"])
def test_a_change_in_the_first_round_is_a_scenario_that_was_always_so(V: str) -> None:
    """With V = auto the fleet's queue starts where the size and the budgets of the first round let it."""
    from_the_start = small(f"policy.V={V}", "policy.size=3", "system.energy_budget_j=0.02")
    changes = [Change(1, "policy.size", "3"), Change(1, "system.energy_budget_j", "0.02"), Change(1, "policy.V", V)]
    changed, always = simulate(small(f"policy.V={V}"), 2, changes=changes), simulate(from_the_start, 2)
    assert devices_of(changed).equals(devices_of(always))
    verified(changed)


def test_an_interrupted_run_with_changes_ends_in_the_same_bytes_and_other_changes_are_refused(tmp_path: Path) -> None:
    simulate_in(tmp_path / "alone", small(), 2, changes=CHANGES)
    stop_in(tmp_path / "run", small(), at=5, seed=2, changes=CHANGES)
    for others in ((), CHANGES[:1]):
        with pytest.raises(RunError, match="other changes"):
            simulate_in(tmp_path / "run", small(), 2, changes=others)
    simulate_in(tmp_path / "run", small(), 2, changes=CHANGES)
    assert tables(tmp_path / "run") == tables(tmp_path / "alone")
    with pytest.raises(RunError, match="other changes"):
        simulate_in(tmp_path / "run", small(), 2)


@pytest.mark.parametrize(("field", "value"), [("V", 0.41), ("size", 2), ("energy_budget_j", 0.021)])
def test_verify_sees_a_change_that_was_noted_wrongly(tmp_path: Path, field: str, value: float) -> None:
    path = simulate(small(), 2, changes=CHANGES).save(tmp_path / "run") / "run.json"
    resolved = json.loads(path.read_text())["resolved"]
    before, *later = resolved["phases"]
    for phase in later:
        if phase[field] != before[field]:
            phase[field] = value
    found = verify(seal(tmp_path / "run", resolved=resolved)).disagreement
    assert found is not None
    assert found.round == {"V": 3, "size": 5, "energy_budget_j": 6}[field]


def test_what_is_stored_so_far_knows_of_no_change_to_come(tmp_path: Path) -> None:
    stop_in(tmp_path, small(), at=5, seed=2, changes=CHANGES)
    so_far = saved_so_far(tmp_path)
    assert verify(so_far).ok
    assert read(so_far).explain(4, 1) == read_so_far(tmp_path).explain(4, 1)


CLASSES = "[{share=0.5}, {share=0.5, energy_budget_j=0.003}]"


@pytest.mark.parametrize("V", ["0.05", "auto"])
def test_a_budget_changes_for_those_that_have_none_of_their_own(V: str) -> None:
    run = simulate(small(f"devices.classes={CLASSES}", f"policy.V={V}"), 2, changes=CHANGES)
    idle = devices_of(run).filter(round=7, scheduled=False)
    budget_j = np.where(idle["device"].to_numpy() < 3, 0.02, 0.003)
    np.testing.assert_allclose(idle["queue_next_j"], np.maximum(idle["queue_j"].to_numpy() - budget_j, 0), rtol=1e-12)
    verified(run)


def test_a_change_is_an_override_with_a_round_however_it_was_given() -> None:
    given = Change(round=3, field="policy.V", value="0.4")
    assert given == Change.parse("3: policy.V = 0.4") == from_list([{"round": 3, "field": "policy.V", "value": 0.4}])[0]
    assert str(given) == "3:policy.V=0.4"
    assert small().overridden([given]) == small("policy.V=0.4")
    assert scenario_in(small(), [given], 2) == small()
    assert scenario_in(small(), [given], 3) == small("policy.V=0.4")
    budgets_j = np.linspace(0.1, 0.6, 6)
    assert Change(3, "energy_budget_j", budgets_j) == Change(3, "energy_budget_j", budgets_j.tolist())
    infinite = from_list([{"round": 1, "field": "policy.V", "value": "inf"}])
    assert scenario_in(small(), infinite, 1) == small("policy.V=inf")


def test_the_changes_of_a_stored_run_apply_without_the_code_of_its_policy(tmp_path: Path) -> None:
    table = small().as_dict()
    table["policy"] = {"name": f"{tmp_path / 'gone.py'}:Gone", "V": 0.1, "size": 2}
    stored = stored_scenario(table, tmp_path)
    changes = from_list(
        [{"round": 2, "field": "policy.V", "value": 0.3}, {"round": 4, "field": "policy.size", "value": 5}]
    )
    assert [scenario_in(stored, changes, t).as_dict()["policy"]["V"] for t in (1, 2, 4)] == [0.1, 0.3, 0.3]
    assert [scenario_in(stored, changes, t).as_dict()["policy"]["size"] for t in (1, 2, 4)] == [2, 2, 5]
