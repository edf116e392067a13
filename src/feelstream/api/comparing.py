"""Comparisons and sweeps from Python, over the same plans as the command line: stored and resumable."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence, Sized
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from numpy import ndarray

from feelstream.api.arguments import Entry, check_places, directory_of, policies_of, scenario_of, seeds_of, whole_number
from feelstream.api.comparison import Comparison
from feelstream.code import MAIN, texts
from feelstream.errors import ScenarioError
from feelstream.experiment import Arm, Plan, comparison, execute, gathered, load
from feelstream.learning import cores
from feelstream.policies import Policy
from feelstream.run import Run
from feelstream.run import read as read_run
from feelstream.scenario import Scenario
from feelstream.scenario.fields import flat
from feelstream.terminal.progress import plan_bar
from feelstream.terminal.tables import failed

log = logging.getLogger("feelstream")


def compare(
    policies: Iterable[Entry] | Mapping[str, Entry] = (),
    scenario: str | Path | Scenario | None = None,
    *,
    runs: Iterable[Run | str | Path] = (),
    seeds: int | Iterable[int] = 10,
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
        runs: In place of policies: runs that there are, or their directories. Runs of one scenario are seeds of one
            configuration.
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
    if isinstance(runs, str | Path | Run) or not isinstance(runs, Iterable):
        raise ScenarioError("compare: give runs as a list, as in compare(runs=['runs/a', 'runs/b'])")
    if given := list(runs):
        if policies or scenario is not None or fields:
            raise ScenarioError("compare: give runs alone, as in compare(runs=['runs/a', 'runs/b'])")
        return _of_runs([each if isinstance(each, Run) else read_run(each) for each in given])
    labelled = policies_of("compare", policies)
    check_places("compare", fields)
    base = scenario_of(compare, Scenario() if scenario is None else scenario, fields)
    arms: list[Arm] = []
    for label, entry in labelled:
        if isinstance(entry, Scenario):
            changed = entry.with_(**fields) if fields else entry
            arms.append(Arm(label or changed.policy.plugin_name(), changed))
        else:
            arms += comparison.arms(base, [(label, entry)])
    plan = Plan("compare", tuple(arms), seeds_of("compare", seeds))
    return played(plan, out, workers, executor, progress)


def sweep(
    scenario: str | Path | Scenario,
    over: Mapping[str, Iterable[Any]] | None = None,
    *,
    policies: str | Policy | type[Policy] | Iterable[Entry] | Mapping[str, Entry] = (),
    seeds: int | Iterable[int] = 10,
    out: str | Path | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
    **fields: Any,
) -> Comparison:
    """Run a scenario at every combination of values.

    Args:
        scenario: A preset's name, a TOML file or a Scenario.
        over: The values of each field, which is named alone or with its section, as in `{"policy.V": [0.01, 1]}`.
            Without it, every keyword that is a list, a tuple, a range or an array is swept, as in `V=[0.01, 1]`.
        policies: As in `compare`, or one alone; by default the scenario's own.
        seeds: How many, or which.
        out: As in `compare`.
        workers: As in `compare`.
        executor: As in `compare`.
        progress: Whether to show it.
        **fields: Other fields of the scenario, as in `Scenario.with_`.

    >>> found = sweep("tiny", {"V": [0.01, 1.0]}, seeds=1, rounds=3, engine="none", workers=1)
    >>> found.arms
    ['lyapunov V=0.01', 'lyapunov V=1.0']
    >>> sweep("tiny", V=[0.01, 1.0], seeds=1, rounds=3, engine="none", workers=1).arms
    ['lyapunov V=0.01', 'lyapunov V=1.0']
    """
    if over is None:
        over = {name: values for name, values in fields.items() if isinstance(values, list | tuple | range | ndarray)}
        fields = {name: value for name, value in fields.items() if name not in over}
    check_places("sweep", fields)
    base = scenario_of(sweep, scenario, fields if over else {})
    grid = _grid(over)
    if any(name == "seed" for name, _ in grid):
        raise ScenarioError("sweep: give seeds, as in seeds=[1, 2]; every value is run with each of them")
    given: Any = [policies] if isinstance(policies, str | Policy | type) else policies
    listed = [] if isinstance(given, Sized) and not len(given) else policies_of("sweep", given)
    arms = comparison.arms(base, listed, (), grid)  # type: ignore[arg-type]
    swept = tuple(_whole(name, arms[0].scenario) for name, _ in grid)
    plan = Plan("sweep", tuple(arms), seeds_of("sweep", seeds))
    return played(plan, out, workers, executor, progress, swept)


def _of_runs(runs: Sequence[Run]) -> Comparison:
    """Runs that are in memory alone are written to a directory for the time being."""
    where = Path(mkdtemp(prefix="feelstream-"))
    places = [run.directory or run.save(where / str(number)) for number, run in enumerate(runs)]
    return Comparison(gathered("compare", runs, places), where, is_kept=False)


def read(directory: str | Path) -> Any:
    """A finished run from its directory, or a comparison from its; nothing that the files name is imported.

    Args:
        directory: What `--out` or `out=` was.

    Returns:
        A `Run`, or a `Comparison` where the directory holds the results of `compare`, `sweep` or a study.

    >>> from tempfile import TemporaryDirectory
    >>> from feelstream import simulate
    >>> with TemporaryDirectory() as place:
    ...     len(read(simulate("tiny", engine="none", out=f"{place}/first").directory).rounds)
    10
    """
    if not isinstance(directory, str | Path) or not (Path(directory) / "plan.json").is_file():
        return read_run(directory)
    from feelstream.report.groups import varied

    results = load(directory)
    swept = tuple(axis.field for axis in varied(results.plan)) if results.plan.name == "sweep" else ()
    return Comparison(results, Path(directory), swept)


def _grid(over: Any) -> list[tuple[str, list[Any]]]:
    """The fields that are swept, each with its values."""
    lists = isinstance(over, Mapping) and all(
        isinstance(name, str) and not isinstance(values, str) and isinstance(values, Iterable)
        for name, values in over.items()
    )
    grid = [(name, list(values)) for name, values in over.items()] if lists else []
    if not grid or not all(values for _, values in grid):
        raise ScenarioError(
            "sweep: give at least one field, each with at least one value, as in sweep('tiny', V=[0.01, 0.1])"
        )
    return grid


def _whole(name: str, scenario: Scenario) -> str:
    """A field with its section, whichever way it was named."""
    known = {field.rpartition(".")[2]: field for field in flat(scenario.as_dict())}
    return name if "." in name else known.get(name, name)


def played(
    plan: Plan,
    out: str | Path | None,
    workers: int | None,
    executor: Executor | None,
    progress: bool,
    swept: tuple[str, ...] = (),
) -> Comparison:
    """Run what is missing of a plan. out, workers, executor, progress: as in `compare`. swept: fields of a sweep."""
    workers = None if workers is None else whole_number(f"{plan.name}: workers", workers)
    where = Path(mkdtemp(prefix="feelstream-")) if out is None else directory_of(f"{plan.name}: out", out)
    own = _threads(plan, workers) if executor is None else None
    try:
        with own or nullcontext(), plan_bar(plan.name, progress) as tell:
            results = execute(plan, where, workers=workers, executor=executor or own, progress=tell)
    except BaseException:  # an interrupt too: nobody knows of a directory that was made here
        if out is None:
            rmtree(where, ignore_errors=True)
        raise
    for sentence in failed(results):
        log.warning(sentence)
    return Comparison(results, where, swept, is_kept=out is not None)


def _threads(plan: Plan, workers: int | None) -> Executor | None:
    """Threads, where something was defined in a script or a notebook: no other process could import it."""
    here = sorted({text for arm in plan.arms for text in texts(arm.scenario.as_dict()) if text.startswith(MAIN)})
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
