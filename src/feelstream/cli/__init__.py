"""The command line. Every error a user can act on is one sentence on standard error and exit code 2."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer
from rich.logging import RichHandler

from feelstream import __version__
from feelstream.cli import catalogue, flower, run
from feelstream.cli.common import err, out
from feelstream.errors import FeelstreamError

app = typer.Typer(
    help="Dynamic device scheduling for federated edge learning with streaming data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for commands in (run, catalogue, flower):
    app.add_typer(commands.app)


def main() -> None:
    """Entry point: user errors become a sentence and exit code 2."""
    log = logging.getLogger("feelstream")
    log.addHandler(RichHandler(console=err, show_path=False, show_time=False, show_level=False))
    log.setLevel(logging.INFO)
    try:
        app()
    except FeelstreamError as problem:
        err.print(f"feelstream: {problem}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        err.print("feelstream: interrupted; with --out the same command goes on where this one stopped")
        sys.exit(130)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"feelstream {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None: ...
