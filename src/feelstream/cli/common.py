"""What the commands share: the two consoles, common options, the progress bar."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

out = Console()
err = Console(stderr=True)

ScenarioArgument = Annotated[str, typer.Argument(metavar="SCENARIO", help="A preset's name or a TOML file.")]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="SECTION.FIELD=VALUE", help="Override a field; repeatable.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, max=2**63 - 1, help="Seed of every random draw.")]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", min=1, help="CPU threads for learning; default: all cores.")
]


def progress_bar() -> Progress:
    """A bar on standard error, so that standard output stays clean for results."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=err,
    )


def plain_table() -> Table:
    return Table(show_header=False, box=None, padding=(0, 2, 0, 0))
