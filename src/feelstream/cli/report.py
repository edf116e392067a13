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
    """Make the report of stored results again, with the figures and claims of their study."""
    from feelstream.report import results_in
    from feelstream.studies import printing
    from feelstream.studies.registry import study_named

    study = study_named(name) if name else None
    printing.report(results_in(directory), directory, docs, as_json, study)
