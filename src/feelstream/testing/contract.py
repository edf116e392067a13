"""How the contract of any kind of plug-in is tested: kind → cases that are awkward in one way each → promises.

A kind plays a plug-in through a case and shows what happened step by step; its promises look at each step and say what
is wrong with it. Another kind needs a `Kind` of its own in `kinds.KINDS`: cases, how one is played, a list of promises.
Whatever a plug-in is handed is read-only, so that one that writes where it must not is caught in the act.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Nested, flatten, unflatten
from feelstream.errors import FeelstreamError, sentence
from feelstream.plugins import Plugin, PluginRegistry, Registry

Step = TypeVar("Step")
SETTINGS, RUNS, RANDOM = "settings", "runs", "global random"
OF_ALL = {
    SETTINGS: "its settings survive being stored and read",
    RUNS: "it gets through every case without an error, and writes to nothing that it is handed",
    RANDOM: "it leaves the global random numbers alone",
}


@dataclass(frozen=True)
class Promise(Generic[Step]):
    """What a plug-in of a kind does in every step; `broken` says what is wrong with one, or None."""

    name: str
    meaning: str
    broken: Callable[[Step], str | None]


@dataclass(frozen=True)
class Kind(Generic[Step]):
    """A kind of plug-in and how it is tried: `play` yields, for a plug-in and a case, (when, what happened) in turn."""

    name: str
    registry: Registry[Any]
    cases: Mapping[str, Any]
    play: Callable[[Any, Any], Iterator[tuple[str, Step]]]
    promises: tuple[Promise[Step], ...]
    may_refuse: bool = False  # any case but the first, with a sentence (FeelstreamError)

    @property
    def meanings(self) -> dict[str, str]:
        """All promises by name, those of every kind first; a function has no settings."""
        of_all = OF_ALL if isinstance(self.registry, PluginRegistry) else {RUNS: OF_ALL[RUNS], RANDOM: OF_ALL[RANDOM]}
        return {**of_all, **{promise.name: promise.meaning for promise in self.promises}}


class BrokenError(Exception):
    """A promise was broken in a way that ends the case: there is no step to look at."""

    def __init__(self, promise: str, problem: str) -> None:
        super().__init__(problem)
        self.promise = promise


@dataclass(frozen=True)
class Result:
    """One promise of the contract: kept, or the first case in which it was broken and how."""

    name: str
    meaning: str
    problem: str | None

    @property
    def ok(self) -> bool:
        return self.problem is None


def check_kind(plugin: Any, kind: Kind[Any]) -> list[Result]:
    """Play a plug-in through all cases of its kind; one result per promise."""
    problems: dict[str, str] = {}
    for name in kind.cases:
        broken = _first_broken(plugin, kind, name)
        if broken:
            problems.setdefault(broken[0], f"case '{name}', {broken[1]}")
    if isinstance(plugin, Plugin) and (problem := _settings_problem(plugin)):
        problems[SETTINGS] = problem
    return [Result(name, meaning, problems.get(name)) for name, meaning in kind.meanings.items()]


def _first_broken(plugin: Any, kind: Kind[Any], case: str) -> tuple[str, str] | None:
    """The first promise that is broken in a case, and how; what comes after it may be a consequence."""
    when, before = "the start", _global_random()
    try:
        for when, step in kind.play(plugin, kind.cases[case]):
            if _global_random() != before:
                return RANDOM, f"{when}: use the generator that is given"
            for promise in kind.promises:
                if problem := promise.broken(step):
                    return promise.name, f"{when}: {problem}"
    except BrokenError as problem:
        return problem.promise, f"after {when}: {problem}"
    except Exception as problem:
        if kind.may_refuse and isinstance(problem, FeelstreamError) and case != next(iter(kind.cases)):
            return None
        return RUNS, f"after {when}: {sentence(problem)}"
    return None


def _settings_problem(plugin: Plugin) -> str | None:
    try:
        fields = json.loads(json.dumps(plugin.model_dump()))
        fields.pop(plugin.tag_field)
        again = type(plugin).model_validate(fields)
    except Exception as problem:
        return f"they cannot be stored and read: {sentence(problem)}"
    return None if again == plugin else f"stored and read again they are {again!r}"


def _global_random() -> tuple[object, ...]:
    numpys = np.random.get_state(legacy=False)  # noqa: NPY002
    return numpys["state"]["key"].tobytes(), numpys["state"]["pos"], random.getstate()


def stored_and_read(state: Any, nested: bool = True) -> Nested:
    """A state as it comes back from a checkpoint; BrokenError where it cannot be stored."""
    if problem := state_problem(state, nested):
        raise BrokenError("state", problem)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **flatten({"state": state}))
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        return unflatten(dict(stored))["state"]


def read_only(state: Nested) -> Nested:
    """The same state, whose arrays refuse to be written to from now on; no copy, so that what is no state shows."""
    for array in flatten(state).values():
        frozen(array)
    return state


def frozen(array: NDArray) -> NDArray:
    array.flags.writeable = False
    return array


def copied(state: Nested) -> Nested:
    return unflatten({name: array.copy() for name, array in flatten(state).items()})


def same(one: Nested, other: Nested) -> bool:
    """Whether two states hold the same arrays."""
    left, right = flatten(one), flatten(other)
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


def state_problem(state: Any, nested: bool = True) -> str | None:
    """What keeps a state from being stored: it must be plain, finite arrays by name, or nested dictionaries of them."""
    if not isinstance(state, dict):
        return f"it is {type(state).__name__}, not a dictionary"
    for name, value in state.items():
        if nested and isinstance(name, str) and isinstance(value, dict):
            if problem := state_problem(value):
                return problem
            continue
        plain = isinstance(name, str) and isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
        if not plain or not np.isfinite(value).all():
            return f"'{name}' is {value!r:.200}"
    return None
