"""What decides the numbers of a run beside its settings and seed, and the name of its directory.

A stored run is used again only if nothing of it has changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_hex
from typing import Any

from feelstream import code, learning
from feelstream.columns import FORMAT
from feelstream.errors import sentence_and_place
from feelstream.run import dataset_of
from feelstream.scenario import Scenario, model_cost
from feelstream.scenario.files import from_dict
from feelstream.scenario.model_cost import Cost
from feelstream.version import __version__


@dataclass(frozen=True)
class Identity:
    """What a scenario would be played with, or the problem with it in a sentence."""

    problem: str | None = None
    known: dict[str, Any] | None = None  # all that decides the numbers of its runs, but settings and seed
    parameters: int | None = None  # of the model, where one is trained
    cost: Cost | None = None  # of a round of the model, where the scenario asks for it


def identify(scenario: dict[str, Any]) -> Identity:
    """What this process would play the scenario with; asked wherever runs will be played.

    That is the version of feelstream and of the run format, the engine with its instruction set or library version, the
    data, and the contents of every file the scenario names (a policy of the user's own, a recorded trace of arrivals).
    """
    try:
        settings = from_dict(scenario)
        dataset = dataset_of(settings)
        learner = learning.make(settings.learning, learning.blank(dataset), threads=1)
        code.check(settings)
        once = {"once": token_hex()} if code.without_file(settings) else {}  # no other plan has its runs
        return Identity(
            known={
                "feelstream": __version__,
                "format": FORMAT,
                "engine": {"name": learner.name if learner else "none", **(learner.details if learner else {})},
                "data": dataset.digest,
                "files": code.named_files(settings),
            }
            | once,
            parameters=learner.parameters if learner else None,
            cost=model_cost.of(settings.learning, dataset) if settings.autos else None,
        )
    except KeyboardInterrupt:  # this may be the runner's own process
        raise
    except BaseException as problem:
        return Identity(sentence_and_place(problem))


def run_names(scenario: Scenario, seeds: Iterable[int], known: dict[str, Any]) -> list[str]:
    """Directories of runs. For readers: policy, partition, devices, schedule size, seed. For certainty: a hash of all
    that decides their numbers; known: `Identity.known`.
    """
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
