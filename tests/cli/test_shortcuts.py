"""What people type before they have read anything: shorter forms that mean the same as the long ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from commands import Command, invoked

import feelstream as fs
from feelstream.experiment import comparison, load

PLAN = ("--set", "engine=none")


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (["V=0.1"], ["policy.V=0.1"]),
        (["rounds=5", "lr=0.2"], ["system.rounds=5", "learning.lr=0.2"]),
        (["policy=random"], ["policy.name=random"]),
        (["buffer=window", "buffer.rounds=3"], ["data.buffer.kind=window", "data.buffer.rounds=3"]),
        (["memory=0.4", "policy=balanced"], ["policy.name=balanced", "policy.memory=0.4"]),  # a field of the new policy
    ],
)
def test_a_field_may_be_named_alone(short: list[str], long: list[str]) -> None:
    assert fs.preset("tiny", short) == fs.preset("tiny", long)


def test_policies_may_share_an_option_and_fields_are_those_of_any_of_them() -> None:
    arms = comparison.arms("tiny", ["random, lyapunov(V=1,metric=amount)", "greedy_energy"], ["rounds=3"], ["V=1,2"])
    assert [arm.label for arm in arms] == [
        "random", "lyapunov(V=1,metric=amount) V=1", "lyapunov(V=1,metric=amount) V=2", "greedy_energy",
    ]  # fmt: skip
    assert {arm.scenario.system.rounds for arm in arms} == {3}


def test_policy_and_rounds_are_options_of_run_and_fields_of_the_policy_may_follow(tmp_path: Path) -> None:
    words = ("run", "tiny", "--policy", "balanced", "--rounds", "3", "--set", "memory=0.4", *PLAN, "--out")
    invoked(*words, tmp_path / "a")
    run = fs.read(tmp_path / "a")
    assert run.scenario.policy.plugin_name() == "balanced"
    assert run.scenario.policy.memory == 0.4
    assert len(run.rounds) == 3


def test_tune_says_what_kept_means_and_what_to_run_next(tmp_path: Path) -> None:
    found = invoked("tune", "tiny", "--weights", "1e-3:1e-3:1", "--seeds", "5", "--out", tmp_path / "a")
    assert "kept: the whole 95 % interval of the energy is within the budget of 80.0 mJ" in found.output
    assert "policy.V = 0.001 favours importance most" in found.output
    assert "next: feelstream run tiny --set policy.V=0.001" in found.output


def test_one_policy_is_shown_alone() -> None:
    said = invoked("policies", "random").output
    assert said.startswith("random:")
    assert "lyapunov" not in said
    assert list(json.loads(invoked("policies", "random", "--json").output)) == ["random"]


def test_all_runs_in_a_directory_are_verified(tmp_path: Path) -> None:
    for seed in (0, 1):
        fs.simulate("tiny", seed=seed, rounds=2, engine="none", out=tmp_path / "runs" / str(seed))
    assert "runs that agree: 2 of 2" in invoked("verify", tmp_path).output
    below = tmp_path / "runs" / "0" / "of" / "a" / "sweep" / "2"  # deep below a run
    fs.simulate("tiny", seed=2, rounds=2, engine="none", out=below)
    (below / "back").symlink_to(tmp_path / "runs" / "0")
    (tmp_path / "runs" / "0" / "so-far" / "0").mkdir(parents=True)
    (tmp_path / "runs" / "0" / "so-far" / "0" / "run.json").write_text("{}")  # of a report: its run is verified itself
    assert "runs that agree: 3 of 3" in invoked("verify", tmp_path).output
    assert "runs that agree: 2 of 2" in invoked("verify", tmp_path / "runs" / "0").output
    table = tmp_path / "runs" / "1" / "rounds.parquet"
    table.write_bytes(table.read_bytes()[:-1])
    found = json.loads(invoked("verify", tmp_path, "--json", code=1).output)
    assert [about["ok"] for about in found["runs"].values()] == [True, True, False]
    assert not found["ok"]


@pytest.mark.slow
def test_a_report_names_damaged_runs_and_leaves_them_out(feelstream: Command) -> None:
    feelstream("compare", "tiny", "--policy", "random,age", "--seeds", "2", *PLAN, "--set", "rounds=2", "--out", "all")
    paths = [load("all").directories[key] for key in (("random", 1), ("age", 0))]
    (paths[0] / "run.json").write_text("hello")
    (paths[1] / "rounds.parquet").write_bytes(b"PAR1")
    code, out, err = feelstream("report", "all")
    assert (code, "report   all/report.html" in out) == (1, True)
    first, second = err.splitlines()
    assert first.startswith(
        f"failed: random, seed 1: {paths[0] / 'run.json'} is damaged: it is not a JSON file; remove"
    )
    assert second.startswith(f"failed: age, seed 0: {paths[1] / 'rounds.parquet'} is damaged: ")
    shutil.rmtree(paths[0])
    shutil.rmtree(paths[1])
    assert feelstream("report", "all")[::2] == (0, "")  # some are not finished: that is no damage
    for key in (("random", 0), ("age", 1)):
        (load("all").directories[key] / "run.json").write_text("hello")
    code, out, err = feelstream("report", "all", "--json")
    assert (code, out, err.count("is damaged: it is not a JSON file")) == (1, "", 2)
