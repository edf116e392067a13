"""One contract per kind of plug-in: ours keep it, odd ones keep it, and every promise that is broken is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import odd_plugins as odd
import pytest
from broken_buffers import BROKEN_BUFFERS
from broken_costs import BROKEN_COSTS
from broken_data import BROKEN_DATA
from broken_evaluators import BROKEN_EVALUATORS
from broken_laws import BROKEN_LAWS
from broken_learning import BROKEN_LOCAL, BROKEN_SERVERS
from broken_processes import BROKEN_PROCESSES

from feelstream.data.streaming.partition import IID
from feelstream.environment.frequency import UniformFrequency
from feelstream.errors import ScenarioError
from feelstream.testing import KINDS, check
from feelstream.testing.kinds import kind_of, named
from feelstream.testing.laws import LAWS
from feelstream.testing.player import OF_ALL, check_kind


def trace_files(directory: Path) -> dict[str, dict[str, str]]:
    """For kinds of ours that need a file: its path, by group."""
    for name, header in (("arrivals", "time,device,label"), ("frequencies", "f_hz"), ("availabilities", "available")):
        rows = "1.5,0,2" if name == "arrivals" else "2,0,3e8" if name == "frequencies" else "2,0,0"
        header = header if name == "arrivals" else f"round,device,{header}"
        (directory / f"{name}.csv").write_text(f"{header}\n{rows}\n")
    return {group: {"path": str(directory / f"{group}.csv")} for group in ("arrivals", "frequencies", "availabilities")}


OURS = [(kind.name, name) for kind in KINDS.values() for name in kind.ours if kind.name != "policy"]


@pytest.mark.parametrize(("kind", "name"), OURS, ids=str)
def test_ours_keep_the_contract(kind: str, name: str, tmp_path: Path) -> None:
    if (kind, name) == ("channel", "tr38901"):
        pytest.importorskip("sionna.phy", reason="needs Sionna: install feelstream[sionna]")
    found = KINDS[kind].lookup(name)
    fields = trace_files(tmp_path).get(KINDS[kind].group, {}) if name == "trace" else {}
    results = check_kind(found(**fields) if isinstance(found, type) else found, KINDS[kind])
    assert [result.problem for result in results if not result.ok] == []


@pytest.mark.parametrize("plugin", [*odd.BUFFERS, *odd.ARRIVALS, *odd.OTHERS], ids=lambda each: type(each).__name__)
def test_odd_ones_keep_the_contract(plugin: Any) -> None:
    assert [result.problem for result in check(plugin) if not result.ok] == []


def infinite(amount: np.ndarray, dissimilarity: np.ndarray) -> np.ndarray:
    return amount / dissimilarity


def one_number(amount: np.ndarray, dissimilarity: np.ndarray) -> float:
    return float(amount.sum())


def noisy(amount: np.ndarray, dissimilarity: np.ndarray) -> np.ndarray:
    return amount + np.random.default_rng().random(len(amount))


def writes(amount: np.ndarray, dissimilarity: np.ndarray) -> np.ndarray:
    amount += 1
    return amount


BROKEN_METRICS = [(infinite, "runs"), (one_number, "contract"), (noisy, "repeatable"), (writes, "runs")]
BROKEN_LEARNING = [*BROKEN_EVALUATORS, *BROKEN_LOCAL, *BROKEN_SERVERS]
BROKEN_MODEL = [*BROKEN_LAWS, *BROKEN_COSTS]
BROKEN = [
    *BROKEN_BUFFERS,
    *BROKEN_DATA,
    *BROKEN_PROCESSES,
    *BROKEN_METRICS,
    *BROKEN_LAWS,
    *BROKEN_COSTS,
    *BROKEN_LEARNING,
]


@pytest.mark.parametrize(
    ("plugin", "promise"), BROKEN, ids=lambda each: each if isinstance(each, str) else getattr(each, "__name__", None)
)
def test_a_broken_promise_is_seen(plugin: Any, promise: str) -> None:
    problems = {result.name: result.problem for result in check(plugin) if not result.ok}
    assert promise in problems, problems
    assert promise not in OF_ALL or "case '" in (problems[promise] or "")


def test_every_law_of_every_kind_is_broken_by_an_example() -> None:
    examples = {(kind_of(p if callable(p) else type(p)).name, promise) for p, promise in BROKEN}
    for kind in KINDS.values():
        assert [law for law in LAWS.get(kind.name, ()) if (kind.name, law) not in examples] == [], kind.name


def test_a_case_that_is_refused_is_not_tried() -> None:
    class Picky(IID):
        def split(self, labels: Any, devices: int, classes: int, rng: np.random.Generator) -> Any:
            if devices == 1:
                raise ScenarioError("one device has nobody to share with")
            return super().split(labels, devices, classes, rng)

    results = {result.name: result for result in check(Picky())}
    assert all(result.ok for result in results.values())
    assert not results["one device"].tried
    assert "nobody to share with" in results["one device"].meaning


def test_kinds_are_found_by_class_and_by_name() -> None:
    assert kind_of(odd.Diary).name == "buffer"
    assert kind_of(noisy).name == "metric"
    assert named("oort")[1].name == "policy"
    assert named(f"{odd.FILE}:Lift")[1].name == "mobility"
    assert named("uniform", "frequency")[0] == UniformFrequency()
    with pytest.raises(
        ScenarioError, match="'uniform' is ambiguous: say which with --kind arrivals or --kind frequency"
    ):
        named("uniform")
    with pytest.raises(ScenarioError, match=r"'margin' is a probe, of \(predict, samples\); run the policy"):
        named(str(Path(__file__).parents[2] / "examples" / "my_probe.py:margin"))
    with pytest.raises(ScenarioError, match="'resevoir' is not known; did you mean 'reservoir'"):
        named("resevoir")
    with pytest.raises(
        ScenarioError, match="is not a plug-in: it must be a class derived from one of EnergyLaw, CostRule"
    ):
        named(f"{odd.FILE}:Items")
    with pytest.raises(ScenarioError, match="'trace' cannot be made: give each of its fields a default"):
        named("trace", "arrivals")
