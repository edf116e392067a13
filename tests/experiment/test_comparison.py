"""From what a user types to arms, and from results to the table."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from commands import Command
from scipy import stats
from small_plans import in_process

import feelstream as fs
from feelstream.errors import RunError
from feelstream.experiment import Arm, Plan, comparison
from feelstream.policies import POLICIES

NONE = ["learning.engine=none"]
MINE = """
from feelstream.policies.random import Random
class Mine(Random):
    '''Random by another name.'''
"""


def labels(*arguments: Any) -> list[str]:
    return [arm.label for arm in comparison.arms(*arguments)]


def test_arms_are_policies_times_grid() -> None:
    arms = comparison.arms(
        "tiny", ["random", "lyapunov"], ["policy.size=3"], ["policy.V=0.1,inf", "system.devices=8,9"]
    )
    assert [arm.label for arm in arms] == [
        "random system.devices=8",
        "random system.devices=9",
        "lyapunov V=0.1 system.devices=8",
        "lyapunov V=0.1 system.devices=9",
        "lyapunov V=inf system.devices=8",
        "lyapunov V=inf system.devices=9",
    ]
    assert arms[3].scenario == fs.preset("tiny", ["policy.size=3", "policy.V=0.1", "system.devices=9"])
    assert arms[0].scenario == fs.preset("tiny", ["policy.name=random", "policy.size=3", "system.devices=8"])


def test_without_a_policy_it_is_the_scenarios_own() -> None:
    assert labels("tiny") == ["lyapunov"]
    assert labels("tiny", [], [], ["policy.metric=amount,combined"]) == [
        "lyapunov metric=amount",
        "lyapunov metric=combined",
    ]


def test_all_policies_and_policies_with_fields() -> None:
    assert labels("tiny", ["all"]) == POLICIES.names()
    without_model = labels("tiny", ["all"], NONE)
    assert set(POLICIES.names()) - set(without_model) == {"update_norm", "gradient_norm"}
    arms = comparison.arms("tiny", ["lyapunov(V=inf, metric=amount)", "lyapunov"])
    assert [arm.label for arm in arms] == ["lyapunov(V=inf,metric=amount)", "lyapunov"]
    assert arms[0].scenario == fs.preset("tiny", ["policy.V=inf", "policy.metric=amount"])
    assert arms[1].scenario == fs.preset("tiny")


def test_a_kind_that_needs_another_field() -> None:
    (found,) = comparison.arms("tiny", ["random"], ["cpu.energy.kind=voltage", "profile=rk3399-a72"])
    assert found.scenario.cpu.profile == "rk3399-a72"


def test_a_policy_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    (arm,) = comparison.arms("tiny", [f"{file}:Mine(size=4)"])
    assert arm.label == f"{file}:Mine(size=4)"
    assert (type(arm.scenario.policy).__name__, arm.scenario.policy.size) == ("Mine", 4)


def test_lists_are_one_value() -> None:
    arms = comparison.arms("tiny", [], [], ["radio.gain_db=[-5.0, 3.0],[0.0, 1.0]"])
    assert [arm.scenario.radio.gain_db for arm in arms] == [(-5.0, 3.0), (0.0, 1.0)]


def test_summary_against_scipy(tmp_path: Path) -> None:
    plan = Plan("x", comparison.arms("tiny", ["lyapunov", "random"], NONE), (0, 1, 2, 3, 4))
    summary = comparison.summarise(in_process(plan, tmp_path))
    resources = [
        "energy_j",
        "energy_over_budget",
        "devices_over_budget",
        "worst_device",
        "data_used",
        "fairness",
        "drops",
    ]
    assert summary["quantity"].to_list() == resources * 2  # nothing about accuracy
    energy = np.array(
        [[fs.simulate(arm.scenario, seed).rounds["energy_mean_j"].mean() for seed in plan.seeds] for arm in plan.arms]
    )
    ours, random = summary.filter(quantity="energy_j").rows(named=True)
    assert ours["difference"] is ours["verdict"] is None
    low, high = stats.t.interval(0.95, 4, energy[1].mean(), stats.sem(energy[1]))
    np.testing.assert_allclose([random[name] for name in ("mean", "low", "high")], [energy[1].mean(), low, high])
    gap = stats.ttest_rel(energy[1], energy[0])
    low, high = gap.confidence_interval(0.95)
    np.testing.assert_allclose([random["difference_low"], random["difference_high"]], [low, high])
    assert random["verdict"] == ("unclear" if gap.pvalue > 0.05 else "higher" if low > 0 else "lower")


def test_nothing_finished_says_why(tmp_path: Path) -> None:
    broken = Arm("a", fs.preset("tiny", ["learning.engine=torch", "learning.model=nowhere:M"]))
    with pytest.raises(RunError, match=r"no run of 'x' finished: .*nowhere"):
        comparison.summarise(in_process(Plan("x", (broken,), (0,)), tmp_path))


@pytest.fixture
def compare(feelstream: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, with its runs in this process."""
    monkeypatch.setattr("feelstream.terminal.playing.execute", lambda plan, out, **_: in_process(plan, out))
    return partial(feelstream, "compare", "tiny")


