"""A stored run is found again if and only if nothing that decides its numbers has changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from restarted import restart
from small_plans import arm, in_process, tables, two_arms

import feelstream as fs
from feelstream.errors import ScenarioError
from feelstream.experiment import Arm, Plan
from feelstream.experiment.identity import identify, run_names
from feelstream.experiment.store import NOT_YET, why_not

BASE = fs.preset("tiny", ["learning.engine=none"])


def known(scenario: fs.Scenario) -> dict[str, Any]:
    found = identify(scenario.as_dict()).known
    assert found is not None
    return found


def name_of(scenario: fs.Scenario, seed: int = 0, **changed: object) -> str:
    return run_names(scenario, [seed], known(scenario) | changed)[0]


def test_a_name_is_readable_and_stable() -> None:
    assert re.fullmatch(r"lyapunov-iid-k10-n2-seed3-[0-9a-f]{16}", name_of(BASE, 3))
    assert name_of(BASE) == name_of(fs.preset("tiny", ["learning.engine=none"]))


@pytest.mark.parametrize(
    "override",
    [
        "policy.V=0.06",
        "policy.V=inf",
        "system.round_s=4.5",
        "radio.fading=none",
        "data.samples=2001",
        "trace.level=rounds",
    ],
)
def test_any_other_setting_has_another_name(override: str) -> None:
    assert name_of(fs.preset("tiny", ["learning.engine=none", override])) != name_of(BASE)


@pytest.mark.parametrize("changed", [{"feelstream": "9"}, {"format": 0}, {"engine": {"isa": "x"}}, {"data": "0"}])
def test_another_version_engine_or_data_has_another_name(changed: dict[str, Any]) -> None:
    assert name_of(BASE, **changed) != name_of(BASE)


def test_engine_and_data_are_those_of_the_run_itself(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    scenario = fs.preset("tiny", ["learning.engine=torch", "system.rounds=1"])
    here, about = known(scenario), fs.simulate(scenario).about
    assert here["engine"] == about["engine"]
    assert here["engine"]["name"] == "torch"
    assert here["data"] == about["data"]["digest"]


POLICY = """
from feelstream.policies.random import Random
class Mine(Random):
    '''{}'''
"""


def test_a_changed_policy_file_is_another_run(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(POLICY.format("first"))
    fields = ["learning.engine=none", f"policy.name={file}:Mine"]
    before = name_of(fs.preset("tiny", fields))
    file.write_text(POLICY.format("second"))
    restart(tmp_path)
    assert name_of(fs.preset("tiny", fields)) != before


def test_a_changed_data_file_is_another_run(tmp_path: Path) -> None:
    file = tmp_path / "own.npz"
    names = []
    for shade in (1, 2):
        images, labels = (
            np.arange(640, dtype=np.uint8).reshape(40, 1, 4, 4) // shade,
            (np.arange(40) % 10).astype(np.uint8),
        )
        np.savez(file, x_train=images, y_train=labels, x_test=images, y_test=labels)
        names.append(name_of(fs.preset("tiny", ["learning.engine=none", f"data.dataset={file}"])))
    assert names[0] != names[1]


def test_changed_settings_play_anew_beside_the_old(tmp_path: Path) -> None:
    first = in_process(two_arms(), tmp_path)
    old = tables(tmp_path)
    second = in_process(two_arms((0, 1), "policy.size=3"), tmp_path)
    assert set(tables(tmp_path)) > set(old)
    assert {name: tables(tmp_path)[name] for name in old} == old
    assert first.rounds()["planned"].unique().to_list() == [2]
    assert second.rounds()["planned"].unique().to_list() == [3]


@pytest.mark.parametrize(
    ("second", "replaces"),
    [
        (two_arms((0, 1)), False),
        (Plan("more", (*two_arms().arms, arm("third", "policy.name=age")), (0, 1, 2)), False),
        (Plan("fewer", two_arms().arms[:1], (0, 1)), True),
        (two_arms((0,)), True),
        (two_arms((0, 1), "policy.size=3"), True),
    ],
    ids=["the same", "more", "fewer configurations", "fewer seeds", "other settings"],
)
def test_a_comparison_that_replaces_another_says_so(
    second: Plan, replaces: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    in_process(two_arms((0, 1)), tmp_path)
    in_process(second, tmp_path)
    told = f"{tmp_path} held another comparison (ours, random, over 2 seeds); this one replaces its tables and report"
    assert [record.getMessage().partition(", its runs")[0] for record in caplog.records] == [told] * replaces


@pytest.mark.parametrize(
    ("arms", "seeds", "message"),
    [
        ((), (0,), "at least one configuration"),
        ((Arm("a", BASE),), (), "at least one configuration and one seed"),
        ((Arm("a", BASE), Arm("a", BASE)), (0,), "the configuration 'a' 2 times"),
        ((Arm("a", BASE),), (1, 1), "the seed '1' 2 times"),
        ((Arm("a", BASE),), (0, -1), "a seed must be 0 or more, not -1"),
    ],
)
def test_plans_that_make_no_sense(arms: tuple[Arm, ...], seeds: tuple[int, ...], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        Plan("x", arms, seeds)


def test_unknown_arm_names_the_known_ones() -> None:
    with pytest.raises(ScenarioError, match="no configuration 'b'; it has: a"):
        Plan("x", (arm("a"),), (0,)).arm("b")


def test_a_run_whose_name_no_file_system_has_is_not_there() -> None:
    assert why_not(Path("x" * 5000)) == NOT_YET
