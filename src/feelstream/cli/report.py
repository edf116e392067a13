"""The command that makes the report of any results again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from feelstream.terminal.common import JsonOption

app = typer.Typer()


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(help="Results of reproduce or compare, or a run directory.")],
    docs: Annotated[
        Path | None,
        typer.Option("--docs", metavar="DIR", help="Also write the study's page for the docs there, if it has one."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make the report of stored results again, with the figures and claims of their study."""
    from feelstream.report import results_in
    from feelstream.studies import telling

    telling.report(results_in(directory), directory, docs, as_json)
