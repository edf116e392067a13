"""The command that makes the paper's figures again."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from feelstream.studies.commands import (
    DaskOption,
    JsonOption,
    SeedStartOption,
    SetOption,
    WorkersOption,
    number_option,
    play,
    report,
)
from feelstream_studies.hu2023 import paper

app = typer.Typer()


class Presets(StrEnum):
    PAPER = "paper"
    LITERAL = "literal"


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
    seeds: Annotated[int, number_option("--seeds", help="How many seeds; intervals need two or more.")] = 10,
    seed_start: SeedStartOption = 0,
    presets: Annotated[
        Presets,
        typer.Option("--presets", help="Settings that the paper leaves open: those of paper-* or of literal-*."),
    ] = Presets.PAPER,
    directory: Annotated[Path, typer.Option("--out", help="Directory of the results.")] = Path("results"),
    workers: WorkersOption = None,
    dask: DaskOption = None,
    overrides: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reproduce the paper's figures: runs, panels, curves, claims and a report."""
    specification = paper.LITERAL if presets is Presets.LITERAL else ()
    plan = paper.plan(figure, range(seed_start, seed_start + seeds), overrides or (), specification)
    results = play(plan, directory, workers, dask)
    report(results, directory, as_json=as_json)
