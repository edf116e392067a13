"""What hurt those who tried it for the first time."""

from __future__ import annotations

import importlib
import logging
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import typer.main
from commands import QUICK, Command, check_one_sentence

import feelstream as fs
from feelstream import cli
from feelstream.errors import FeelstreamError, packages_of
from feelstream.experiment import comparison, load
from feelstream.learning.own_function import OwnFunction

FEW: dict[str, Any] = {"seeds": 2, "rounds": 3, "engine": "none", "workers": 1}
FAILS = (
    "import feelstream as fs\nclass Fails(fs.Policy):\n    def select(self, state, observation, rng):\n        1 / 0\n"
)


@pytest.mark.parametrize(
    "command", ["compare tiny --policy {} --seeds 1 --workers 1 --rounds 2", "tune tiny --weights {} --seeds 2"]
)
def test_another_comparison_does_not_overwrite_the_first(command: str, feelstream: Command) -> None:
    first, second = ("random", "age") if "compare" in command else ("0.1:0.1:1", "0.2:0.2:1")
    name = f"results/{command.partition(' ')[0]}-tiny"
    for asked in (first, second, first):
        feelstream(*command.format(asked).split(), *QUICK)
    assert load(name).plan.arms[0].label != load(f"{name}-2").plan.arms[0].label
    assert sorted(path.name for path in Path("results").iterdir()) == [Path(name).name, f"{Path(name).name}-2"]


def test_a_scenario_whose_numbers_follow_from_the_model_finds_its_results_again(feelstream: Command) -> None:
    for _ in "ab":
        feelstream("compare", "tiny", "--seeds", "1", "--workers", "1", "--rounds", "2", "--set", "cpu.cycles=auto")
    assert [path.name for path in Path("results").iterdir()] == ["compare-tiny"]


def test_an_extra_is_told_by_its_packages(feelstream: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nicegui", None)
    check_one_sentence(
        feelstream("studio"), "NiceGUI, which the studio needs, is not installed", "pip install 'nicegui"
    )
    monkeypatch.setitem(sys.modules, "flwr", None)
    monkeypatch.delitem(sys.modules, "feelstream.flower", raising=False)
    with pytest.raises(FeelstreamError, match=f"pip install {re.escape(packages_of('flower'))}$"):
        importlib.import_module("feelstream.flower")


def test_load_of_a_directory_says_how_to_read_it(tmp_path: Path) -> None:
    fs.simulate("tiny", rounds=2, engine="none", out=tmp_path / "first")
    with pytest.raises(FeelstreamError, match=r"fs\.read\('.*first'\) reads what is stored there"):
        fs.load(tmp_path / "first")


def test_runs_that_failed_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "fails.py").write_text(FAILS)
    with caplog.at_level(logging.WARNING):
        found = fs.compare(["random", f"{tmp_path}/fails.py:Fails"], "tiny", **FEW)
    assert len(found.failures) == 2
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("failed: ")
    assert "ZeroDivisionError" in said
    assert "fails.py:Fails: 0 of the 2 seeds" in " ".join(str(found).split())


def test_what_is_stored_is_read_as_what_it_is(tmp_path: Path) -> None:
    compared = fs.compare(["lyapunov", "random"], "tiny", out=tmp_path / "compared", **FEW)
    again = fs.read(tmp_path / "compared")
    assert isinstance(again, fs.Comparison)
    assert again.table().equals(compared.table())
    swept = fs.sweep("tiny", V=[0.01, 0.1], out=tmp_path / "swept", **FEW)
    assert fs.read(tmp_path / "swept").swept == swept.swept == ("policy.V",)
    assert isinstance(fs.read(compared.results.directories["random", 0]), fs.Run)


def test_runs_that_exist_are_compared(tmp_path: Path) -> None:
    ours = [fs.simulate("tiny", seed, rounds=3, engine="none", out=tmp_path / str(seed)) for seed in (0, 1)]
    other = fs.simulate("tiny", 1, rounds=3, engine="none", V=0.2)
    theirs = fs.simulate("tiny", 0, rounds=3, engine="none", policy="random")
    found = fs.compare(runs=[*ours, other, theirs])
    assert found.arms == ["lyapunov V=0.05", "lyapunov V=0.2", "random"]
    assert found.summary()["seeds"].to_list() == [2, 1, 1]
    asked = fs.compare(["lyapunov"], "tiny", **FEW)
    assert found.table(["energy_j"])["energy_j"][0] == asked.table(["energy_j"])["energy_j"][0]
    assert found.run("lyapunov V=0.2").rounds.equals(other.rounds)  # of seed 1, the first that it has
    assert "random: 1 of the 2 seeds" in " ".join(str(found).split())
    with pytest.raises(FeelstreamError, match="two runs of lyapunov, seed 0; give each once"):
        fs.compare(runs=[ours[0], tmp_path / "0"])
    with pytest.raises(FeelstreamError, match="give runs alone"):
        fs.compare(["random"], runs=[theirs])


