"""Comparisons and sweeps from Python."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from builders import small

import feelstream as fs
from feelstream.errors import RunError, ScenarioError
from feelstream.experiment import load


class Largest(fs.Policy):
    """The devices that hold the most."""

    def select(self, state, observation, rng):
        plan = observation.plan(self.size)
        ids = np.flatnonzero(plan.feasible)
        return fs.Decision(ids[np.argsort(-observation.stored[ids], kind="stable")][: self.size], plan)


@pytest.fixture
def threads():
    with ThreadPoolExecutor(2) as executor:
        yield executor


def test_policies_by_name_object_and_scenario(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    entries = ["lyapunov(V=0.2)", fs.preset("tiny").policy, small("policy.name=random")]
    found = fs.compare(entries, small(), seeds=2, out=tmp_path, executor=threads)
    assert found.arms == ["lyapunov(V=0.2)", "lyapunov(V=0.05,size=2)", "random"]
    assert found.failures == []
    assert found.results.plan.arm("lyapunov(V=0.2)").scenario == small("policy.V=0.2")
    assert repr(found) == f"Comparison(3 configurations, 2 seeds, in {tmp_path})"
    summary = found.summary()
    energy = summary.filter(arm="random", quantity="energy_j").row(0, named=True)
    alone = [fs.simulate(small("policy.name=random"), seed).rounds["energy_mean_cum_j"][-1] for seed in (0, 1)]
    assert energy["mean"] == pytest.approx(np.mean(alone))
    assert found.run("random", 1).rounds.equals(fs.simulate(small("policy.name=random"), 1).rounds)
    assert found.table(["energy_j"])["arm"].to_list() == found.arms
    assert load(tmp_path).plan == found.results.plan  # the same files as the command line's


def test_labels_of_ones_own_and_fields_for_all(threads: ThreadPoolExecutor) -> None:
    arms = {"ours": "lyapunov", "theirs": small("policy.name=random")}
    found = fs.compare(arms, small(), seeds=[7], executor=threads, rounds=3)
    assert found.arms == ["ours", "theirs"]
    assert {arm.scenario.system.rounds for arm in found.results.plan.arms} == {3}
    assert found.results.plan.seeds == (7,)


def test_without_a_directory_the_files_go_with_the_comparison(threads: ThreadPoolExecutor) -> None:
    found = fs.compare(["random"], small(), seeds=1, executor=threads)
    directory = found.directory
    assert (directory / "plan.json").exists()
    del found
    assert not directory.exists()


def test_a_sweep_is_a_grid(threads: ThreadPoolExecutor) -> None:
    found = fs.sweep(small(), {"V": [0.01, 0.1], "system.devices": [5, 6]}, seeds=1, executor=threads)
    assert found.arms == [
        "lyapunov V=0.01 system.devices=5",
        "lyapunov V=0.01 system.devices=6",
        "lyapunov V=0.1 system.devices=5",
        "lyapunov V=0.1 system.devices=6",
    ]
    assert found.results.plan.arms[2].scenario == small("policy.V=0.1", "system.devices=5")
    with pytest.raises(RunError, match=r"no configurations differ in policy\.size alone; those that do: .*policy\.V"):
        found.plot(against="policy.size")
    axes = found.plot(against="policy.V").axes
    assert [axis.get_xlabel() for axis in axes] == ["policy.V"]
    assert [np.size(line.get_xdata()) for line in axes[0].lines[::3]] == [2, 2]  # two lines of two values each


@pytest.mark.slow
def test_pictures_and_the_page_of_a_notebook(tmp_path: Path, threads: ThreadPoolExecutor) -> None:
    found = fs.compare(["lyapunov", "random"], small("learning.engine=native"), seeds=2, executor=threads)
    axes = found.plot().axes
    assert [axis.get_ylabel() for axis in axes] == ["Test accuracy (%)", "Energy per device\n(mJ per round)"]
    with pytest.raises(RunError, match="did you mean 'accuracy'"):
        found.plot("accurcy")
    page = found._repr_html_()
    assert "accuracy, %" in page
    assert "data:image/png;base64," in page
    assert found.report(tmp_path).is_file()


def test_what_cannot_be_is_told(threads: ThreadPoolExecutor) -> None:
    with pytest.raises(ScenarioError, match="did you mean 'random'"):
        fs.compare(["randm"], small(), executor=threads)
    with pytest.raises(ScenarioError, match="at least one configuration and one seed"):
        fs.compare([], small())
    with pytest.raises(ScenarioError, match="give at least one field"):
        fs.sweep(small(), {})
    with pytest.raises(ScenarioError, match="did you mean 'V'"):
        fs.sweep(small(), {"v": [1.0]})
    with pytest.raises(ScenarioError, match=r"policy\.V: must be greater than 0"):
        fs.sweep(small(), {"V": [-1.0]})


def test_a_policy_of_ones_own_runs_in_threads(threads: ThreadPoolExecutor) -> None:
    found = fs.compare([Largest(size=1), "random"], small(), seeds=1, executor=threads)
    assert found.arms == ["Largest(size=1)", "random"]
    assert found.failures == []


def test_the_table_and_the_curves_hold_accuracy(threads: ThreadPoolExecutor) -> None:
    found = fs.compare(["lyapunov", "random"], "tiny", seeds=1, rounds=5, executor=threads)
    assert found.table().columns == ["arm", "late_accuracy", "accuracy_area", "energy_j"]
    picture = found.plot()
    assert picture._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]  # what a notebook asks for
