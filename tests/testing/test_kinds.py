"""One contract per kind of plug-in: ours keep it, odd ones keep it, and every promise that is broken is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import odd_plugins as odd
import pytest
from broken_evaluators import BROKEN_EVALUATORS
from broken_laws import BROKEN_LAWS
from broken_learning import BROKEN_LOCAL, BROKEN_SERVERS

from feelstream.arrays import Ints, Nested
from feelstream.data.streaming.arrivals import ArrivalSchedule, Events, Poisson, Uniform
from feelstream.data.streaming.buffers import Buffer, Fifo, IntervalStore, Items, Keep, Store, UseOnceStore, WindowStore
from feelstream.data.streaming.order import Shards
from feelstream.data.streaming.partition import IID
from feelstream.environment.availability import Always
from feelstream.environment.channel import IndependentChannel
from feelstream.environment.faults import NoFaults
from feelstream.environment.frequency import UniformFrequency
from feelstream.environment.harvest import NoHarvest, PacketHarvest
from feelstream.environment.mobility import Static
from feelstream.errors import ScenarioError
from feelstream.testing import KINDS, check
from feelstream.testing.contract import check_kind
from feelstream.testing.kinds import kind_of, named


def trace_files(directory: Path) -> dict[str, dict[str, str]]:
    """For kinds of ours that need a file: its path, by group."""
    for name, header in (("arrivals", "time,device,label"), ("frequencies", "f_hz"), ("availabilities", "available")):
        rows = "1.5,0,2" if name == "arrivals" else "2,0,3e8" if name == "frequencies" else "2,0,0"
        header = header if name == "arrivals" else f"round,device,{header}"
        (directory / f"{name}.csv").write_text(f"{header}\n{rows}\n")
    return {group: {"path": str(directory / f"{group}.csv")} for group in ("arrivals", "frequencies", "availabilities")}


OURS = [(kind.name, name) for kind in KINDS.values() for name in kind.registry.ours if kind.name != "policy"]


@pytest.mark.parametrize(("kind", "name"), OURS, ids=str)
def test_ours_keep_the_contract(kind: str, name: str, tmp_path: Path) -> None:
    registry = KINDS[kind].registry
    found = registry.lookup(name)
    fields = trace_files(tmp_path).get(registry.group, {}) if name == "trace" else {}
    results = check_kind(found(**fields) if isinstance(found, type) else found, KINDS[kind])
    assert [result.problem for result in results if not result.ok] == []


@pytest.mark.parametrize("plugin", [*odd.BUFFERS, *odd.ARRIVALS, *odd.OTHERS], ids=lambda each: type(each).__name__)
def test_odd_ones_keep_the_contract(plugin: Any) -> None:
    assert [result.problem for result in check(plugin) if not result.ok] == []


# Buffers that break one promise each.


class Made(Keep):
    """keep, with a store of its own that is made wrong in one way."""

    made: ClassVar[type[Store]] = IntervalStore

    def store(self, devices: int, longest: int | None) -> Store:
        return self.made(devices)  # type: ignore[call-arg]


class Uncounted(IntervalStore):
    def join(self, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        came, left = super().join(devices, counts, rng)
        return Items(came.devices[1:], came.positions[1:]), left


class Blind(IntervalStore):
    def join(self, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        found = super().join(devices, counts, rng)
        self.hi[devices] += 1
        return found


class Elsewhere(IntervalStore):
    def draw(self, device: int, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
        return np.full(shape, self.hi[device])


class SaysOtherwise(IntervalStore):
    def use(self, devices: Ints) -> bool:
        return True


class EmptiesUnasked(UseOnceStore):
    """What it returns is right; that its settings promise to keep everything is not."""


class Forgetful(IntervalStore):
    def snapshot(self) -> Nested:
        return {"hi": self.hi.copy()}

    def restore(self, saved: Nested) -> None:
        self.hi[:] = saved["hi"]
        self.lo[:] = saved["hi"]


class Views(IntervalStore):
    def snapshot(self) -> Nested:
        return {"hi": self.hi, "lo": self.lo}


class Objects(IntervalStore):
    def snapshot(self) -> Nested:
        return super().snapshot() | {"names": ["a", "b"]}


class Shared(odd.ListStore):
    """All stores of the class share one list: hidden memory."""

    everyone: ClassVar[list[int]] = []

    def wanted(self, position: Ints) -> np.ndarray:
        self.everyone.append(1)
        return np.full(len(position), len(self.everyone) % 2 == 0)


class Raises(IntervalStore):
    def held(self, device: int) -> Ints:
        raise OSError("no such disk")


def buffer(of: type[Store], **flags: bool) -> Buffer:
    return type(of.__name__, (Made,), {"made": of, **flags, "__module__": __name__, "__annotations__": _class(flags)})()


def _class(flags: dict[str, bool]) -> dict[str, Any]:
    return {"made": ClassVar[type], **dict.fromkeys(flags, ClassVar[bool])}


class Boast(Fifo):
    """fifo that claims what only keep can."""

    admits_all: ClassVar[bool] = True
    capacity: int = 3


class Few(Keep):
    @property
    def most_held(self) -> int | None:
        return 4


class Short(Keep):
    keeps: ClassVar[bool] = False

    @property
    def holds_rounds(self) -> int | None:
        return 2

    def store(self, devices: int, longest: int | None) -> Store:
        return WindowStore(devices, 3)


NOTHING = {"admits_all": False, "keeps": False}
BROKEN_BUFFERS = [
    (buffer(Uncounted), "contents"),
    (buffer(Blind, **NOTHING), "arrivals"),
    (buffer(Elsewhere), "draws"),
    (buffer(SaysOtherwise), "use"),
    (buffer(EmptiesUnasked), "use"),
    (buffer(Forgetful), "checkpoint"),
    (buffer(Views), "state"),
    (buffer(Objects), "state"),
    (buffer(Shared, **NOTHING), "repeatable"),
    (buffer(Raises), "runs"),
    (Boast(), "flags"),
    (Few(), "flags"),
    (Short(), "flags"),
]


# Arrivals and partitions.


class Negative(Poisson):
    def counts(self, round: int, state: Any, devices: int, rng: np.random.Generator) -> Any:
        return np.full(devices, -1), state


class Listed(Poisson):
    def init(self, devices: int, rng: np.random.Generator) -> Any:
        return np.array([None] * devices)


class ByHeart(Poisson):
    """Knows its last state as an object: what a checkpoint gives back is another."""

    known: ClassVar[list[Any]] = []

    def counts(self, round: int, state: Any, devices: int, rng: np.random.Generator) -> Any:
        same = round == 1 or any(state is each for each in self.known)
        after = state.copy()
        self.known.append(after)
        return np.full(devices, int(same)), after


class Counting(Poisson):
    """Its number of calls decides, not its state."""

    calls: ClassVar[list[int]] = []

    def counts(self, round: int, state: Any, devices: int, rng: np.random.Generator) -> Any:
        self.calls.append(round)
        return np.full(devices, len(self.calls)), state


class WritesLabels(Uniform):
    def plan(self, context: Any) -> Any:
        context.labels[0] = 1
        return super().plan(context)


class Stray(Uniform):
    def plan(self, context: Any) -> Any:
        found = super().plan(context)
        return ArrivalSchedule(Shards(found.shards.offsets, found.shards.samples + 10**6), found.events)


class TooMany(Uniform):
    def plan(self, context: Any) -> Any:
        found = super().plan(context)
        everyone = np.repeat(np.arange(context.devices, dtype=np.int32), 200)
        starts = np.arange(context.rounds + 1) * len(everyone)
        return ArrivalSchedule(found.shards, Events(np.tile(everyone, context.rounds), starts))


class Global(Uniform):
    def times(self, sizes: Any, run_s: float, rng: np.random.Generator) -> Any:
        return np.random.random(int(sizes.sum())) * run_s  # noqa: NPY002


class Nobody(IID):
    def split(self, labels: Any, devices: int, classes: int, rng: np.random.Generator) -> Any:
        return np.full(len(labels), devices, np.int32)


class Unseeded(IID):
    def split(self, labels: Any, devices: int, classes: int, rng: np.random.Generator) -> Any:
        return super().split(labels, devices, classes, np.random.default_rng())


class Refuses(IID):
    def split(self, labels: Any, devices: int, classes: int, rng: np.random.Generator) -> Any:
        raise ScenarioError("no")


BROKEN_DATA = [
    (Negative(), "counts"),
    (Listed(), "state"),
    (ByHeart(), "checkpoint"),
    (Counting(), "repeatable"),
    (WritesLabels(), "runs"),
    (Stray(), "shards"),
    (TooMany(), "counts"),
    (Global(), "global random"),
    (Nobody(), "owners"),
    (Unseeded(), "repeatable"),
    (Refuses(), "runs"),
]


# Processes of the world.


class Overclocked(UniformFrequency):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return context.frequency_high_hz * 2, state


class Short1(UniformFrequency):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return context.frequency_high_hz[:-1], state


class Loud(IndependentChannel):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return 5 * rng.standard_exponential(context.devices), state


class Minus(IndependentChannel):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return rng.standard_normal(context.devices), state


class WritesState(IndependentChannel):
    def init(self, context: Any, rng: np.random.Generator) -> Nested:
        return {"sum": np.zeros(context.devices)}

    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        state["sum"] += 1
        return rng.standard_exponential(context.devices), state


class Drifts(Static):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return state["beta"] * 1.0001**round, state


class Outside(Static):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return np.full(context.devices, 1e9), state


class Away(Always):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return np.zeros(context.devices, bool), state


class Numbers(Always):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return np.ones(context.devices), state


class Fails(NoFaults):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return np.ones(context.devices, bool), state


class Takes(NoHarvest):
    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        return np.full(context.devices, -1.0), state


class Overfull(PacketHarvest):
    @property
    def charge_j(self) -> float:
        return 100 * self.capacity_j


class Objects2(IndependentChannel):
    def init(self, context: Any, rng: np.random.Generator) -> Nested:
        return {"names": ["a"]}


class Known(IndependentChannel):
    """As ByHeart."""

    known: ClassVar[list[Any]] = []

    def init(self, context: Any, rng: np.random.Generator) -> Nested:
        return {"last": np.zeros(1)}

    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        same = round == 1 or any(state["last"] is each for each in self.known)
        after = state["last"].copy()
        self.known.append(after)
        return np.full(context.devices, 1.0 if same else 0.9), {"last": after}


class Stateless(IndependentChannel):
    """Remembers in an attribute of its class what belongs into its state."""

    last: ClassVar[list[float]] = [1.0]

    def step(self, round: int, state: Nested, context: Any, rng: np.random.Generator) -> Any:
        self.last.append(self.last[-1] * 0.999)
        return np.full(context.devices, self.last[-1]), state


BROKEN_PROCESSES = [
    (Overclocked(), "range"),
    (Short1(), "values"),
    (Loud(), "mean"),
    (Minus(), "sign"),
    (WritesState(), "runs"),
    (Drifts(), "gains"),
    (Outside(), "gains"),
    (Away(), "flags"),
    (Numbers(), "values"),
    (Fails(), "flags"),
    (Takes(), "sign"),
    (Overfull(), "flags"),
    (Stateless(), "repeatable"),
    (Objects2(), "state"),
    (Known(), "checkpoint"),
]


def infinite(amount: np.ndarray, dissimilarity: np.ndarray) -> np.ndarray:
    return amount / dissimilarity


def one_number(amount: np.ndarray, dissimilarity: np.ndarray) -> float:
    return float(amount.sum())


def noisy(amount: np.ndarray, dissimilarity: np.ndarray) -> np.ndarray:
    return amount + np.random.default_rng().random(len(amount))


def writes(amount: np.ndarray, dissimilarity: np.ndarray) -> np.ndarray:
    amount += 1
    return amount


BROKEN_METRICS = [(infinite, "runs"), (one_number, "figures"), (noisy, "repeatable"), (writes, "runs")]
BROKEN_LEARNING = [*BROKEN_EVALUATORS, *BROKEN_LOCAL, *BROKEN_SERVERS]
BROKEN = [*BROKEN_BUFFERS, *BROKEN_DATA, *BROKEN_PROCESSES, *BROKEN_METRICS, *BROKEN_LAWS, *BROKEN_LEARNING]


@pytest.mark.parametrize(
    ("plugin", "promise"), BROKEN, ids=lambda each: each if isinstance(each, str) else getattr(each, "__name__", None)
)
def test_a_broken_promise_is_seen(plugin: Any, promise: str) -> None:
    problems = {result.name: result.problem for result in check(plugin) if not result.ok}
    assert promise in problems, problems
    assert "case '" in (problems[promise] or "")


def test_every_promise_of_every_kind_is_broken_by_an_example() -> None:
    """The list above leaves out no promise, but for those of policies, which test_policies.py breaks."""
    examples = {(kind_of(p if callable(p) else type(p)).name, promise) for p, promise in BROKEN}
    broken = {
        promise.broken for kind in KINDS.values() for promise in kind.promises if (kind.name, promise.name) in examples
    }
    for kind in KINDS.values():
        if kind.name != "policy":
            assert [promise.name for promise in kind.promises if promise.broken not in broken] == [], kind.name


def test_kinds_are_found_by_class_and_by_name() -> None:
    assert kind_of(odd.Diary).name == "buffer"
    assert kind_of(noisy).name == "metric"
    assert named("oort")[1].name == "policy"
    assert named(f"{odd.FILE}:Lift")[1].name == "mobility"
    assert named("uniform", "frequency")[0] == UniformFrequency()
    with pytest.raises(ScenarioError, match="'uniform' is several: say which by --kind arrivals or --kind frequency"):
        named("uniform")
    with pytest.raises(ScenarioError, match=r"'margin' is a probe, of \(predict, samples\); run the policy"):
        named(str(Path(__file__).parents[2] / "examples" / "my_probe.py:margin"))
    with pytest.raises(ScenarioError, match="'resevoir' is not known; did you mean 'reservoir'"):
        named("resevoir")
    with pytest.raises(ScenarioError, match="is no plug-in: it must be a class derived from one of Policy, Partition"):
        named(f"{odd.FILE}:ListStore")
    with pytest.raises(ScenarioError, match="'trace' cannot be made: give each of its fields a default"):
        named("trace", "arrivals")
