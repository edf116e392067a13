"""A run as the command makes it: with a progress bar, and what it came to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from feelstream.api import simulate
from feelstream.callbacks import logger
from feelstream.experiment.affordable import affordable
from feelstream.quantities import significant
from feelstream.run import Change, Run
from feelstream.run.run import is_unfinished
from feelstream.scenario import files as scenario_files
from feelstream.terminal.common import err, hint, next_command, out, print_json

TOLERANCE = 0.05  # of the budget: a run that is so little above it needs no hint


def play(
    scenario: str,
    seed: int,
    overrides: Sequence[str],
    changes: Sequence[str],
    *,
    directory: Path | None,
    threads: int | None,
    log: str | None,
    log_dir: Path,
    as_json: bool,
) -> None:
    """Run one scenario and show the result."""
    settings = scenario_files.load(scenario, overrides)
    changed = [Change.parse(text) for text in changes]
    callbacks = [logger(log, log_dir)] if log else []
    complete = directory is not None and (directory / "run.json").is_file() and not is_unfinished(directory)
    finished = simulate(
        settings, seed, out=directory, changes=changed, threads=threads, progress=True, callbacks=callbacks
    )
    if complete:
        err.print(f"{directory} holds this run already, complete; nothing was run", markup=False, highlight=False)
    if as_json:
        print_json(finished.summary().row(0, named=True) | {"directory": str(directory) if directory else None})
        return
    tell(finished)
    _hint_nobody(finished)
    _hint_budget(finished)
    if directory is not None:
        next_command("feelstream", "report", directory)
    else:
        words = [word for override in overrides for word in ("--set", override)]
        words += [word for change in changes for word in ("--change", change)]
        seeded = ["--seed", str(seed)] if seed else []
        hint("no files are kept; --out DIR keeps them")
        next_command("feelstream", "run", scenario, *seeded, *words, "--out", f"runs/{Path(scenario).stem}")


def tell(finished: Run) -> None:
    """What `print(run)` prints."""
    out.print(str(finished), markup=False, highlight=False, soft_wrap=True)


def _hint_nobody(finished: Run) -> None:
    """Where nobody trained at all: why not the device that held the most in the end, as an example."""
    if finished.rounds["scheduled"].sum() or finished.devices is None:
        return
    last = finished.devices.filter(round=len(finished.rounds))
    device = int(last["device"][int(last["stored"].arg_max() or 0)])
    hint(f"nobody trained in any round. {finished.explain(len(finished.rounds), device).text}")


def _hint_budget(finished: Run) -> None:
    """Where more than the budget was spent: a change that keeps it, if one was found."""
    spent, budget = float(finished.rounds["energy_mean_cum_j"][-1]), finished.budget_j
    if budget <= 0 or spent <= (1 + TOLERANCE) * budget:
        return
    hint(f"energy: {significant(spent / budget, 3)} × the budget; why: docs/how-to/budget.md")
    found = affordable(finished.scenario, finished.seed, budget)
    if found is not None:
        sent = int(finished.rounds["transmitted"].sum())
        hint(
            f"within the budget: {found.options} (spends {significant(found.energy_j / budget, 2)} × the budget, with "
            f"{found.transmitted} updates in place of {sent})"
        )
