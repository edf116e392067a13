"""Comparisons and sweeps from Python, over the same plans as the command line: stored and resumable."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from numbers import Integral
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

from feelstream.api.comparison import Comparison
from feelstream.api.progress import bar
from feelstream.api.simulating import scenario_of
from feelstream.errors import ScenarioError
from feelstream.experiment import Arm, Plan, Progress, comparison, execute
from feelstream.experiment.plan import flat
from feelstream.learning import cores
from feelstream.policies import Policy
from feelstream.run.main_code import is_in_main
from feelstream.run.named_files import texts
from feelstream.scenario import Scenario

Entry = str | Policy | type[Policy] | Scenario


def compare(
    policies: Sequence[Entry] | Mapping[str, Entry],
    scenario: str | Path | Scenario | None = None,
    *,
    seeds: int | Sequence[int] = 10,
    out: str | Path | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
    **fields: Any,
) -> Comparison:
    """Compare policies over seeds; with the same seed all receive the same world, so they compare in pairs.

    Args:
        policies: Names (`lyapunov(V=0.1)` sets fields), Policy classes or objects, whole Scenarios, or a mapping that
            gives each its label. The first is what the others are compared with.
        scenario: What they are run on, by default the paper's.
        seeds: How many, or which.
        out: A directory that keeps the runs, so that the same call runs only what is missing; without it they are
            removed with the Comparison.
        workers: Processes; by default one per core.
        executor: Any other executor of `concurrent.futures`.
        progress: Whether to show it.
        **fields: Fields of the scenario, as in `Scenario.with_`.

    >>> found = compare(["lyapunov", "random"], "tiny", seeds=2, rounds=3, engine="none", workers=1)
    >>> found.table(["energy_j"]).columns
    ['arm', 'energy_j', 'energy_j_low', 'energy_j_high', 'energy_j_verdict']
    """
    if isinstance(policies, str | Path | Scenario) or not isinstance(policies, Sequence | Mapping) or not policies:
        raise ScenarioError("compare: give the policies as a list, as in compare(['lyapunov', 'random'], 'tiny')")
    _check("compare", seeds, fields)
    base = scenario_of(scenario if scenario is not None else Scenario(), fields)
    arms: list[Arm] = []
    labelled = policies.items() if isinstance(policies, Mapping) else ((None, entry) for entry in policies)
    for label, entry in labelled:
        if not isinstance(entry, str | Policy | type | Scenario):
            raise ScenarioError(f"compare: a policy must be a name, a Policy or a Scenario, not {entry!r}")
        if isinstance(entry, Scenario):
            changed = entry.with_(**fields) if fields else entry
            arms.append(Arm(label or changed.policy.plugin_name(), changed))
        else:
            arms += [Arm(label or arm.label, arm.scenario) for arm in comparison.arms(base, [entry])]
    return _played("compare", arms, seeds, out, workers, executor, progress)


def sweep(
    scenario: str | Path | Scenario,
    over: Mapping[str, Sequence[Any]],
    *,
    policies: Sequence[str | Policy | type[Policy]] = (),
    seeds: int | Sequence[int] = 10,
    out: str | Path | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
    **fields: Any,
) -> Comparison:
    """Run a scenario at every combination of values.

    Args:
        scenario: A preset's name, a TOML file or a Scenario.
        over: The values of each field, which is named alone or with its section.
        policies: As in `compare`; by default the scenario's own.
        seeds: How many, or which.
        out: As in `compare`.
        workers: As in `compare`.
        executor: As in `compare`.
        progress: Whether to show it.
        **fields: Other fields of the scenario, as in `Scenario.with_`.

    >>> found = sweep("tiny", {"V": [0.01, 1.0]}, seeds=1, rounds=3, engine="none", workers=1)
    >>> found.arms
    ['lyapunov V=0.01', 'lyapunov V=1.0']
    """
    _check("sweep", seeds, fields)
    base = scenario_of(scenario, fields)
    lists = isinstance(over, Mapping) and all(not isinstance(v, str) and isinstance(v, Iterable) for v in over.values())
    if not lists or not over or not all(map(list, over.values())):
        raise ScenarioError("sweep: give at least one field, each with at least one value, as in {'V': [0.01, 0.1]}")
    grid = [(name, list(values)) for name, values in over.items()]
    arms = comparison.arms(base, policies, (), grid)
    swept = tuple(_whole(name, arms[0].scenario) for name in over)
    return _played("sweep", arms, seeds, out, workers, executor, progress, swept)


def _check(name: str, seeds: Any, fields: Mapping[str, Any]) -> None:
    """Refuse what stands in the wrong place, before anything is made of it."""
    if "seed" in fields:
        raise ScenarioError(f"{name}: give seeds, as in seeds=10 or seeds=[{fields['seed']}]; seed belongs to simulate")
    listed = [seeds] if isinstance(seeds, int) else seeds
    if not isinstance(listed, Iterable) or not all(isinstance(seed, Integral) for seed in listed):
        raise ScenarioError(f"{name}: seeds must be a number or a list, as in seeds=10 or seeds=[3, 4], not {seeds!r}")
    if isinstance(seeds, int) and seeds < 1:
        raise ScenarioError(f"{name}: seeds must be at least 1, not {seeds}")


def _whole(name: str, scenario: Scenario) -> str:
    """A field with its section, whichever way it was named."""
    known = {field.rpartition(".")[2]: field for field in flat(scenario.as_dict())}
    return name if "." in name else known.get(name, name)


def _played(
    name: str,
    arms: Sequence[Arm],
    seeds: int | Sequence[int],
    out: str | Path | None,
    workers: int | None,
    executor: Executor | None,
    progress: bool,
    swept: tuple[str, ...] = (),
) -> Comparison:
    plan = Plan(name, tuple(arms), tuple(range(seeds) if isinstance(seeds, int) else seeds))
    where = Path(mkdtemp(prefix="feelstream-") if out is None else out)
    own = _threads(plan, workers) if executor is None else None
    with own or nullcontext(), bar(name, progress) as show:

        def tell(state: Progress) -> None:
            show(state.rounds_done, max(state.rounds, 1), f"{state.runs_done}/{state.runs} runs")

        results = execute(plan, where, workers=workers, executor=executor or own, progress=tell)
    found = Comparison(results, where, swept)
    if out is None:
        finalize(found, rmtree, where, ignore_errors=True)
    return found


def _threads(plan: Plan, workers: int | None) -> Executor | None:
    """Threads, where something was defined in a script or a notebook: no other process could import it."""
    here = sorted({text for arm in plan.arms for text in texts(arm.scenario.as_dict()) if is_in_main(text)})
    if not here:
        return None
    if len(plan.arms) * len(plan.seeds) > 1 and (workers or cores()) > 1:
        names = ", ".join(name.partition(":")[2] for name in here)
        print(
            f"feelstream: {names} is defined in this script or notebook, so all runs share this process; in a file of "
            "its own (file.py:Name) they would use every core",
            file=sys.stderr,
        )
    return ThreadPoolExecutor(workers or cores())