def test_runs_that_all_failed_are_not_called_alike(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(FAILS)
    found = fs.compare(["random", *(f"{tmp_path}/fails.py:Fails(size={n})" for n in (1, 2))], "tiny", **FEW)
    assert "exactly the same" not in str(found)


def test_the_summary_has_a_row_per_configuration() -> None:
    found = fs.compare(["lyapunov", "random"], "tiny", **FEW)
    shown = found.summary(["energy_j", "fairness"])
    assert shown.columns == ["arm", "seeds", "energy_j", "fairness"]
    assert shown["arm"].to_list() == found.arms
    long = found.summary(long=True).filter(quantity="fairness")
    assert shown["fairness"].to_list() == long["mean"].to_list()


def test_a_setting_without_effect_and_a_budget_that_never_binds_are_told(feelstream: Command) -> None:
    found = fs.sweep("tiny", V=[1.0, 10.0], energy_budget_j=100.0, **FEW)
    assert "lyapunov V=1.0, lyapunov V=10.0 came to exactly the same" in " ".join(str(found).split())
    assert "came to exactly the same" not in str(fs.sweep("tiny", V=[0.001, 10.0], **FEW))
    for budget, told in (("100", True), ("0.01", False)):
        said = feelstream("run", "tiny", *QUICK, "--set", f"energy_budget_j={budget}")[2]
        assert ("the budget never binds" in said) == told


def test_a_policy_without_the_swept_field_is_a_level_line() -> None:
    found = fs.sweep("tiny", V=[0.01, 0.1], policies=["lyapunov", "random"], **{**FEW, "seeds": 5})
    (axes,) = found.plot("energy_j", against="V").axes
    lines = {str(line.get_label()): line for line in axes.lines}
    (level,) = set(lines["random"].get_ydata())  # type: ignore[arg-type]
    assert level == pytest.approx(1e3 * found.summary()["energy_j"][-1])
    assert lines["random"].get_color() != lines["lyapunov"].get_color()
    assert len(axes.collections) >= 2  # the bars of the one, the band of the other


def test_arms_that_differ_in_one_setting_show_what_differs() -> None:
    found = fs.compare(["balanced(size=3,memory=0.1)", "balanced(size=3,memory=0.2)", "random"], "tiny", **FEW)
    assert [line.split()[0] for line in str(found).splitlines()[1:4]] == [
        "balanced(memory=0.1)",
        "balanced(memory=0.2)",
        "random",
    ]
    assert "balanced(memory=0.2)" in [
        text.get_text() for text in found.plot("energy_mean_cum_j").legends[0].get_texts()
    ]
    assert found.arms[0] == "balanced(size=3,memory=0.1)"


PARTS = """
import feelstream as fs
from feelstream.environment.channel import Channel
from feelstream.model.energy import EnergyLaw
class Fades(Channel):
    def step(self, rng):
        return 1
class Law(EnergyLaw):
    def energy_j(self, cycles):
        return cycles
class Remembers(fs.Policy):
    def select(self, state, observation, rng):
        self.last = observation.round
"""


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("channel=mine.py:Fades", "must take step(round, state, context, rng), not step(rng), in round 1"),
        ("cpu.energy=mine.py:Law", "must take energy_j(cpus, cycles, f_hz), not energy_j(cycles)"),
        ("policy=mine.py:Remembers", "self.last cannot be set: fields are settings, and memory is the state"),
    ],
)
def test_a_broken_part_is_told_in_a_sentence(field: str, told: str, feelstream: Command) -> None:
    Path("mine.py").write_text(PARTS)
    check_one_sentence(feelstream("run", "tiny", *QUICK, "--set", field), told)


def test_tables_of_a_run_become_pandas_without_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=dict))  # type: ignore[arg-type]
    run = fs.simulate("tiny", rounds=2, engine="none")
    assert run.devices is not None
    assert run.to_pandas("devices")["queue_j"] == run.devices["queue_j"].to_list()
    with pytest.raises(FeelstreamError, match="no table 'device'; it has: rounds, devices"):
        run.to_pandas("device")


