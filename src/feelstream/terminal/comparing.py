"""What the commands that compare policies share: the option --policy, the report, the tables in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import typer
from rich.table import Table

from feelstream.experiment import Plan, Results, comparison, statistics
from feelstream.experiment.measures import differences, tables
from feelstream.run.files import write_atomically
from feelstream.terminal.common import complete_policy, err, out
from feelstream.terminal.playing import failures

LABEL_WIDTH = 24  # columns of the terminal; labels that are longer are folded


def policy_option(left_out: str) -> Any:
    """The option --policy; left_out: what is compared without it."""
    words = "Names with commas between, or file.py:Class, either with fields as 'lyapunov(V=0.1)', or all; repeatable"
    help = f"{words}; default: {left_out}."
    return typer.Option("--policy", metavar="POLICY", help=help, autocompletion=complete_policy)


def report_comparison(results: Results, where: Path, quiet: bool = False) -> dict[str, Any]:
    """Write summary.csv, curves.parquet, figures and report.html; show the leaderboard, unless quiet.

    What comes back is the comparison as JSON has it.
    """
    from feelstream.report import write

    with err.status("drawing the report"):
        summary = comparison.summarise(results)
        write_atomically(where / "summary.csv", summary.write_csv)
        write_atomically(where / "curves.parquet", comparison.curves(results).write_parquet)
        written = write(results, where, summary=summary)
    found = {"summary": summary.rows(named=True), "failures": failures(results), "report": str(written.report)}
    if quiet:
        return found
    show(summary, results.plan)
    paths = [where / "summary.csv", where / "curves.parquet"]
    if written.figures:
        paths.append(where / "figures")
    for path in (*paths, written.report):
        out.print(str(path), markup=False, highlight=False, soft_wrap=True)
    return found


def show(summary: pl.DataFrame, plan: Plan) -> None:
    """The leaderboard in the terminal: learning, resources, and the differences against the first arm."""
    for titles, rows in tables(plan, summary):
        _print("configuration", titles, rows)
    titles, gaps = differences(plan, summary)
    if gaps:
        lines = {arm: ["\n".join(cell).replace(" [", "\n[") for cell in cells] for arm, cells in gaps.items()}
        _print(f"against {plan.arms[0].label}", titles, lines)
    many = f"mean ± half of the 95 % interval over {len(plan.seeds)} seeds; differences by seed, {statistics.TEST}"
    out.print(
        f"{many if len(plan.seeds) > 1 else 'one seed, so no intervals'}; accuracy over the last fifth of "
        "the run and averaged over the rounds; energy per device and round; ≥ (7/10): 7 of 10 seeds got there",
        style="dim",
        highlight=False,
    )


def _print(first: str, titles: Sequence[str], rows: Mapping[str, Sequence[str]]) -> None:
    """A line per arm; columns that do not fit beside the others go to a table below, so no number is cut or wrapped."""
    names = min(max(map(len, [*rows, *first.split()])), LABEL_WIDTH)
    pieces: list[list[tuple[int, int]]] = []  # number and width of each column
    left = 0
    for column, title in enumerate(titles):
        texts = [*title.split(), *(line for row in rows.values() for line in row[column].splitlines())]
        width = max(map(len, texts))
        if left < width + 2:
            pieces.append([])
            left = out.width - names - 2
        pieces[-1].append((column, width))
        left -= width + 2
    for piece in pieces:
        table = Table(box=None, header_style="bold")
        table.add_column(first, width=names, overflow="fold")
        for column, width in piece:
            table.add_column(titles[column], justify="right", width=width)
        for label, row in rows.items():
            table.add_row(label, *(row[column] for column, _ in piece))
        out.print(table, markup=False, highlight=False)
        out.print()
