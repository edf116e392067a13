"""The command that runs a study of the user's own."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from feelstream.studies import commands
from feelstream.studies.registry import study_named
from feelstream.terminal.common import JsonOption, SetOption
from feelstream.terminal.playing import DaskOption, SeedsOption, SeedStartOption, WorkersOption, play, tell_failures

app = typer.Typer()


@app.command()
def study(
    name: Annotated[
        str, typer.Argument(metavar="STUDY", help="The study: file.py:NAME, package.module:NAME, or an installed one.")
    ],
    seeds: SeedsOption = 10,
    seed_start: SeedStartOption = 0,
    overrides: SetOption = None,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    directory: Annotated[
        Path | None, typer.Option("--out", help="Directory of the results; default: results/STUDY.")
    ] = None,
    docs: Annotated[
        Path | None, typer.Option("--docs", metavar="DIR", help="Also write the study's page for the docs there.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a study of your own, as file.py:NAME or by its name, and write its report.

    Stored runs are not repeated.
    """
    found = study_named(name)
    where = directory or Path("results") / found.name
    words = ["feelstream", "study", name, "--seeds", str(seeds)]
    words += ["--seed-start", str(seed_start)] if seed_start else []
    words += [word for change in overrides or () for word in ("--set", change)]
    plan = found.plan_of(range(seed_start, seed_start + seeds), overrides or (), shlex.join(words))
    results = play(plan, where, workers, dask)
    if not results.finished:
        tell_failures(results)
    commands.report(results, where, docs, as_json, found)
    tell_failures(results)
