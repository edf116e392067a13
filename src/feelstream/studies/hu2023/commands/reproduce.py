"""The command that makes the paper's figures again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from feelstream.studies import printing
from feelstream.studies.hu2023 import paper
from feelstream.terminal.common import JsonOption, SetOption, next_command
from feelstream.terminal.playing import DaskOption, WorkersOption, play, tell_failures

app = typer.Typer()


@app.command()
def reproduce(
    figure: Annotated[
        str,
        typer.Argument(
            metavar="fig1|fig2|fig3|fig1-with-data|fig1-widths|all",
            help="Which figure to make: one of the paper's, figure 1 without empty devices or by width of arrivals, or "
            "all.",
        ),
    ],
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds; intervals need two or more.")] = 10,
    directory: Annotated[Path, typer.Option("--out", help="Directory of the results.")] = Path("results"),
    workers: WorkersOption = None,
    dask: DaskOption = None,
    overrides: SetOption = None,
    docs: Annotated[
        Path | None, typer.Option("--docs", metavar="DIR", help="Also write reproduction.md and its figures there.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make the paper's figures again: runs, panels, curves, claims and a report."""
    plan = paper.plan(figure, range(seeds), overrides or ())
    results = play(plan, directory, workers, dask)
    if not results.finished:
        tell_failures(results)
    printing.report(results, directory, docs, as_json)
    tell_failures(results)
    if not as_json:
        next_command("feelstream", "multiverse")