@pytest.mark.slow
def test_compare_from_the_command_line(compare: Command, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    learning = ("--set", "learning.engine=torch", "--set", "system.rounds=3", "--set", "learning.steps=2")
    policies = ("--policy", "lyapunov", "--policy", "random")
    code, shown, _ = compare(*policies, "--seeds", "2", "--seed-start", "5", *learning)
    assert code == 0
    assert "fewer than 5 seeds: no verdict" in " ".join(shown.split())
    out = tmp_path / "results" / "compare-tiny"
    summary = pl.read_csv(out / "summary.csv")
    assert {"late_accuracy", "accuracy_area", "energy_j", "data_used", "fairness"} <= set(summary["quantity"])
    assert summary.filter(quantity="late_accuracy")["n"].to_list() == [2, 2]
    for name in ("report.html", "figures/pareto.png", "figures/pareto.pdf"):
        assert (out / name).is_file(), name
    curves = pl.read_parquet(out / "curves.parquet")
    assert curves.columns == ["quantity", "arm", "round", "mean", "low", "high", "n"]
    drawn = ["accuracy", "loss", "energy_mean_cum_j", "queue_mean_j", "queue_max_j"]  # all that the report draws
    assert curves["quantity"].unique(maintain_order=True).to_list() == drawn
    assert len(curves) == len(drawn) * 2 * 3
    final = curves.filter(quantity="accuracy", arm="random", round=3)["mean"].item()
    assert math.isclose(final, summary.filter(arm="random", quantity="late_accuracy")["mean"].item())


@pytest.mark.slow
def test_one_seed_gives_no_interval(compare: Command) -> None:
    two = ("--policy", "lyapunov", "--policy", "random")
    code, shown, _ = compare(*two, "--seeds", "1", "--set", *NONE, "--out", "here")
    assert code == 0
    assert "one seed: no interval" in shown
    assert "±" not in shown
    assert "accuracy" not in shown


@pytest.mark.slow
def test_what_failed_is_told_and_the_rest_is_shown(compare: Command, tmp_path: Path) -> None:
    (tmp_path / "faulty.py").write_text(MINE.replace("'''Random by another name.'''", "def select(self): ..."))
    code, out, err = compare("--policy", "random", "--policy", "faulty.py:Mine", "--seeds", "5", "--set", *NONE)
    assert code == 1
    assert "no seed in common" in out
    assert "failed: faulty.py:Mine, seed 0; faulty.py:Mine, seed 1; faulty.py:Mine, seed 2 and 2 more: " in err
    assert "must take select(state, observation, rng), not select(), in round 1" in " ".join(err.split())
