"""The command that makes the report of any results again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from feelstream.terminal.common import JsonOption

app = typer.Typer()


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(help="Results of a study or of compare, or a run directory.")],
    docs: Annotated[
        Path | None,
        typer.Option("--docs", metavar="DIR", help="Also write the study's page for the docs there, if it has one."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--study", metavar="STUDY", help="The study, if it is not installed: file.py:NAME."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Rebuild the report of stored results, with the figures and claims of their study.

    For an unfinished run, such as a deployment in progress, it shows the rounds so far and goes to so-far. Damaged runs
    are named and left out, and the exit code is then 1.
    """
    from feelstream.report import results_in
    from feelstream.run.run import SO_FAR, is_unfinished, saved_so_far
    from feelstream.studies import commands
    from feelstream.studies.registry import study_named
    from feelstream.terminal.playing import tell_failures

    study = study_named(name) if name else None
    if is_unfinished(directory):
        stored, directory = saved_so_far(directory), directory / SO_FAR
        commands.report(results_in(stored), directory, docs, as_json, study)
        return
    results = results_in(directory)
    if not results.finished:
        tell_failures(results, played=False)
    commands.report(results, directory, docs, as_json, study)
    tell_failures(results, played=False)
