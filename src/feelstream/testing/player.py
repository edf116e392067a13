"""How any plug-in is tried: short runs that are awkward in one way each, played as every run is.

The guard (guard.py) holds the plug-in to its contract as it does in any run. Here each run is also played a second
time, and a third time from what a checkpoint stores every few rounds; all must come to the same. What a plug-in says
of itself to other code, and no run asks for, are the laws of its kind (laws.py).
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from feelstream import learning
from feelstream.arrays import Nested, flatten, unflatten
from feelstream.data.datasets import Dataset, load
from feelstream.data.datasets.dataset import Recording
from feelstream.errors import FeelstreamError, PluginError, sentence
from feelstream.loop.round import RoundRecord
from feelstream.loop.simulation import Simulation
from feelstream.plugins import Kind, Plugin
from feelstream.scenario import Scenario
from feelstream.testing.laws import LAWS

Tables = Mapping[str, Any]  # of a scenario, by field: "system.devices"

SETTINGS, RUNS, CONTRACT, RANDOM = "settings", "runs", "contract", "global random"
REPEATABLE, CHECKPOINT = "repeatable", "checkpoint"
OF_ALL = {
    SETTINGS: "its settings survive being stored and read",
    RUNS: "it gets through every case without an error, and writes to nothing that it is handed",
    CONTRACT: "what it returns has the form, the range and the state that its kind promises",
    RANDOM: "it leaves the global random numbers alone",
    REPEATABLE: "the same run comes to the same",
    CHECKPOINT: "it goes on the same from a stored state",
}
LEARNING = {"learning.engine": "native", "learning.local.steps": 2, "learning.local.batch": 8, "system.rounds": 4}
USUAL: Tables = {
    "system.devices": 6,
    "system.rounds": 10,
    "system.energy_budget_j": 0.05,
    "radio.bandwidth_hz": 1e6,
    "radio.received_power_dbm": -36.0,  # so that admission has something to decide
    "data.dataset": "synthetic",
    "data.samples": 240,
    "data.arrivals": {"kind": "uniform"},
    "policy": {"name": "random"},  # says with which probability it schedules
    "policy.size": 2,
    "learning.engine": "none",
    "learning.model": "softmax",
}
CASES: Mapping[str, Tables] = {
    "ordinary": {},
    "with learning": LEARNING,
    "one device": {"system.devices": 1, "policy.size": 1},
    "all devices": {"policy.size": 6},
    "hardly anyone feasible": {"cpu.frequency_hz": [2e7, 1.3e8]},
    "hardly any data": {"data.arrivals": {"kind": "poisson", "rate": 1e-9}, "system.rounds": 5},
    "more devices than samples": {"data.samples": 10, "system.devices": 12},
    "all alike": {"cpu.frequency_hz": [1e9, 1e9], "radio.gain_db": [0.0, 0.0]},
    "everyone used in every round": {"policy": {"name": "select_all"}, "policy.size": 6},
    "a burst of arrivals": {"data.arrivals": {"kind": "bursts"}},
    "one round": {"system.rounds": 1},
    "a long run": {"system.rounds": 40},
    "batteries and faults": {
        "world.harvest": {"kind": "packets", "capacity_j": 2.0},
        "world.faults": {"kind": "random"},
        "world.availability": {"kind": "markov"},
    },
    "updates get lost, with learning": {**LEARNING, "world.faults": {"kind": "random", "rate": 0.5}},
}


@dataclass(frozen=True)
class Result:
    """One promise of the contract: kept, or the first case in which it was broken and how; or a case not tried."""

    name: str
    meaning: str
    problem: str | None = None
    tried: bool = True

    @property
    def ok(self) -> bool:
        return self.problem is None


class BrokenError(Exception):
    """A promise was broken."""

    def __init__(self, promise: str, problem: str) -> None:
        super().__init__(problem)
        self.promise = promise


def check_kind(plugin: Any, kind: Kind[Any]) -> list[Result]:
    """Play a plug-in through all cases; one result per promise of its kind, and one per case that was refused."""
    problems: dict[str, str] = {}
    refused: list[Result] = []
    of_whole_runs = {RANDOM, REPEATABLE, CHECKPOINT}  # not tried where no run comes to its end
    meanings, laws = dict(OF_ALL), LAWS.get(kind.name, {})
    if not kind.has_settings:
        del meanings[SETTINGS]
    for law, (meanings[law], broken) in laws.items():
        try:
            problem = broken(plugin)
        except Exception as failed:
            problem = sentence(failed)
        if problem:
            problems[law] = problem
    for case, tables in CASES.items():
        try:
            with _known(plugin, kind) as named:
                _play(scenario_with(named, kind.field, tables))
            of_whole_runs = set()
        except BrokenError as problem:
            problems.setdefault(problem.promise, f"case '{case}', {problem}")
        except Exception as problem:
            said = f"case '{case}': {sentence(problem)}"
            broken = isinstance(problem, PluginError)
            # A scenario, or a plug-in in its own words, may say that it cannot be so.
            if isinstance(problem, FeelstreamError) and not broken and case != "ordinary":
                refused.append(Result(case, said, tried=False))
            else:
                problems.setdefault(CONTRACT if broken and problem.__cause__ is None else RUNS, said)
    if isinstance(plugin, Plugin) and (problem := _settings_problem(plugin)):
        problems[SETTINGS] = problem
    untried = of_whole_runs - problems.keys()
    return [*(Result(n, says, problems.get(n), n not in untried) for n, says in meanings.items()), *refused]


@contextmanager
def _known(plugin: Any, kind: Kind[Any]) -> Iterator[Any]:
    """What stands for it in a scenario: settings themselves; a function by a name that is known meanwhile."""
    if isinstance(plugin, Plugin):
        yield plugin
        return
    ours = kind.ours
    name = next((name for name, each in ours.items() if each in (plugin, type(plugin))), "it")
    ours.setdefault(name, plugin)
    try:
        yield tuple(dict.fromkeys(("test", name))) if kind.field == "learning.evaluators" else name
    finally:
        ours.pop("it", None)


def scenario_with(named: Any, field: str, tables: Tables) -> Scenario:
    """The usual one with this case's fields and the plug-in; ScenarioError where they do not go together."""
    learns = field.startswith("learning.") or getattr(named, "of_model", False)
    known = {**USUAL, **(LEARNING if learns else {}), **tables, field: named}
    if getattr(named, "needs_torch", False):
        known["learning.engine"] = "torch"
    if field == "policy.metric":
        known["policy.name"] = "lyapunov"
    if getattr(named, "needs_links", False):
        known["world.mobility"] = {"kind": "tr38901"}
    if field == "cpu.energy" and named.needs_cores:
        known["cpu.profile"] = "rk3399-a72"
    if field == "policy" and named.probes:
        known["learning.engine"] = "native"
    own = [name for name in known if name.startswith(f"{field}.") and name != "policy.size"]  # which it has as it is
    return Scenario().with_(**{name: value for name, value in known.items() if name not in own})


