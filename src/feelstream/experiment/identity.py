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

from feelstream import code
from feelstream.columns import FORMAT
from feelstream.data.datasets import Dataset
from feelstream.learning.contract import Learner
from feelstream.scenario import Scenario
from feelstream.version import __version__


def identity(scenario: Scenario, learner: Learner | None, dataset: Dataset) -> dict[str, Any]:
    """What this machine would play the scenario with: learner and data set are those of the scenario here."""
    code.check(scenario)
    once = {"once": token_hex()} if code.without_file(scenario) else {}  # no other plan has its runs
    return {
        "feelstream": __version__,
        "format": FORMAT,
        "engine": {"name": learner.name if learner else "none", **(learner.details if learner else {})},
        "data": dataset.digest,
        "files": code.named_files(scenario),
    } | once


def run_names(scenario: Scenario, seeds: Iterable[int], known: dict[str, Any]) -> list[str]:
    """For readers: policy, partition, devices, schedule size, seed. For certainty: a hash of all that matters."""
    table, policy, partition = scenario.as_dict(), scenario.policy, scenario.data.partition
    kinds = (each.plugin_name().rpartition(":")[2] for each in (policy, partition))
    words = "-".join([*kinds, f"k{scenario.system.devices}", f"n{policy.size}"])
    names = list[str]()
    for seed in seeds:
        readable = re.sub(r"[^a-z0-9_-]+", "_", f"{words}-seed{seed}".lower())[:80]
        digest = sha256(canonical({"scenario": table, "seed": seed, **known}).encode()).hexdigest()
        names.append(f"{readable}-{digest[:16]}")
    return names


def canonical(value: Any) -> str:
    """One text for equal settings, whatever the order of their fields."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
