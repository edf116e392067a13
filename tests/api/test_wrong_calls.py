"""What people write before they have read the reference: each gets a sentence that says what to write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import feelstream as fs
from feelstream.errors import FeelstreamError


class NoPolicy:
    """A class that is derived from nothing."""


class NoSelect(fs.Policy):
    """A policy without its method."""


MANY: Any = {"seeds": 1, "rounds": 2, "engine": "none", "workers": 1}
WRONG: dict[str, tuple[Any, str]] = {
    "policies as a text": (lambda: fs.compare("lyapunov", "tiny"), "give the policies as a list"),
    "policies and scenario exchanged": (lambda: fs.compare("tiny", ["lyapunov"]), "give the policies as a list"),  # type: ignore[arg-type]
    "one policy twice": (lambda: fs.compare(["random", "random"], "tiny"), "configuration 'random' 2 times"),
    "a number as a policy": (lambda: fs.compare([3], "tiny"), "a policy must be a name, a Policy or a Scenario"),  # type: ignore[list-item]
    "a class that is no policy": (lambda: fs.compare([NoPolicy], "tiny"), "write class NoPolicy.feelstream.Policy."),  # type: ignore[list-item]
    "a policy without select": (lambda: fs.compare([NoSelect], "tiny"), "NoSelect lacks select"),
    "a function as policy": (
        lambda: fs.simulate("tiny", policy=dict.fromkeys),
        "policy: must be a name, a class or an object of a class",
    ),
    "a policy that is near": (lambda: fs.simulate("tiny", policy="randm"), "did you mean 'random'?"),
    "seed in place of seeds": (lambda: fs.compare(["random"], "tiny", seed=7), r"seeds=10 or seeds=\[7\]"),
    "no seeds": (lambda: fs.compare(["random"], "tiny", seeds=0), "seeds must be at least 1, not 0"),
    "seeds as a text": (lambda: fs.compare(["random"], "tiny", seeds="3"), "seeds must be a number or a list"),  # type: ignore[arg-type]
    "a seed twice": (lambda: fs.compare(["random"], "tiny", seeds=[1, 1]), "seed '1' 2 times"),
    "no workers": (lambda: fs.compare(["random"], "tiny", **MANY | {"workers": 0}), "workers must be 1 or more"),
    "a scenario of numbers": (lambda: fs.simulate(3), "the scenario must be a preset's name, a TOML file"),  # type: ignore[arg-type]
    "a preset that is near": (lambda: fs.simulate("tny"), "did you mean 'tiny'?"),
    "a field that is near": (lambda: fs.simulate("tiny", v=3), "did you mean 'V'?"),
    "a field of text": (lambda: fs.simulate("tiny", rounds="a"), "system.rounds: must be a whole number, not 'a'"),
    "an argument that is near": (
        lambda: fs.simulate("tiny", sed=1),
        "simulate: there is no argument 'sed'; did you mean 'seed'",
    ),
    "another that is near": (
        lambda: fs.compare(["random"], "tiny", seds=3),
        "no argument 'seds'; did you mean 'seeds'",
    ),
    "a field that is near, and an argument": (
        lambda: fs.compare(["age"], "tiny", roundz=3),
        "no field 'roundz'; did you",
    ),
    "a seed of text": (lambda: fs.simulate("tiny", seed="a"), "seed must be a whole number, not 'a'"),  # type: ignore[arg-type]
    "several seeds in one run": (lambda: fs.simulate("tiny", seed=[1, 2]), "several seeds are for compare"),  # type: ignore[arg-type]
    "one value to sweep": (lambda: fs.sweep("tiny", {"V": 3}), "each with at least one value"),  # type: ignore[dict-item]
    "nothing to sweep": (lambda: fs.sweep("tiny", {}), "give at least one field"),
    "two labels": (lambda: fs.compare([fs.preset("tiny"), fs.preset("tiny").with_(V=1.0)]), "give each a label"),
    "a label of two": (lambda: fs.compare({"a": "random,age"}, "tiny"), "'a' is the label of 2 policies"),
    "a label that is no text": (lambda: fs.compare({1: "random"}, "tiny"), "a label must be text"),  # type: ignore[dict-item]
    "policies as a set": (lambda: fs.compare({"random", "age"}, "tiny"), "give the policies as a list"),
    "policy in place of policies": (
        lambda: fs.compare(["age"], "tiny", policy="random"),
        "give the policies as a list",
    ),
    "an empty list of seeds": (lambda: fs.compare(["random"], "tiny", seeds=[]), "give at least one seed"),
    "workers as a text": (lambda: fs.compare(["age"], "tiny", workers="2"), "workers must be a whole number"),  # type: ignore[arg-type]
    "seeds of one run": (lambda: fs.simulate("tiny", seeds=3), "one run has one seed"),
    "policies of one run": (lambda: fs.simulate("tiny", policies=["age"]), "one run has one policy"),
    "a function as callback": (lambda: fs.simulate("tiny", callbacks=[print]), "must be a list of Callback objects"),  # type: ignore[list-item]
    "a dictionary as change": (lambda: fs.simulate("tiny", changes={"V": 1}), "must be a list of Change objects"),  # type: ignore[arg-type]
    "a change without a round": (lambda: fs.Change("V", 1, 2), "a change begins in a round"),  # type: ignore[arg-type]
    "brackets without a field": (
        lambda: fs.simulate("tiny", policy="lyapunov(0.1)"),
        "must read name or name.field=value",
    ),
    "single values to sweep": (lambda: fs.sweep("tiny", V=0.1), "as in sweep.'tiny', V=.0.01, 0.1"),
    "no value to sweep": (lambda: fs.sweep("tiny", V=[]), "each with at least one value"),
    "seeds to sweep": (lambda: fs.sweep("tiny", {"seed": [1, 2]}), "give seeds, as in seeds="),
    "nothing to read": (lambda: fs.read(None), "give the directory of a run"),  # type: ignore[arg-type]
    "nothing to load": (lambda: fs.load(None), "a preset's name or a TOML file"),  # type: ignore[arg-type]
    "no name of a preset": (lambda: fs.preset(None), "a preset is a name"),  # type: ignore[arg-type]
    "a name as TOML": (lambda: fs.to_toml("tiny"), "give a Scenario"),  # type: ignore[arg-type]
    "nothing to verify": (lambda: fs.verify(None), "give a run or its directory"),  # type: ignore[arg-type]
    "no weights to tune": (lambda: fs.tune("tiny", [0.0]), "weights must be a list of numbers above 0"),
    "V to tune": (lambda: fs.tune("tiny", V=[0.1, 1.0]), "give the values to try as weights"),
    "a policy without a weight": (lambda: fs.tune("tiny", policy="random"), "has no weight to tune"),
    "a negative budget": (lambda: fs.tune("tiny", budget_j=-1.0), "budget_j must be a number of joules above 0"),
    "more seeds than there is memory for": (lambda: fs.compare(["age"], "tiny", seeds=10**12), "at most 1,000,000 are"),
    "a range of as many": (lambda: fs.tune("tiny", seeds=range(10**12)), "at most 1,000,000 are possible"),
    "a seed that no table holds": (lambda: fs.compare(["age"], "tiny", seeds=[2**63]), "a seed must be at most"),
    "the same of one run": (
        lambda: fs.simulate("tiny", seed=2**63),
        "simulate: seed must be at most 9223372036854775807",
    ),
    "threads as a text": (lambda: fs.simulate("tiny", threads="2"), "threads must be a whole number, not '2'"),  # type: ignore[arg-type]
    "a number as directory": (lambda: fs.compare(["age"], "tiny", out=3), "compare: out must be a directory, as in"),  # type: ignore[arg-type]
    "a number as run directory": (lambda: fs.simulate("tiny", out=3), "simulate: out must be a directory, as in"),  # type: ignore[arg-type]
    "a run in place of runs": (lambda: fs.compare(runs="runs/a"), "give runs as a list"),
    "a number in place of runs": (lambda: fs.compare(runs=3), "give runs as a list"),  # type: ignore[arg-type]
    "a number as a field": (lambda: fs.sweep("tiny", {3: [1]}), "give at least one field"),  # type: ignore[dict-item]
    "a number as policies": (lambda: fs.sweep("tiny", V=[1.0], policies=3), "sweep: give the policies as a list"),  # type: ignore[arg-type]
    "a run that is not there": (lambda: fs.read("nowhere"), "nowhere is not a run directory"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_call(wrong: str) -> None:
    call, said = WRONG[wrong]
    with pytest.raises(FeelstreamError, match=said):
        call()


@pytest.fixture(scope="module")
def found() -> fs.Comparison:
    return fs.compare(["lyapunov", "random"], "tiny", **MANY)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"style": "seaborn"}, "style: matplotlib has no style 'seaborn'; known: "),
        ({"style": {"nope": 1}}, "style: matplotlib does not take {'nope': 1}: 'nope' is not a valid value"),
        ({"style": {"axes.labelsize": "huge"}}, "Key axes.labelsize: huge is not a valid font size"),
        ({"style": 3}, "style: matplotlib does not take 3"),
        *(({"figsize": size}, "figsize: must be a width and a height in inches") for size in (3, (-1, 1), ("a", "b"))),
        ({"ax": 3}, "ax: must be 2 Axes, one for each panel, not 3"),
        ({"against": "W"}, "no configurations differ in W alone"),
    ],
)
def test_a_wrong_plot(options: dict[str, Any], said: str, found: fs.Comparison) -> None:
    with pytest.raises(FeelstreamError, match=said):
        found.plot("energy_mean_cum_j", "queue_mean_j", **options)


NUMPY: Any = {"seeds": np.arange(2), "rounds": np.int64(2), "engine": "none", "workers": np.int64(1)}


def test_what_numpy_and_generators_give_is_taken() -> None:
    found = fs.compare((name for name in ("lyapunov", "random")), "tiny", **NUMPY)
    assert found.results.plan.seeds == (0, 1)
    assert found.run("random").seed == 0
    swept = fs.sweep("tiny", {"V": np.logspace(-3, 0, 3)}, policies="lyapunov", **NUMPY | {"seeds": np.int64(1)})
    assert swept.arms == ["lyapunov V=0.001", "lyapunov V=0.0316228", "lyapunov V=1.0"]
    assert pytest.approx(10**-1.5, rel=1e-15) == swept.results.plan.arms[1].scenario.policy.V  # type: ignore[attr-defined]
    near = fs.sweep("tiny", {"V": [1.0, 1.0 + 1e-9]}, **NUMPY | {"seeds": [3]})
    assert len(near.arms) == 2  # a label too short to tell them apart would lose one


def test_a_policy_with_fields_is_one_word_everywhere() -> None:
    run = fs.simulate("tiny", policy="lyapunov(V=0.2,size=3)", rounds=2, engine="none")
    assert run.scenario.policy == fs.preset("tiny").with_(V=0.2, size=3).policy


def test_names_that_completion_offers() -> None:
    scenario = fs.preset("tiny")
    assert {"with_", "system", "policy"} <= set(dir(scenario))
    assert not {"model_dump", "parse_obj", "schema_json"} & set(dir(scenario))
    assert repr(scenario).startswith("Scenario(Lyapunov(size=2, V=0.05")
    assert len(repr(scenario)) < 150
    assert str(scenario).startswith("[system]")
    with pytest.raises(AttributeError) as problem:
        fs.simulat  # type: ignore[attr-defined]  # noqa: B018
    assert problem.value.name == "simulat"
    assert problem.value.obj is fs


def test_a_run_is_verified_wherever_it_is(tmp_path: Any) -> None:
    run = fs.simulate("tiny", rounds=3, engine="none")
    assert repr(fs.verify(run)).startswith("Report(Run(lyapunov, seed 0, 3 rounds): all of ")
    run.save(tmp_path / "run")
    assert fs.verify(fs.read(tmp_path / "run")).ok


def test_an_interrupt_leaves_no_directory_behind(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("feelstream.api.comparing.execute", interrupted)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        fs.compare(["lyapunov"], "tiny", **MANY)
    assert not list(tmp_path.iterdir())


def test_a_table_names_what_is_missing(found: fs.Comparison) -> None:
    assert repr(found).startswith("Comparison(2 configurations, 1 seed, in ")
    assert "one seed: no interval; fewer than 5 seeds: no verdict" in str(found)
    with pytest.raises(FeelstreamError, match="there is no quantity 'energy'; did you mean 'energy_j'"):
        found.table(["energy"])
    with pytest.raises(FeelstreamError, match="there is no quantity '3'; allowed: "):
        found.table(3)  # type: ignore[arg-type]
    with pytest.raises(FeelstreamError, match="report: directory must be a directory, as in 'results/first', not 3"):
        found.report(3)  # type: ignore[arg-type]
