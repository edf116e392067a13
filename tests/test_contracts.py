"""Every contract, by one table: who writes to what it is handed, raises, or returns what it must not, is named.

The run ends with a sentence that names the plug-in, and the next run is unharmed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import cached_property, wraps
from typing import Any

import numpy as np
import pytest

import feelstream as fs
from feelstream.data.streaming import arrivals
from feelstream.data.streaming.buffers import Buffer, Fifo, UseOnce
from feelstream.data.streaming.partition import IID
from feelstream.data.streaming.processes import Bursts, TruncatedNormal
from feelstream.environment.availability import Breakdowns, ComesAndGoes
from feelstream.environment.channel import AutoregressiveChannel
from feelstream.environment.frequency import FrequencyLevels
from feelstream.environment.harvest import SolarHarvest
from feelstream.environment.mobility import RandomDirection
from feelstream.errors import PluginError
from feelstream.evaluation.contract import Predict
from feelstream.evaluation.evaluators import Classes, Stream
from feelstream.guard import Array, One, Pair
from feelstream.learning.local import Sgd
from feelstream.learning.probes import GradientNorm
from feelstream.learning.server.fedopt import FedAdam
from feelstream.learning.server.wrappers import Smoothed
from feelstream.model.energy import Cubic
from feelstream.model.importance import METRICS, Weighing
from feelstream.model.system import AsSettings
from feelstream.plugins import Plugin
from feelstream.policies import POLICIES
from feelstream.policies.base import Policy

Balanced, Joint, Asking = (POLICIES.ours[name] for name in ("balanced", "lyapunov_joint", "update_norm"))
BATTERY = "world.harvest.kind=solar"
# Every method that a plug-in may have: whose, and a setting with which it is asked.
METHODS: list[tuple[Any, str, str]] = [
    (METRICS.ours, "combined", "policy.name=lyapunov"),
    (Balanced, "init", "policy.name=balanced"),
    (Balanced, "select", "policy.name=balanced"),
    (Balanced, "update", "policy.name=balanced"),
    (Policy, "start", "policy.name=random"),
    (Policy, "transmit", "policy.name=random"),
    (Joint, "transmit", "policy.name=lyapunov_joint"),
    (Policy, "most_power_w", BATTERY),
    (Asking, "asks", "policy.name=update_norm"),
    (GradientNorm, "measure", "policy.name=gradient_norm"),
    (Sgd, "train", "learning.local.momentum=0.5"),
    (Sgd, "update", "learning.local.keep=scaffold"),
    (FedAdam, "step", "learning.server.kind=fedadam"),
    (Smoothed, "handed_out", "learning.server.kind=smoothed"),
    (Stream, "evaluate", 'learning.evaluators=["test", "stream"]'),
    (Classes, "evaluate", 'learning.evaluators=["test", "classes"]'),
    (Cubic, "energy_j", "policy.name=random"),
    (Cubic, "most_j", BATTERY),
    (Cubic, "pieces", "policy.name=lyapunov_joint"),
    (AsSettings, "costs", "costs.cycles_per_sample=1e6"),
    (IID, "split", "data.partition.kind=iid"),
    (TruncatedNormal, "times", "data.arrivals.kind=truncated_normal"),
    (Bursts, "counts", "data.arrivals.kind=bursts"),
    (Fifo, "join", "data.buffer.kind=fifo"),
    (UseOnce, "use", "data.buffer.kind=use_once"),
    (FrequencyLevels, "step", "world.frequency.kind=levels"),
    (RandomDirection, "step", "world.mobility.kind=random_direction"),
    (AutoregressiveChannel, "step", "world.channel.kind=ar1"),
    (ComesAndGoes, "step", "world.availability.kind=markov"),
    (SolarHarvest, "step", BATTERY),
    (Breakdowns, "step", "world.faults.kind=markov"),
]
CASES = [pytest.param(*case, id=f"{getattr(case[0], '__name__', 'metric')}.{case[1]}") for case in METHODS]
Look = Callable[[tuple[Any, ...]], None]


def small(*settings: str) -> fs.Scenario:
    return fs.preset("tiny", ["system.rounds=4", "learning.local.steps=5", *settings])


def play(scenario: fs.Scenario) -> list[float]:
    arrivals._last = None  # so that the arrivals are planned again
    return fs.simulate(scenario, seed=0).rounds["accuracy"].to_list()


def put_in_place(patch: pytest.MonkeyPatch, owner: Any, method: str, make: Callable[[Any], Any]) -> None:
    """make: from the method to what stands in its place."""
    if isinstance(owner, dict):
        patch.setitem(owner, method, make(owner[method]))
    else:
        patch.setattr(owner, method, make(getattr(owner, method)))


def looking_first(look: Look) -> Callable[[Any], Any]:
    """The same method, which looks at what it is handed before it does its work."""

    def make(original: Any) -> Any:
        @wraps(original)
        def looking(*arguments: Any) -> Any:
            look(arguments)
            return original(*arguments)

        return looking

    return make


def arrays_in(given: Any, path: str, depth: int = 4) -> Iterator[tuple[str, np.ndarray]]:
    """All arrays that can be reached from what is handed in, with the way there."""
    if isinstance(given, np.ndarray):
        yield path, given
    elif isinstance(given, dict):
        for name in list(given):
            yield from arrays_in(given[name], f"{path}[{name}]", depth)
    elif isinstance(given, Predict):
        yield f"{path}.theta", given.theta
        yield from arrays_in(given("test"), f"{path}(test)", depth - 1)
        yield from arrays_in(given("train", np.arange(5)), f"{path}(train)", depth - 1)
    elif depth and type(given).__module__.startswith("feelstream.") and not isinstance(given, Plugin):
        named = [
            name for name in dir(type(given)) if isinstance(getattr(type(given), name), cached_property | property)
        ]
        for name in sorted({*getattr(given, "__dataclass_fields__", ()), *named}):
            # The engine itself is nobody's array, and Pydantic warns of some of its own properties.
            if name not in ("engine", "learner") and not name.startswith("__"):
                yield from arrays_in(getattr(given, name), f"{path}.{name}", depth - 1)


def stays(arguments: tuple[Any, ...], path: str, array: np.ndarray) -> bool:
    """Whether who looks again meets the same memory: what is made anew for everyone may be written to."""
    again = [other for place, given in enumerate(arguments) for at, other in arrays_in(given, str(place)) if at == path]
    return any(np.shares_memory(array, other) for other in again)


@pytest.mark.parametrize(("owner", "method", "setting"), CASES)
def test_what_stays_is_read_only(owner: Any, method: str, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, open_to_all = set(), set()

    def look(arguments: tuple[Any, ...]) -> None:
        for place, given in enumerate(arguments):
            for path, array in arrays_in(given, str(place)):
                seen.add(path)
                if isinstance(arguments[0], Buffer) and place == 1:
                    continue  # its state, which it changes in place
                if array.flags.writeable and array.size and stays(arguments, path, array):
                    open_to_all.add(path)

    scenario = small(setting)
    put_in_place(monkeypatch, owner, method, looking_first(look))
    play(scenario)
    assert seen, "it was handed no array, or not asked at all"
    assert not open_to_all


@pytest.mark.parametrize(("owner", "method", "setting"), CASES)
def test_who_writes_is_named(owner: Any, method: str, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = small(setting)
    before = play(scenario)

    def write(arguments: tuple[Any, ...]) -> None:
        for place, given in enumerate(arguments):
            for _, array in arrays_in(given, str(place)):
                if array.size and not array.flags.writeable:
                    array[...] = 0

    with monkeypatch.context() as patched:
        put_in_place(patched, owner, method, looking_first(write))
        with pytest.raises(fs.FeelstreamError, match=r"'[^']+' failed.*read-only, so change a copy"):
            play(scenario)
    assert play(scenario) == before


def arrays_of(what: Any, found: Any) -> Iterator[tuple[Array, np.ndarray, Callable[[Any], Any]]]:
    """The arrays of a result that a contract speaks of, and how to put another in the place of one."""
    if isinstance(what, Array) and isinstance(found, np.ndarray):
        yield what, found, lambda other: other
    elif isinstance(what, Pair):
        for place in (0, 1):
            for array, values, put in arrays_of(what.both[place], found[place]):
                yield array, values, lambda o, p=place, put=put: (put(o), found[1]) if p == 0 else (found[0], put(o))
    elif isinstance(what, One) and found is not None:
        for name, inner in what.fields.items():
            for array, values, put in arrays_of(inner, getattr(found, name)):
                yield array, values, lambda o, n=name, put=put: replaced(found, n, put(o))


def replaced(found: Any, name: str, value: Any) -> Any:
    return found._replace(**{name: value}) if isinstance(found, tuple) else dataclasses.replace(found, **{name: value})  # type: ignore[attr-defined]


def wrong_ones(array: Array, values: np.ndarray) -> Iterator[tuple[str, Any]]:
    """What must not stand in place of these values."""
    yield "a list", values.tolist()
    if array.shape != (...,):
        yield "too many axes", np.stack([values] * 2, axis=values.ndim) if ... not in array.shape else np.array(1.0)
    if array.finite and values.size and "f" in array.kind and not array.nan:
        yield "NaN", np.full_like(values, np.nan, dtype=array.dtype or float)
    if array.least >= 0 and values.size:
        yield "a negative number", np.full_like(values, -1)
    if array.most < np.inf and values.size:
        yield "too large a number", np.full_like(values, 2 * array.most)


def returning(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same method, whose result is changed."""

    def make(original: Any) -> Any:
        def changed(*arguments: Any) -> Any:
            return change(original(*arguments))

        return changed

    return make


