"""The command that judges the paper's claims on seeds that nothing was chosen with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from feelstream.experiment import Plan, Results
from feelstream.studies.hu2023.confirmation import playing, table
from feelstream.studies.hu2023.confirmation.candidates import (
    CANDIDATES,
    SEEDS,
    Specified,
    figures,
    widths,
    without_empty,
)
from feelstream.studies.hu2023.confirmation.finalists import finalists
from feelstream.terminal.common import JsonOption, out, print_json
from feelstream.terminal.numbers import number_option
from feelstream.terminal.playing import DaskOption, WorkersOption, play, tell_failures

app = typer.Typer()


@app.command()
def confirm(
    seeds: Annotated[
        int,
        number_option(
            "--seeds",
            low=0,
            high=len(SEEDS),
            help="Make the runs that the table lacks for this many seeds; 0: only write.",
        ),
    ] = len(SEEDS),
    file: Annotated[Path, typer.Option("--table", help="The table of all runs; it grows as they finish.")] = Path(
        "docs/results/confirmation.csv"
    ),
    directory: Annotated[Path, typer.Option("--out", help="Directory of the runs.")] = Path("results/confirmation"),
    workers: WorkersOption = None,
    dask: DaskOption = None,
    docs: Annotated[
        Path | None, typer.Option("--docs", metavar="DIR", help="Also write reproduction.md and its figures there.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Judge the paper's claims on untouched seeds; runs in the table are not repeated."""

    def played(plan: Plan) -> Results:
        return play(plan, directory, workers, dask)

    first, chosen = CANDIDATES[0], (CANDIDATES[0], CANDIDATES[2])
    wanted: list[tuple[Sequence[Specified], list[str]]] = [
        (CANDIDATES, figures()),
        ((first,), widths()),
        (chosen, without_empty()),
    ]
    wanted += [((each,), each.arms) for each in finalists(file.parent)]
    for candidates, labels in wanted:
        for results in playing.confirm(file, candidates, labels, SEEDS[:seeds], played):
            tell_failures(results)
    from feelstream.studies.hu2023.confirmation import evidence, writing  # matplotlib takes a while to come

    found = evidence.confirmed(table.read(file), CANDIDATES)
    written = writing.write(file, docs) if docs is not None else None
    if as_json:
        claims = {str(each.candidate): [finding.as_dict() for finding in each.findings] for each in found}
        print_json({"claims": claims, "table": str(file), "docs": written and str(written)})
        return
    out.print(writing.finding(found) or "no specification has two seeds yet", markup=False, highlight=False)
    for name, path in (("table", file), ("docs", written)):
        if path is not None:
            out.print(f"{name:8} {path}", markup=False, highlight=False, soft_wrap=True)
