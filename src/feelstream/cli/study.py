"""The commands that run a study of the user's own, and make the report of any results again."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from feelstream.studies import commands
from feelstream.studies.registry import study_named
from feelstream.terminal import common
from feelstream.terminal.common import typed

app = typer.Typer()
DocsOption = Annotated[
    Path | None,
    typer.Option("--docs", metavar="DIR", help="Also write the study's page for the docs there, if it has one."),
]


@app.command()
def study(
    name: Annotated[
        str, typer.Argument(metavar="STUDY", help="The study: file.py:NAME, package.module:NAME, or an installed one.")
    ],
    seeds: common.SeedsOption = 10,
    seed_start: common.SeedStartOption = 0,
    overrides: common.SetOption = None,
    workers: common.WorkersOption = None,
    dask: common.DaskOption = None,
    directory: Annotated[
        Path | None, typer.Option("--out", help="Directory of the results; default: results/STUDY.")
    ] = None,
    docs: DocsOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """Run a study of your own, as file.py:NAME or by its name, and write its report.

    Stored runs are not repeated.
    """
    found = study_named(name)
    where = directory or Path("results") / found.name
    words = ["feelstream", "study", name, *typed("--seeds", [seeds])]
    words += [*typed("--seed-start", [seed_start] if seed_start else ()), *typed("--set", overrides)]
    plan = found.plan_of(range(seed_start, seed_start + seeds), overrides or (), shlex.join(words))
    commands.report(commands.play(plan, where, workers, dask), where, docs, as_json, found)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(help="Results of a study or of compare, or a run directory.")],
    docs: DocsOption = None,
    name: Annotated[
        str | None,
        typer.Option("--study", metavar="STUDY", help="The study, if it is not installed: file.py:NAME."),
    ] = None,
    as_json: common.JsonOption = False,
) -> None:
    """Rebuild the report of stored results, with the figures and claims of their study.

    For an unfinished run, such as a deployment in progress, it shows the rounds so far and goes to so-far. Damaged runs
    are named and left out, and the exit code is then 1.
    """
    from feelstream.report import results_in  # matplotlib takes a while to come
    from feelstream.run.run import SO_FAR, is_unfinished, saved_so_far

    found = study_named(name) if name else None
    if is_unfinished(directory):
        stored, directory = saved_so_far(directory), directory / SO_FAR
        commands.report(results_in(stored), directory, docs, as_json, found)
    else:
        commands.report(results_in(directory), directory, docs, as_json, found, played=False)