@pytest.mark.parametrize(("owner", "method", "setting"), CASES)
def test_who_returns_what_it_must_not_is_named(
    owner: Any, method: str, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = getattr(owner, "contract", {"combined": Weighing.contract["__call__"]})
    if method not in contract:
        pytest.skip("it is called by our own method, which the contract speaks of")
    what, scenario, seen = contract[method].what, small(setting), []
    before = play(scenario)

    def refused(make: Callable[[Any], Any]) -> None:
        with monkeypatch.context() as patched:
            put_in_place(patched, owner, method, make)
            with pytest.raises(PluginError, match=r"'[^']+' (failed|must|says|returned|gives|plans|planned)"):
                play(scenario)

    def wrong_in(place: int, name: str) -> Callable[[Any], Any]:
        def change(found: Any) -> Any:
            parts = list(arrays_of(what, found))
            if place >= len(parts):
                return found
            array, values, put = parts[place]
            return put(dict(wrong_ones(array, values)).get(name, values))

        return returning(change)

    refused(returning(lambda found: 1 / 0))
    refused(returning(lambda found: object()))
    with monkeypatch.context() as patched:
        put_in_place(patched, owner, method, returning(lambda found: (seen.append(found), found)[1]))
        play(scenario)
    parts = max((list(arrays_of(what, found)) for found in seen), key=lambda parts: sum(v.size for _, v, _ in parts))
    for place, (array, values, _) in enumerate(parts):
        for name, _ in wrong_ones(array, values):
            if not (name == "a list" and isinstance(owner, dict)):  # a metric may give one
                refused(wrong_in(place, name))
    assert play(scenario) == before
