"""What the commands that make many runs share: playing a plan, the report with its tables, and how they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from feelstream.errors import RunError
from feelstream.experiment import Plan, Results, comparison, dask_executor, execute, store
from feelstream.experiment.measures import HEADLINE
from feelstream.run.files import write_atomically
from feelstream.terminal import tables
from feelstream.terminal.common import err, out
from feelstream.terminal.progress import plan_bar


def play(plan: Plan, where: Path, workers: int | None = None, dask: str | None = None) -> Results:
    """Execute a plan with a progress bar, on this machine or on a Dask cluster."""
    with dask_executor(dask, workers) as executor, plan_bar(plan.name) as progress:
        return execute(plan, where, workers=workers, executor=executor, progress=progress)


def untaken(directory: Path, plan: Plan) -> Path:
    """This directory, or DIRECTORY-2, -3, … if it holds anything but runs of the same configurations."""
    place, number = directory, 1
    while place.exists() and not _holds(place, plan):
        number += 1
        place = directory.with_name(f"{directory.name}-{number}")
    return place


def _holds(directory: Path, plan: Plan) -> bool:
    """Whether the results there are of the plan's configurations."""
    try:
        stored = store.read_plan(directory / "plan.json")
    except RunError:
        return False
    return stored is not None and len(stored["arms"]) == len(plan.arms) and not store.left_out(stored, plan)


def failures(results: Results) -> list[dict[str, Any]]:
    """What failed, as JSON has it."""
    return [vars(failure) for failure in results.failures]


def tell_failures(results: Results, played: bool = True) -> None:
    """Name what failed, one line per reason, and end with code 1; nothing if all is well.

    played: whether the runs were tried just now; if not, those that are not finished yet are no failures.
    """
    lines = tables.failed(results, played)
    for line in lines:
        err.print(line, style="red", soft_wrap=True)
    if lines and played:
        err.print("the same command tries them again")
    if lines:
        raise typer.Exit(1)


def report_comparison(results: Results, where: Path, quiet: bool = False, everything: bool = False) -> dict[str, Any]:
    """Write summary.csv, curves.parquet, figures and report.html; show the leaderboard, unless quiet.

    What comes back is the comparison as JSON has it. everything: show all quantities.
    """
    from feelstream.report import write

    with err.status("drawing the report"):
        summary = comparison.summarise(results)
        write_atomically(where / "summary.csv", summary.write_csv)
        write_atomically(where / "curves.parquet", comparison.curves(results).write_parquet)
        written = write(results, where, summary=summary)
    if not quiet:
        table = Text(tables.plain(summary, HEADLINE, len(results.plan.seeds), out.width))
        table.highlight_regex(r"(?<=[a-z] )better\b", "green")
        table.highlight_regex(r"(?<=[a-z] )worse\b", "red")
        out.print(table, soft_wrap=True)
        if everything:
            out.print(f"\n{tables.everything(summary, results.plan, out.width)}", soft_wrap=True)
        figures = [where / "figures"] if written.figures else []
        for path in (where / "summary.csv", where / "curves.parquet", *figures, written.report):
            out.print(str(path), soft_wrap=True)
    return {"summary": summary.rows(named=True), "failures": failures(results), "report": str(written.report)}
