"""What comes before the first round: all that a run is made from is read here, once, and hashed as it is read."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

from feelstream import code, learning
from feelstream.code import stamp, taking
from feelstream.data.datasets import Dataset
from feelstream.data.datasets import load as load_dataset
from feelstream.data.datasets.dataset import Normalise
from feelstream.errors import DataError, RunError, ScenarioError
from feelstream.loop.changes import Change, in_order
from feelstream.loop.simulation import Simulation
from feelstream.run import trace
from feelstream.run.manifest import Manifest
from feelstream.scenario import Scenario, model_cost

# Bytes per device: some thirty columns of a round in float64, with temporaries of policy and trace.
DEVICE_BYTES, CLASS_BYTES = 1000, 24
ROW_BYTES = 400  # of a device and round in memory, when the tables of a whole run are put together
ROUND_BYTES = 500
DRAW_BYTES = 12  # of a sample of a mini-batch: its number and its loss, which a round's training holds all at once
CLASSES = 10
CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def dataset_of(scenario: Scenario) -> Dataset:
    """The data set of a scenario. The last one is kept: a process that plays many runs loads it once."""
    name = scenario.data.dataset
    samples = scenario.data.samples if name == "synthetic" else None
    return _last_dataset(name, samples, scenario.data.normalise, _version_of(name))


def _version_of(dataset: str) -> tuple[int, ...] | None:
    """Of the file that a data set is in, if it is a user's own."""
    return stamp(Path(dataset)) if dataset.lower().endswith(".npz") else None


@lru_cache(maxsize=1)
def _last_dataset(name: str, samples: int | None, normalise: Normalise, version: tuple[int, ...] | None) -> Dataset:
    return load_dataset(name, samples=samples, normalise=normalise)


def with_numbers(scenario: Scenario) -> Scenario:
    """The scenario with a number where it says auto and the model is to tell; that needs the data set."""
    if not scenario.autos:
        return scenario
    return model_cost.with_numbers(scenario, model_cost.of(scenario.learning, dataset_of(scenario)))


@taking()
def prepare(
    scenario: Scenario,
    seed: int,
    threads: int | None,
    changes: Iterable[Change] = (),
    pinned: Mapping[str, Any] | None = None,
) -> tuple[Simulation, Manifest]:
    """A simulation before its first round, and what run.json is to say of it.

    All data files that the scenario names are read here and not again, and their digests are of what was read.
    pinned: the files and data of the plan that the run is part of, which looked at them when it began.
    """
    if pinned is None:
        code.check(scenario)
    if scenario.devices.table or any(map(os.path.isfile, scenario.profiles.names)):
        scenario = Scenario.of(scenario.tables())  # with the files as they are now
    scenario = with_numbers(scenario)
    changes = in_order(scenario, changes)
    seed = operator.index(seed)  # a NumPy integer becomes one that JSON knows
    if seed < 0:
        raise RunError(f"the seed must be 0 or more, not {seed}")
    check_fits(scenario)
    version = _version_of(scenario.data.dataset)
    dataset = dataset_of(scenario)
    learner = learning.make(scenario.learning, dataset, threads)
    if parent_process() is None:  # of many runs, the process that started them has reported it
        model_cost.warn(scenario, learner.parameters if learner else None)
    simulation = Simulation(scenario, seed, dataset, learner, changes)
    manifest = Manifest.begin(
        scenario,
        seed,
        engine={"name": learner.name, **learner.details} if learner else {"name": "none"},
        data={
            "name": dataset.name,
            "digest": dataset.digest,
            "classes": dataset.classes,
            "samples": len(dataset.train_labels),
        },
        changes=changes,
        reference=simulation.system.reference,
        quantities=tuple(simulation.evaluators.quantities),
    )
    if _version_of(scenario.data.dataset) != version:
        raise DataError(f"data.dataset: {dataset.name} changed while it was read; give the same command again")
    _check_pinned(manifest, pinned or {})
    return simulation, manifest


def _check_pinned(manifest: Manifest, pinned: Mapping[str, Any]) -> None:
    """Refuse a run that would not be the one that was asked for: something changed while its plan was under way."""
    files, data = pinned.get("files", manifest.files), manifest.data
    # What is in the script or notebook itself stays as it is, and may have no digest that does.
    other = [name for name in {**files, **manifest.files} if files.get(name) != manifest.files.get(name)]
    changed = [name.partition(" > ")[2] or name for name in other if not name.startswith(code.MAIN)]
    if pinned.get("data", data.get("digest")) != data.get("digest"):
        changed.append(str(data.get("name")))
    if changed:
        raise RunError(
            f"{changed[0]} changed while the plan was under way; give the same command again (with new workers, where "
            "they are not ours), and all of it is run with what is there then"
        )


def memory_bytes() -> int:
    """The memory of this machine, or of the container that we are in."""
    limits = [2**63]
    for file in CGROUPS:
        with suppress(OSError, ValueError):  # it may say "max"
            limits.append(int(Path(file).read_text()))
    with suppress(ValueError, OSError, AttributeError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limits)


def check_fits(scenario: Scenario) -> None:
    """Refuse what cannot fit into the memory, with an estimate from below, instead of trying."""
    K, T, local = scenario.system.devices, scenario.system.rounds, scenario.learning.local
    steps, batch = local.shape if local.shape and scenario.learning.engine != "none" else (0, 0)
    full, rows = scenario.trace.level == "full", K * T * ROW_BYTES
    base = K * (DEVICE_BYTES + CLASS_BYTES * CLASSES) + T * ROUND_BYTES
    needs = {
        f"learning.local.batch: {steps:,} steps of {batch:,} samples": DRAW_BYTES * steps * batch,
        f"system.devices: {K:,} devices and {T:,} rounds": base + (rows if full else min(K, trace.MANY)),
    }
    hint = ", or set trace.level to rounds" if full and rows > base else ""
    there = memory_bytes()
    for what, needed in needs.items():
        if needed > there:
            raise ScenarioError(
                f"{what} need about {_shown(needed)} of memory, and there are {_shown(there)}; take fewer"
                f"{hint if what.startswith('system') else ''}"
            )


def _shown(size: int) -> str:
    return f"{size / 1e9:,.3g} GB" if size < 1e13 else f"{size / 1e12:,.0f} TB"