@lru_cache(maxsize=2)
def _dataset(samples: int) -> Dataset:
    recording = Recording((np.arange(samples) % 6).astype(np.int32), np.arange(samples, dtype=float) // 6 + 0.5)
    return replace(load("synthetic", samples=samples, test_samples=40), recording=recording)


def _simulation(scenario: Scenario) -> Simulation:
    data = _dataset(scenario.data.samples)
    return Simulation(scenario, 5, data, learning.make(scenario.learning, data, 1))


def _play(scenario: Scenario) -> None:
    """One run, its repetition, and one that goes on from a checkpoint after the rounds 1, 2, 4, 8, …"""
    before = _global_random()
    first, second, third = (_simulation(scenario) for _ in range(3))
    for t in range(1, scenario.system.rounds + 1):
        record = first.step()
        if _global_random() != before:
            raise BrokenError(RANDOM, f"round {t}: use the generator that is given")
        _compare(REPEATABLE, t, first, record, second, second.step())
        _compare(CHECKPOINT, t, first, record, third, third.step())
        if t & (t - 1) == 0:
            stored, third = _stored_and_read(third.snapshot()), _simulation(scenario)
            third.restore(stored)


def _compare(promise: str, t: int, first: Simulation, one: RoundRecord, other: Simulation, two: RoundRecord) -> None:
    for name, mine in _seen(first, one).items():
        if not np.array_equal(mine, theirs := _seen(other, two)[name], equal_nan=mine.dtype.kind == "f"):
            raise BrokenError(promise, f"round {t}: {name} was {mine!r:.150}, then {theirs!r:.150}")


def _seen(simulation: Simulation, record: RoundRecord) -> dict[str, np.ndarray]:
    """What a round came to, the samples that devices hold and the model among it."""
    known, spent, world = record.observation, record.transmission, simulation.world
    held = [world.stream.samples(k) for k in range(len(known.f_hz))]
    found = {
        "schedule": record.decision.schedule, "sent": spent.sent, "importance": record.importance, "f_hz": known.f_hz,
        "beta": known.beta, "gain": record.gain, "available": known.available, "stored": known.stored,
        "fresh_labels": known.fresh_features, "e_cmp_j": spent.e_cmp_j, "e_tr_j": spent.e_tr_j,
        "the samples held": np.concatenate(held), "queue_j": record.queue_next_j, "the model": simulation.theta,
        "the model that is tested": simulation.model,
    }  # fmt: skip
    measured = {name: np.array(np.nan if value is None else value) for name, value in record.measured.numbers.items()}
    return found | measured | {name: values for _, name, values in record.measured.arrays}


def _stored_and_read(state: Nested) -> Nested:
    """A state as it comes back from a checkpoint; BrokenError where a number of it is not finite."""
    flat = flatten(state)
    for name, array in flat.items():
        if not np.isfinite(array).all():
            raise BrokenError(CONTRACT, f"its state must be finite, and {name} is {array!r:.100}")
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **flat)
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        return unflatten(dict(stored))


def _settings_problem(plugin: Plugin) -> str | None:
    try:
        stored = json.loads(json.dumps(plugin.model_dump()))
        stored.pop(plugin.tag_field)
        again = type(plugin).model_validate(stored)
    except Exception as problem:
        return f"they cannot be stored and read: {sentence(problem)}"
    return None if again == plugin else f"stored and read again they are {again!r}"


def _global_random() -> tuple[object, ...]:
    numpys = np.random.get_state(legacy=False)  # noqa: NPY002
    return numpys["state"]["key"].tobytes(), numpys["state"]["pos"], random.getstate()
