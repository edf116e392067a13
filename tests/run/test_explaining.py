"""Explanations: the terms are the score's, the rival is the one at the cut, and what is said to change it does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from builders import devices_of, small, to_run
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import feelstream as fs
from feelstream.cli import app
from feelstream.errors import RunError
from feelstream.policies import POLICIES
from feelstream.policies.base import TRAINING
from feelstream.policies.myopic_energy import MyopicEnergy
from feelstream.run import Change, Run, simulate
from feelstream.run.explaining import Explanation, decided
from feelstream.run.scenes import Scenes

TERMS = ("lyapunov", "importance_greedy", "greedy_energy", "myopic_energy", "balanced", "balanced_joint")
RARELY = ("data.arrivals.kind=poisson", "data.arrivals.rate=0.3")
BUSY = ("system.devices=8", "data.samples=400", "system.energy_budget_j=0.02", "data.arrivals.kind=uniform")


def rows(run: Run, round: int):
    return devices_of(run).filter(round=round)


def is_scheduled(run: Run, round: int, device: int) -> bool:
    return bool(rows(run, round)["scheduled"][device])


@pytest.mark.slow
@settings(max_examples=12)
@given(
    seed=st.integers(0, 50),
    round=st.integers(2, 8),
    device=st.integers(0, 7),
    cardinality=st.sampled_from(["exact", "cap", "free"]),
    V=st.sampled_from(["0.0001", "0.01", "0.05"]),
)
def test_beyond_the_threshold_of_v_a_run_decides_otherwise(
    seed: int, round: int, device: int, cardinality: str, V: str
) -> None:
    """Run again, whole, with V changed in that round: beyond the threshold it fares otherwise, just before it not."""
    scenario = small(*BUSY, f"policy.cardinality={cardinality}", f"policy.V={V}")
    run = simulate(scenario, seed)
    now = is_scheduled(run, round, device)
    explained = run.explain(round, device)
    assert explained.scheduled == now
    for threshold in explained.thresholds:
        if threshold.setting == "V":
            beyond, before = (
                simulate(scenario, seed, changes=[Change(round, "policy.V", repr(V))])
                for V in (threshold.value, threshold.same)
            )
            assert is_scheduled(beyond, round, device) != now
            assert is_scheduled(before, round, device) == now


@settings(max_examples=12)
@given(seed=st.integers(0, 50), round=st.integers(3, 8), device=st.integers(0, 7))
def test_beyond_the_threshold_of_the_frequency_the_score_leaves_its_side_of_the_cut(
    seed: int, round: int, device: int
) -> None:
    """Q·E − V·I from the columns of the trace, by the formulas of docs/model.md alone."""
    scenario = small(*BUSY)
    run = simulate(scenario, seed)
    known, system = rows(run, round), scenario.known_system(10)
    queue, worth = known["queue_j"].to_numpy(), 0.05 * known["importance"].fill_null(0.0).to_numpy()
    sending_s = system.surrogate_time_s(2)

    def taken(f_hz: float) -> bool:
        hz = known["f_hz"].to_numpy().copy()
        hz[device] = f_hz
        feasible = system.cycles / hz + sending_s <= system.round_s
        energy = system.power_coefficient * system.cycles * hz**2 + system.received_power_w / known["beta"] * sending_s
        score = np.where(feasible, queue * energy - worth, np.inf)
        return bool(feasible[device]) and int((score < score[device]).sum()) < 2

    for threshold in run.explain(round, device).thresholds:
        if threshold.setting == "f_hz" and known["feasible"][device]:
            assert taken(threshold.same) == known["scheduled"][device]
            assert taken(threshold.value) != known["scheduled"][device]


@pytest.mark.parametrize("name", TERMS)
def test_every_threshold_of_every_policy_with_terms_is_one(name: str) -> None:
    run = simulate(small(*BUSY, f"policy.name={name}"), 3)
    scenes, found = Scenes(run), 0
    for round, device in ((4, 0), (6, 3), (8, 5))[: 1 if name == "balanced_joint" else 3]:
        scene = scenes.scene(round)
        assert scene is not None
        now = is_scheduled(run, round, device)
        for threshold in run.explain(round, device).thresholds:
            found += 1
            for value, expected in ((threshold.value, not now), (threshold.same, now)):
                changed = decided(scene, device, threshold.setting, value)
                assert bool(np.isin(device, changed.schedule)) == expected
    assert found


class Asking(MyopicEnergy):
    """`myopic_energy`, with reports that it does not look at."""

    needs: ClassVar[frozenset[str]] = frozenset({TRAINING})


@pytest.mark.parametrize(
    ("policy", "overrides", "beside"),
    [
        (Asking(), [*to_run("update_norm"), "reports.slot_s=2.0", "system.energy_budget_j=1.0"], "e_report_j"),
        (MyopicEnergy(), ["costs.download_bits=1e6", "costs.receive_power_w=0.01"], "e_down_j"),
    ],
    ids=["reports", "downloads"],
)
def test_a_decision_is_made_again_from_what_devices_had_spent(
    policy: MyopicEnergy, overrides: list[str], beside: str
) -> None:
    run = simulate(small(*BUSY, *overrides).with_(policy=policy), 3)
    paid = devices_of(run).filter(pl.col("round") < 8)
    energy_j = paid.select(pl.sum_horizontal("^e_(cmp|tr|down|report)_j$")).to_series().to_numpy()
    spent_j = np.bincount(paid["device"].to_numpy(), energy_j, minlength=8)
    scene = Scenes(run).scene(8)
    assert scene is not None
    assert (paid.filter("scheduled")[beside] > 0).any()
    assert scene.state["spent_j"] == pytest.approx(spent_j, rel=1e-12)


@pytest.mark.parametrize("name", POLICIES.names())
def test_every_policy_is_explained_in_sentences(name: str) -> None:
    run = simulate(small(*BUSY, *to_run(name), f"policy.name={name}", "system.rounds=4"), 1)
    for device in range(1 if run.scenario.policy.fills_round else 3):
        explained = run.explain(4, device)
        expected = "scheduled" if is_scheduled(run, 4, device) else "not scheduled"
        assert str(explained).startswith(f"Round 4, device {device}: {expected}")
        assert str(explained).endswith(".")
        assert "nan" not in str(explained)


def test_the_rival_is_the_one_at_the_cut_and_the_terms_add_up_to_the_score() -> None:
    run = simulate(small(*BUSY, "policy.V=auto"), 2)
    for round in range(1, 9):
        known = rows(run, round)
        score = known["score"].fill_null(np.inf).to_numpy()
        out = int(np.argmin(np.where(known["scheduled"], np.inf, score)))
        for device in np.flatnonzero(known["scheduled"].to_numpy()):
            explained = run.explain(round, int(device))
            contest = explained.contest
            assert contest is not None
            assert contest.rival == out or score[contest.rival or 0] == score[out]
            assert contest.margin == pytest.approx(score[out] - score[device])
            energy, *worth = explained.terms.values()
            assert energy - sum(worth) == pytest.approx(score[device])


def test_infeasible_devices_and_those_without_data_are_told_so() -> None:
    run = simulate(small(*BUSY, "policy.name=balanced", "cpu.frequency_hz=[2e7, 4e8]", *RARELY), 0)
    slow = devices_of(run).filter(feasible=False).row(0, named=True)
    assert "too slow for the deadline; it would need" in str(run.explain(slow["round"], slow["device"]))
    bare = devices_of(run).filter(feasible=True, stored=0).row(0, named=True)
    assert "it holds no data" in str(run.explain(bare["round"], bare["device"]))


def test_the_command_prints_what_the_run_says_of_itself(tmp_path: Path) -> None:
    run = simulate(small(*BUSY), 5, changes=[Change(3, "policy.V", "0.5")])
    run.save(tmp_path / "run")
    told = CliRunner().invoke(app, ["explain", str(tmp_path / "run"), "--round", "6", "--device", "2"])
    assert told.exit_code == 0
    assert " ".join(told.output.split()) == " ".join(str(run.explain(6, 2)).split())
    stored: Explanation = fs.read(tmp_path / "run").explain(6, 2)
    assert stored == run.explain(6, 2)


@pytest.mark.parametrize(
    ("round", "device", "level", "sentence"),
    [
        (0, 1, "full", "the round must be from 1 to 8, not 0"),
        (3, 8, "full", "the device must be from 0 to 7, not 8"),
        (1, 1, "rounds", r"trace\.level = rounds"),
    ],
)
def test_what_is_not_there_is_refused(round: int, device: int, level: str, sentence: str) -> None:
    with pytest.raises(RunError, match=sentence):
        simulate(small(*BUSY, f"trace.level={level}"), 1).explain(round, device)


def test_every_term_says_on_which_side_it_speaks() -> None:
    """What is lower in the minimised sum, or higher where it is subtracted, speaks for the device."""
    run = simulate(small(*BUSY, "policy.V=auto"), 2)
    sides = set()
    for round, device in ((t, k) for t in (4, 6, 8) for k in range(8)):
        contest, said = run.explain(round, device).contest, str(run.explain(round, device))
        if contest is not None:
            shown = {name: its - own for name, (own, its) in contest.terms.items()}
            assert contest.ahead == pytest.approx({n: gap if n == "energy Q·E" else -gap for n, gap in shown.items()})
            for name, ahead in contest.ahead.items():
                side = "speaks for it" if ahead > 0 else "speaks against it" if ahead < 0 else "is equal"
                assert re.search(rf"{re.escape(name)} [^;.]*(\.\d+[^;.]*)* {side}", said)
                sides.add(side)
    assert {"speaks for it", "speaks against it"} <= sides


def test_where_nothing_would_change_a_decision_it_says_so() -> None:
    """One device and one place: it is always scheduled, at any V and at any frequency of its narrow range."""
    run = simulate(small("system.devices=1", "policy.size=1", "data.samples=40", "cpu.frequency_hz=[4e8, 4.1e8]"), 0)
    assert "No other V up to a million times smaller or larger and no frequency" in str(run.explain(5, 0))


def test_a_round_that_cannot_be_decided_again_says_so(tmp_path: Path) -> None:
    simulate(small(*BUSY, *to_run("update_norm")).with_(policy=Asking()), 3).save(tmp_path / "run")
    assert "What would change it is not known" in str(fs.read(tmp_path / "run").explain(6, 2))
