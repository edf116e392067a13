"""One contract per kind of plug-in: ours keep it, odd ones keep it, and every promise that is broken is seen.

What `tests/test_contracts.py` breaks in every method, each kind breaks only once here.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import odd_plugins as odd
import pytest

from feelstream import Evaluator
from feelstream.arrays import Nested
from feelstream.data.streaming.arrivals import ArrivalSchedule, Events
from feelstream.data.streaming.buffers import Fifo, Items, Keep, UseOnce, Window
from feelstream.data.streaming.order import Shards
from feelstream.data.streaming.partition import IID
from feelstream.data.streaming.processes import Poisson, Uniform
from feelstream.environment.availability import Always, NoFaults
from feelstream.environment.channel import IndependentChannel
from feelstream.environment.frequency import UniformFrequency
from feelstream.environment.harvest import NoHarvest, PacketHarvest
from feelstream.environment.mobility import Static
from feelstream.errors import ScenarioError
from feelstream.learning.contract import Training
from feelstream.learning.local import Cohort, Sgd
from feelstream.learning.server import FedAvg
from feelstream.learning.server.base import Median, Remembered, TrimmedMean
from feelstream.learning.server.fedopt import FedAdam
from feelstream.learning.server.wrappers import Gaussian, Limited, Quantise, Smoothed, TopK
from feelstream.model.energy import Cubic, EnergyLaw, Voltage
from feelstream.model.system import AsSettings, CostRule, RoundCosts
from feelstream.policies import POLICIES
from feelstream.policies.base import Decision, Observation, Policy, State
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


# Ours in other forms than by default: what they remember, leave out or draw differs.
FORMS = [
    *(Voltage(points="discrete", leakage_w=leakage_w) for leakage_w in (None, 0.0, 3.0)),
    *(Voltage(leakage_w=leakage_w) for leakage_w in (0.0, 0.05)),
    *(Sgd(keep="scaffold", lr=0.1), Sgd(keep="momentum", momentum=0.9), Sgd(epochs=2, sampling="epoch", prox=0.1)),
    Sgd(epochs=1, clip=0.5, schedule="cosine", weight_decay=0.01),
    Gaussian(clip=1.0, noise=0.5, inner=FedAdam()),
    *(TopK(inner=Quantise(inner=Median())), Quantise(bits_each=2), TrimmedMean(trim=0.0), Remembered(discount=1.0)),
    Smoothed(inner=Limited(inner=Remembered())),
]
LAWFUL = [*odd.BUFFERS, *odd.ARRIVALS, *odd.OTHERS, *FORMS]


@pytest.mark.parametrize("plugin", LAWFUL, ids=lambda each: type(each).__name__)
def test_odd_ones_and_other_forms_of_ours_keep_the_contract(plugin: Any) -> None:
    assert [result.problem for result in check(plugin) if not result.ok] == []


VARIANTS = [
    *((name, {}) for name in POLICIES.ours),
    ("lyapunov", {"cardinality": "cap"}),
    ("lyapunov", {"cardinality": "free", "metric": "amount"}),
    ("lyapunov", {"V": np.inf}),
    ("best_channel", {"gain": "last"}),
    ("proportional_fair", {"window": 1}),
    ("fedcs", {"share": 1.0}),
    ("myopic_energy", {"budget": "static"}),
    ("oort", {"exploration": 0.0, "exploration_min": 0.0}),
    pytest.param("ocean", {"V": 100.0, "eta": "descending"}, marks=pytest.mark.nightly),
    ("ocean", {"V": 100.0, "eta": "descending", "power": "fixed", "least_share": 0.01}),
    ("best_channel", {"gain": "oracle"}),
    ("proportional_fair", {"gain": "oracle"}),
    ("oort", {"alpha": 1e5}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "fields"), VARIANTS, ids=str)
def test_every_policy_keeps_the_contract(name: str, fields: dict[str, Any]) -> None:
    results = check(POLICIES.lookup(name)(**fields))  # type: ignore[arg-type]
    assert {result.name for result in results if result.tried} == OF_ALL.keys()
    assert [result.problem for result in results if not result.ok] == []


def derived(base: type, **members: Any) -> Any:
    """A class that differs from its base in some methods, or in what it says of itself."""
    return type(f"Odd{base.__name__}", (base,), {"__module__": __name__, **members})


def changed(base: type, method: str, change: Callable[..., Any], **members: Any) -> Any:
    """What one of its methods gives is changed; change: of what is right, the plug-in and what the method is given."""
    right = getattr(base, method)
    return derived(base, **{method: lambda self, *given: change(right(self, *given), self, *given), **members})()


def recalled(base: type, method: str, init: str) -> Any:
    """Knows its last state as an object, not by what is in it: what a checkpoint gives back is another."""
    known: list[Any] = []

    def start(found: Any, *given: Any) -> Any:
        known.append(np.zeros(1))
        return {"last": known[-1]}

    def step(found: Any, self: Any, *given: Any) -> Any:
        state = next(each for each in given if isinstance(each, dict) and "last" in each)
        same = any(state["last"] is each for each in known)
        return found[0] if same else (0.9 * found[0]).astype(found[0].dtype), start(found)

    return changed(base, method, step, **{init: lambda self, *given: start(None)})


class First(Policy):
    """Lawful: the first feasible devices."""

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        return Decision(np.flatnonzero(plan.feasible)[: self.size], plan)


def deciding(change: Callable[..., Any]) -> Policy:
    return changed(First, "select", change)


CALLS = iter(range(10**9))


def one_number(amount: np.ndarray, dissimilarity: np.ndarray) -> float:
    return float(amount.sum())


def noisy(amount: np.ndarray, dissimilarity: np.ndarray) -> np.ndarray:
    return amount + np.random.default_rng().random(len(amount))


def infinite(predict: Any, test: Any, held: Any, round: int) -> Any:
    return {"x": -np.inf}


def everyone(found: ArrivalSchedule, self: Any, context: Any) -> ArrivalSchedule:
    """200 samples a device and round, more than there are."""
    events = np.repeat(np.arange(context.devices, dtype=np.int32), 200)
    starts = np.arange(context.rounds + 1) * len(events)
    return ArrivalSchedule(found.shards, Events(np.tile(events, context.rounds), starts))


def strays(found: ArrivalSchedule, *_: Any) -> ArrivalSchedule:
    return ArrivalSchedule(Shards(found.shards.offsets, found.shards.samples + 10**6), found.events)


def crowded(found: tuple[Training, Nested], self: Any, learner: Any, theta: Any, cohort: Cohort, state: Any) -> Any:
    """Smaller steps where more devices train."""
    return replace(found[0], updates=found[0].updates / np.float32(len(cohort.ids))), found[1]


def refuses(*given: Any) -> Any:
    raise ScenarioError("no")


def in_turn(made: Decision, *_: Any) -> Decision:
    """Remembers what is not in its state."""
    able = np.flatnonzero(made.plan.feasible)
    return replace(made, schedule=np.sort(np.roll(able, next(CALLS))[: len(made.schedule)]))


BUFFERS = [
    (
        changed(Keep, "join", lambda found, *_: (Items(found[0].devices[1:], found[0].positions[1:]), found[1])),
        "traits",
    ),
    (changed(Keep, "join", lambda found, self, state, ids, *_: np.add.at(state["hi"], ids, 1) or found), "traits"),
    (changed(Keep, "draw", lambda found, self, state, k, *_: np.full(found.shape, state["hi"][k])), "traits"),
    (changed(Keep, "use", lambda found, *_: 1), "contract"),
    (derived(Keep, empties_on_use=True)(), "traits"),
    (derived(UseOnce, empties_on_use=False)(), "traits"),
    (derived(Fifo, admits_all=True)(capacity=3), "traits"),
    (derived(Fifo, keeps=True)(capacity=3), "traits"),
    (derived(Keep, most_held=property(lambda self: 4))(), "traits"),
    (derived(Window, holds_rounds=property(lambda self: 2))(rounds=3), "traits"),
]
DATA = [
    (changed(Poisson, "counts", lambda found, *_: (np.full_like(found[0], next(CALLS)), found[1])), "repeatable"),
    (changed(Uniform, "plan", everyone), "contract"),
    (changed(Uniform, "plan", strays), "contract"),
    (changed(Uniform, "plan", lambda found, self, context: context.labels.fill(1)), "runs"),
    (changed(Uniform, "times", lambda found, *_: found * np.random.random()), "global random"),  # noqa: NPY002
    (changed(IID, "split", lambda found, *_: np.random.default_rng().permutation(found)), "repeatable"),
    (derived(IID, split=refuses)(), "runs"),
]
PROCESSES = [
    (changed(UniformFrequency, "step", lambda found, *_: (2e12 + found[0], found[1])), "contract"),
    (changed(IndependentChannel, "step", lambda found, *_: (5 * found[0], found[1])), "mean"),
    (changed(Static, "step", lambda found, self, round, *_: (found[0] * 1.0001**round, found[1])), "traits"),
    (changed(Static, "step", lambda found, *_: (np.full_like(found[0], 1e9), found[1])), "contract"),
    (changed(Always, "step", lambda found, *_: (~found[0], found[1])), "traits"),
    (changed(NoFaults, "step", lambda found, *_: (~found[0], found[1])), "traits"),
    (changed(NoHarvest, "step", lambda found, *_: (found[0] - 1.0, found[1])), "traits"),
    (derived(PacketHarvest, charge_j=property(lambda self: 100 * self.capacity_j))(), "traits"),
    (recalled(IndependentChannel, "step", "init"), "checkpoint"),
]
MODEL = [
    (changed(Cubic, "energy_j", lambda found, *_: np.full(len(found), found.mean())), "own"),  # shared out evenly
    # Waiting costs too, so that the energy falls in f, and most_j is too little.
    (derived(EnergyLaw, energy_j=lambda self, cpus, cycles, f_hz: cycles / f_hz)(), "most"),
    (changed(Cubic, "pieces", lambda found, self, cpus, cycles: Cubic().pieces(cpus, cycles / 2)), "pieces"),
    # Says of the discrete law what is true of the interpolated one.
    (derived(Voltage, pieces=lambda self, *of: Voltage().pieces(*of))(points="discrete"), "pieces"),
    (changed(AsSettings, "costs", lambda found, self, seen, *_: RoundCosts(download_s=0.1 / seen.f_hz)), "traits"),
    (derived(CostRule, costs=lambda self, seen, rng: RoundCosts(update_bits=seen.f_hz), keeps_bits=True)(), "contract"),
    (one_number, "contract"),
    (noisy, "repeatable"),
]
LEARNING = [
    (changed(Sgd, "train", crowded), "alone"),
    (derived(Sgd, update=lambda self, *given: {"names": ["a"]})(), "alone"),
    (changed(FedAvg, "step", lambda found, *_: (found[0] + np.float32(next(CALLS)), found[1])), "repeatable"),
    (changed(FedAvg, "step", lambda found, *_: (found[0], {"least": np.array(-np.inf)})), "contract"),
    (derived(FedAvg, bits=lambda self, parameters: 0.0)(), "bits"),
    (recalled(FedAvg, "step", "init"), "checkpoint"),
    (derived(Evaluator, evaluate=lambda self, context, state: ({"calls": next(CALLS)}, state))(), "repeatable"),
    (infinite, "contract"),
]
POLICY = [
    (deciding(lambda made, self, state, seen, rng: replace(made, plan=seen.plan(1))), "contract"),
    (deciding(lambda made, self, state, seen, rng: replace(made, importance=np.nan * seen.beta)), "contract"),
    (deciding(lambda made, *_: random.random() and made), "global random"),
    (deciding(in_turn), "repeatable"),
    (changed(First, "update", lambda state, *_: {"best": np.array(np.inf)}), "contract"),
]
BROKEN = [*BUFFERS, *DATA, *PROCESSES, *MODEL, *LEARNING, *POLICY]


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


def no_score(made: Decision, self: Any, state: State, seen: Observation, rng: np.random.Generator) -> Decision:
    """A score may be NaN, which says that there is none."""
    return replace(made, score=np.nan * seen.beta)


@pytest.mark.parametrize("lawful", [First(), changed(First, "select", no_score)])
def test_the_lawful_ones_pass(lawful: Policy) -> None:
    assert all(result.ok for result in check(lawful))


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
