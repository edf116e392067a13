"""One run, from Python: play it, check it, and ask how good it could have been."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from feelstream import run as runs
from feelstream.api.arguments import check_places, directory_of, scenario_of, whole_number
from feelstream.display.quantities import QUANTITIES
from feelstream.errors import RunError, ScenarioError
from feelstream.experiment.hindsight import Bound, bound_of
from feelstream.loop.round import RoundRecord
from feelstream.run import Change, Run
from feelstream.run.callbacks import Callback
from feelstream.scenario import Scenario
from feelstream.terminal.progress import bar
from feelstream.verification import Report
from feelstream.verification import verify as verify_files

Each = TypeVar("Each")


def simulate(
    scenario: str | Path | Scenario,
    seed: int = 0,
    *,
    out: str | Path | None = None,
    progress: bool | Callable[[RoundRecord], None] | None = False,
    callbacks: Sequence[Callback] = (),
    threads: int | None = None,
    changes: Iterable[Change] = (),
    **fields: Any,
) -> Run:
    """Run a scenario to its end.

    Args:
        scenario: A preset's name (`presets`), a TOML file or a Scenario.
        seed: Of every random draw.
        out: A directory to keep the run in; a run that was stopped there goes on, and one that is complete is read.
        progress: True for a bar, or a function that is given the record of each round.
        callbacks: See `Callback`.
        threads: For learning; by default one per core.
        changes: Of V, size or budget from a given round on, as in `[Change(12, "V", 0.2)]`.
        **fields: Fields of the scenario, as in `Scenario.with_`.

    >>> run = simulate("tiny", V=0.1, rounds=5, seed=3)
    >>> run
    Run(lyapunov, seed 3, 5 rounds)
    >>> run.scenario.policy.V
    0.1
    """
    check_places("simulate", fields)
    settings = scenario_of(simulate, scenario, fields)
    seed = whole_number("simulate: seed", seed, 0, "; several seeds are for compare")
    threads = None if threads is None else whole_number("simulate: threads", threads)
    out = None if out is None else directory_of("simulate: out", out)
    changes = _checked(changes, Change, "changes", "Change(12, 'V', 0.2)")
    callbacks = _checked(callbacks, Callback, "callbacks", "OpenMetrics()")
    with bar(f"{settings.policy.plugin_name()}, seed {seed}", progress is True) as show:
        for callback in callbacks:
            callback.on_start(settings, seed)
        how: dict[str, Any] = {"changes": changes, "threads": threads, "callbacks": callbacks}
        if callable(progress):
            how["progress"] = progress
        elif progress:
            how["progress"] = lambda record: show(record.observation.round, settings.system.rounds, note(record))
        run = runs.simulate(settings, seed, **how) if out is None else runs.simulate_in(out, settings, seed, **how)
        for callback in callbacks:
            callback.on_end(run)
    return run


def _checked(given: Any, kind: type[Each], name: str, example: str) -> list[Each]:
    found = list(given) if isinstance(given, Iterable) else [given]
    if all(isinstance(each, kind) for each in found):
        return found
    raise ScenarioError(f"simulate: {name} must be a list of {kind.__name__} objects, as in [{example}]")


def note(record: RoundRecord) -> str:
    """What a bar tells of a round."""
    tested = record.measured.numbers.get("accuracy")
    accuracy = "" if tested is None else f"accuracy {QUANTITIES['accuracy'].text(tested)}, "
    return f"{accuracy}queue {QUANTITIES['queue_mean_j'].text(record.queue_next_j.mean())}"


def verify(run: Run | str | Path) -> Report:
    """Recompute every decision, energy and queue step of a run from its files alone, with formulas of its own.

    Args:
        run: Its directory, or the run itself; one that is kept nowhere is written to a directory for the time being.

    Returns:
        What was checked; `ok` says whether all of it agrees, and `disagreement` is the first that does not.

    >>> from feelstream import simulate
    >>> verify(simulate("tiny", rounds=3, engine="none")).ok
    True
    """
    if isinstance(run, Run) and run.directory is None:
        with TemporaryDirectory(prefix="feelstream-") as place:
            return replace(verify_files(run.save(Path(place) / "run")), path=repr(run))
    path = run.directory if isinstance(run, Run) else run
    if not isinstance(path, str | Path):
        raise RunError(f"verify: give a run or its directory, as in verify('runs/first'), not {path!r:.60}")
    return verify_files(path)


def bound(run: Run | str | Path) -> Bound:
    """A proven upper bound on the fresh data that any schedule could have used in this run, and its gap to that.

    Args:
        run: A run with `data.fresh = per_round` and `data.eligible = any` that kept its table of devices, or its
            directory.

    >>> from feelstream import simulate
    >>> found = bound(simulate("tiny", fresh="per_round", eligible="any", engine="none"))
    >>> 0 <= found.gap <= 1
    True
    """
    return bound_of(run if isinstance(run, Run) else runs.read(run))