ALGORITHM = """
import numpy as np
from feelstream.learning.server import ServerUpdate

def device(module, sampler, round, state, generator, lr, alpha=0.1, rho=0.05):
    for inputs, labels in sampler:
        pass
    return {"lr": np.array(lr), "alpha": np.array(alpha), "rho": np.array(rho)}

class Server(ServerUpdate):
    alpha: float = 0.1
    def step(self, theta, updates, context, state, rng):
        return theta, {}

def spread(observation, plan):
    return (observation.stored_features > 0).sum(axis=1)

spread.needs = {"stored_features"}
"""


def test_an_algorithm_of_two_functions_has_settings_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    (tmp_path / "algorithm.py").write_text(ALGORITHM)
    monkeypatch.syspath_prepend(tmp_path)
    algorithm = importlib.import_module("algorithm")
    own = {"engine": "torch", "rounds": 2, "steps": 1}
    both = fs.preset("tiny").with_(local=algorithm.device, server=algorithm.Server, alpha=0.3, rho=1, **own)
    named = ["learning.local.kind=algorithm:device", "learning.server.kind=algorithm:Server", "alpha=0.3", "rho=1"]
    assert both == fs.preset("tiny", [*named, *(f"{field}={value}" for field, value in own.items())])
    assert both.learning.server.alpha == 0.3  # type: ignore[attr-defined]
    handed: list[dict[str, Any]] = []
    monkeypatch.setattr(
        OwnFunction, "update", lambda self, state, after, cohort, sent: handed.extend(after.values()) or state
    )
    run = fs.simulate(both, out=tmp_path / "run")
    assert {name: float(value) for name, value in handed[0].items()} == pytest.approx(
        {"lr": 0.02, "alpha": 0.3, "rho": 1}
    )
    assert fs.read(tmp_path / "run").scenario.as_dict() == run.scenario.as_dict()
    arms = comparison.arms(both, ["random"], (), ["alpha=1,2"])
    assert [(arm.scenario.learning.local.alpha, arm.scenario.learning.server.alpha) for arm in arms] == [(1, 1), (2, 2)]  # type: ignore[attr-defined]
    with pytest.raises(FeelstreamError, match=r"learning\.local\.rho: must be a number, not 'much'"):
        both.overridden(["rho=much"])
    with pytest.raises(FeelstreamError, match="local: must be a name, or a function or class at the top of a module"):
        both.with_(local=lambda module: None)


def test_a_metric_says_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "algorithm.py").write_text(ALGORITHM)
    scenario = fs.preset("tiny").with_(metric=f"{tmp_path}/algorithm.py:spread", rounds=3, engine="none")
    run = fs.simulate(scenario, out=tmp_path / "run")
    assert run.devices is not None
    known = run.devices.filter("feasible")
    kinds = known["stored_labels"].list.eval(pl.element() > 0).list.sum()
    assert known["importance"].to_list() == pytest.approx(kinds.to_list())
    assert fs.verify(run).ok


NOTED = """
import numpy as np
import feelstream as fs
class Noted(fs.Policy):
    def select(self, state, observation, rng):
        plan = observation.plan(self.size)
        columns = {"wish": observation.stored / 2.0} if observation.round > 1 else {}
        return fs.Decision(np.flatnonzero(plan.feasible)[: self.size], plan, columns=columns)
"""


def test_a_policy_adds_columns_to_the_trace(tmp_path: Path) -> None:
    (tmp_path / "noted.py").write_text(NOTED)
    run = fs.simulate("tiny", policy=f"{tmp_path}/noted.py:Noted", rounds=3, engine="none", out=tmp_path / "run")
    assert run.devices is not None
    wish = run.devices["wish"]
    assert wish[:10].is_null().all()
    assert wish[10:].to_list() == (run.devices["stored"][10:] / 2).to_list()
    assert fs.verify(run).ok
    for name, told in (("queue_j", "by words that no other column has"), ("wi sh", "by words that")):
        other = tmp_path / f"{name}.py"
        other.write_text(NOTED.replace('"wish"', repr(name)))
        with pytest.raises(FeelstreamError, match=f"must name its columns {told}"):
            fs.simulate("tiny", policy=f"{other}:Noted", rounds=3, engine="none")
    (tmp_path / "short.py").write_text(NOTED.replace("stored / 2.0", "stored[:3]"))
    with pytest.raises(FeelstreamError, match="must give the column 'wish' as"):
        fs.simulate("tiny", policy=f"{tmp_path}/short.py:Noted", rounds=3, engine="none")


def test_flags_are_shown_without_a_value(feelstream: Command) -> None:
    context = typer.Context(root := typer.main.get_command(cli.app))
    for name in root.list_commands(context):  # type: ignore[attr-defined]
        for parameter in root.get_command(context, name).params:  # type: ignore[attr-defined]
            if getattr(parameter, "is_flag", False):
                assert " " not in parameter.get_help_record(context)[0]
