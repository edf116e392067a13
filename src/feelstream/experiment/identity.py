"""What decides the outcome of a run, and the directory name that follows from it.

A stored run may be used again only if nothing that decides its numbers has changed. So its name holds a hash of
all of that: the whole scenario, the seed, the version of feelstream and of the run format, the engine with its
instruction set or library version, the data, and the contents of every file the scenario names (a policy of the
user's own, a recorded trace of arrivals).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from hashlib import sha256
from secrets import token_hex
from typing import Any

from feelstream import code, learning
from feelstream.columns import FORMAT
from feelstream.run import dataset_of
from feelstream.scenario import Scenario
from feelstream.version import __version__

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def identity(scenario: Scenario) -> dict[str, Any]:
    """What this machine would play the scenario with. Loads the data set; the images stay where they are."""
    code.check(scenario)
    dataset = dataset_of(scenario)
    learner = learning.make(scenario.learning, learning.probe(dataset), threads=1)
    once = {"once": token_hex()} if code.without_file(scenario) else {}  # no other plan has its runs
    return {
        "feelstream": __version__,
        "format": FORMAT,
        "engine": {"name": learner.name if learner else "none", **(learner.details if learner else {})},
        "data": dataset.digest,
        "files": code.named_files(scenario),
    } | once


def same_identity(scenario: Scenario) -> str:
    """Equal for scenarios that have the same identity, without loading anything."""
    data = {"dataset": scenario.data.dataset, "samples": scenario.data.samples}
    classes = [id(type(part)) for part in scenario.plugins()]  # two of a script may have one name
    return canonical([scenario.learning.model_dump(), data, sorted(set(code.texts(scenario.as_dict()))), classes])


def run_names(scenario: Scenario, seeds: Iterable[int], known: dict[str, Any]) -> list[str]:
    """For readers: policy, partition, devices, schedule size, seed. For certainty: a hash of all that matters."""
    parts = {name: canonical(value) for name, value in {"scenario": scenario.as_dict(), **known}.items()}
    policy, partition = scenario.policy, scenario.data.partition
    words = [
        policy.plugin_name().rpartition(":")[2],
        partition.plugin_name().rpartition(":")[2],
        f"k{scenario.system.devices}",
        f"n{policy.size}",
    ]
    # The canonical text of all of it, and the hash of what comes before the seed: there may be thousands of seeds.
    before, after = (
        "".join(f"{canonical(name)}:{parts[name]}," for name in sorted(parts) if (name < "seed") == first)
        for first in (True, False)
    )
    shared, rest = sha256(f'{{{before}"seed":'.encode()), f",{after}".rstrip(",") + "}"
    first_words = "-".join(words)
    names = list[str]()
    for seed in seeds:
        hashed = shared.copy()
        hashed.update(f"{canonical(seed)}{rest}".encode())
        readable = re.sub(r"[^a-z0-9_-]+", "_", f"{first_words}-seed{seed}".lower())[:80]
        names.append(f"{readable}-{hashed.hexdigest()[:16]}")
    return names


def canonical(value: Any) -> str:
    """One text for equal settings, whatever the order of their fields."""
    return _CANONICAL.encode(value)
