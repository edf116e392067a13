"""What people hand over, as what is meant by it; anything else is refused in a sentence that says what to write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from feelstream.errors import ScenarioError
from feelstream.experiment.plan import MOST_SEED
from feelstream.plugins import did_you_mean
from feelstream.policies import Policy
from feelstream.scenario import Scenario
from feelstream.scenario.fields import leaves
from feelstream.scenario.files import load

Entry = str | Policy | type[Policy] | Scenario


def scenario_of(call: Callable[..., Any], source: str | Path | Scenario, fields: dict[str, Any]) -> Scenario:
    """A scenario with some fields changed; call: what was given them, so that its own arguments may be meant."""
    if not isinstance(source, str | Path | Scenario):
        raise ScenarioError(f"the scenario must be a preset's name, a TOML file or a Scenario, not {source!r:.60}")
    scenario = source if isinstance(source, Scenario) else load(source)
    try:
        return scenario.with_(**fields) if fields else scenario
    except ScenarioError as problem:
        known = [leaf.path[-1] for leaf in leaves(Scenario, scenario.tables())]
        own = list(signature(call).parameters)
        for field in (field for field in fields if f"no field '{field}'" in str(problem)):
            meant = did_you_mean(field, own)
            if meant and meant == did_you_mean(field, [*own, *known]):  # nearer than any field
                raise ScenarioError(f"{call.__name__}: there is no argument '{field}'; {meant}".rstrip()) from None
        raise


def whole_number(name: str, value: Any, low: int = 1, otherwise: str = "") -> int:
    """A Python int of any whole number that is not below `low`, NumPy's too; True is none. otherwise: more advice."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise ScenarioError(f"{name} must be a whole number, not {value!r:.60}{otherwise}")
    number = int(value)
    if not low <= number <= MOST_SEED:
        allowed = f"{low} or more" if number < low else f"at most {MOST_SEED}"
        raise ScenarioError(f"{name} must be {allowed}, not {number}")
    return number


def directory_of(name: str, value: Any) -> Path:
    """A directory, given as text or a path."""
    if not isinstance(value, str | PathLike):
        raise ScenarioError(f"{name} must be a directory, as in 'results/first', not {value!r:.60}")
    return Path(value)


def seeds_of(name: str, seeds: Any) -> Sequence[int]:
    """Which seeds: the first so many, or those of any list, range, array or generator."""
    if isinstance(seeds, Integral) and not isinstance(seeds, bool):
        if seeds < 1:
            raise ScenarioError(f"{name}: seeds must be at least 1, not {seeds}")
        seeds = range(int(seeds))
    if isinstance(seeds, range) and seeds:  # not listed, since a plan refuses what would not fit into memory
        return seeds
    listed: list[Any] = list(seeds) if isinstance(seeds, Iterable) and not isinstance(seeds, str | Mapping) else [None]
    if not all(isinstance(seed, Integral) and not isinstance(seed, bool) for seed in listed):
        shown = f"{seeds!r:.60}"
        raise ScenarioError(f"{name}: seeds must be a number or a list, as in seeds=10 or seeds=[3, 4], not {shown}")
    if not listed:
        raise ScenarioError(f"{name}: give at least one seed, as in seeds=10 or seeds=[3, 4]")
    return tuple(map(int, listed))


def policies_of(name: str, policies: Any) -> list[tuple[str | None, Entry]]:
    """Label, if one was given, and policy of each; a set has no first, with which the others are compared."""
    one = isinstance(policies, str | Path | Policy | type | Scenario | set | frozenset)
    pairs = () if one or not isinstance(policies, Iterable) else policies
    pairs = pairs.items() if isinstance(pairs, Mapping) else ((None, entry) for entry in pairs)
    labelled: list[tuple[str | None, Entry]] = list(pairs)
    if not labelled:
        raise ScenarioError(f"{name}: give the policies as a list, as in compare(['lyapunov', 'random'], 'tiny')")
    for label, entry in labelled:
        if not isinstance(entry, str | Policy | type | Scenario):
            raise ScenarioError(f"{name}: a policy must be a name, a Policy or a Scenario, not {entry!r:.60}")
        if label is not None and not (isinstance(label, str) and label.strip()):
            raise ScenarioError(f"{name}: a label must be text, as in {{'mine': 'random'}}, not {label!r:.60}")
    return labelled


def names_of(quantities: Sequence[Any]) -> tuple[str, ...]:
    """Quantities that were given one by one, or as a list."""
    found = quantities[0] if len(quantities) == 1 and isinstance(quantities[0], list | tuple) else quantities
    for name in found:
        if not isinstance(name, str):
            raise ScenarioError(f"a quantity must be a name, as in 'accuracy', not {name!r:.60}")
    return tuple(found)


# What belongs to another call, or to another place of this one, and what to write instead; GIVEN is what was given.
SEVERAL = {
    "seed": "give seeds, as in seeds=10 or seeds=[GIVEN]; seed belongs to simulate",
    "threads": "give workers, as in workers=2; threads belong to simulate",
}
MISPLACED: dict[str, dict[str, str]] = {
    "simulate": {
        "seeds": "one run has one seed, as in seed=3; several are for compare and sweep",
        "policies": "one run has one policy, as in policy='random'; several are for compare",
        "workers": "one run has threads, as in threads=2; workers are for compare and sweep",
    },
    "compare": SEVERAL | {
        "policy": "give the policies as a list, as in compare(['lyapunov', 'random'], 'tiny')",
        "scenarios": "give one scenario, or Scenarios in place of policies: compare({'iid': one, 'skewed': other})",
    },
    "sweep": SEVERAL | {"policy": "give policies, as in policies=['lyapunov', 'random']"},
    "tune": {
        "seed": "give seeds, as in seeds=5 or seeds=[GIVEN]; seed belongs to simulate",
        "V": "give the values to try as weights, as in tune('tiny', [0.01, 0.1, 1])",
        "budget": "give budget_j, in joules per device and round",
    },
}  # fmt: skip


def check_places(name: str, fields: Mapping[str, Any]) -> None:
    """Refuse what stands in the wrong place, before it is looked for among the fields of a scenario."""
    for field, instead in MISPLACED.get(name, {}).items():
        if field in fields:
            raise ScenarioError(f"{name}: {instead.replace('GIVEN', f'{fields[field]!r:.20}')}")
