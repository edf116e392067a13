"""One run, from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from feelstream import run as runs
from feelstream.api.progress import bar
from feelstream.errors import ScenarioError
from feelstream.run import Change, Run
from feelstream.run.callbacks import Callback, Telling
from feelstream.scenario import Scenario
from feelstream.scenario.files import load
from feelstream.scheduling import RoundRecord


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
        scenario: A preset's name, a TOML file or a Scenario.
        seed: Of every random draw.
        out: A directory to keep the run in; a run that was stopped there goes on, and one that is complete is read.
        progress: True for a bar, or a function that is given the record of each round.
        callbacks: See `Callback`.
        threads: For learning; by default one per core.
        changes: Of V, size or budget from a given round on.
        **fields: Fields of the scenario, as in `Scenario.with_`.

    >>> run = simulate("tiny", V=0.1, rounds=5, seed=3)
    >>> run
    Run(lyapunov, seed 3, 5 rounds)
    >>> run.scenario.policy.V
    0.1
    """
    settings = scenario_of(scenario, fields)
    if not isinstance(seed, Integral):
        raise ScenarioError(f"simulate: seed must be a whole number, not {seed!r}; several seeds are for compare")
    with bar(f"{settings.policy.plugin_name()}, seed {seed}", progress is True) as show:
        telling = Telling(callbacks, _shown(show, settings, progress))
        telling.start(settings, seed)
        if out is None:
            run = runs.simulate(settings, seed, changes=changes, threads=threads, progress=telling.progress)
        else:
            run = runs.simulate_in(
                out, settings, seed, changes=changes, threads=threads, progress=telling.progress,
                resumed=lambda round: telling.resumed(Path(out), round),
            )  # fmt: skip
        telling.end(run)
    return run


def scenario_of(source: str | Path | Scenario, fields: dict[str, Any]) -> Scenario:
    """A scenario with some fields changed."""
    if not isinstance(source, str | Path | Scenario):
        raise ScenarioError(f"the scenario must be a preset's name, a TOML file or a Scenario, not {source!r}")
    scenario = source if isinstance(source, Scenario) else load(source)
    return scenario.with_(**fields) if fields else scenario


def _shown(
    show: Callable[[int, int, str], None],
    settings: Scenario,
    progress: bool | Callable[[RoundRecord], None] | None,
) -> Callable[[RoundRecord], None] | None:
    if callable(progress):
        return progress
    if not progress:
        return None

    def tell(record: RoundRecord) -> None:
        note = f"accuracy {record.evaluation.accuracy:.1%}" if record.evaluation else ""
        show(record.observation.round, settings.system.rounds, note)

    return tell
