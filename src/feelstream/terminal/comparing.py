"""What the commands that compare policies share: the option --policy, the report, the tables in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import typer
from rich.table import Table
from rich.text import Text

from feelstream.experiment import Plan, Results, comparison, statistics
from feelstream.experiment.measures import (
    HEADLINE,
    JUDGED,
    by_arm,
    cell,
    differences,
    judgement,
    measured,
    tables,
)
from feelstream.quantities import QUANTITIES, counted, meanings
from feelstream.run.files import write_atomically
from feelstream.terminal.common import complete_policy, err, out
from feelstream.terminal.playing import failures

LABEL_WIDTH = 24  # columns of the terminal; labels that are longer are folded
LEAST_WIDTH = 12  # to which they are folded, where that keeps a table in one piece


def policy_option(left_out: str) -> Any:
    """The option --policy; left_out: what is compared without it."""
    words = "Comma-separated names or file.py:Class, with fields as in 'lyapunov(V=0.1)', or all; repeatable"
    help = f"{words}; default: {left_out}."
    return typer.Option("--policy", metavar="POLICY", help=help, autocompletion=complete_policy)


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
    found = {"summary": summary.rows(named=True), "failures": failures(results), "report": str(written.report)}
    if quiet:
        return found
    show(summary, results.plan)
    if everything:
        show_all(summary, results.plan)
    paths = [where / "summary.csv", where / "curves.parquet"]
    if written.figures:
        paths.append(where / "figures")
    for path in (*paths, written.report):
        out.print(str(path), markup=False, highlight=False, soft_wrap=True)
    return found


COLOURS = {"better": "green", "worse": "red", "unclear": "", "": "dim"}


def show(summary: pl.DataFrame, plan: Plan) -> None:
    """What a comparison is about, in 80 columns: accuracy, energy, energy over budget, and the verdict on the first."""
    rows, seeds = by_arm(summary), len(plan.seeds)
    shown = [quantity for quantity in measured(summary) if quantity.name in HEADLINE]
    first, compared = plan.arms[0].label, len(plan.arms) > 1
    against = f"against {first}" if len(first) <= LABEL_WIDTH // 2 else "against the first"
    titles = [*(quantity.column_title for quantity in shown), *([against] if compared else [])]
    lines: dict[str, list[str | Text]] = {}
    for arm in plan.arms:
        own = rows[arm.label]
        words = [word for name in JUDGED if arm.label != first and (word := _judged(own.get(name)))]
        lines[arm.label] = [
            *(_short(own[q.name], seeds) for q in shown),
            *([Text("\n").join(words)] if compared else []),
        ]
    _print("policy", titles, lines, left=len(titles) - compared)
    said = [f"mean ± half of the 95 % interval over {counted(seeds, 'seed')}" if seeds > 1 else "one seed: no interval"]
    if compared and seeds >= statistics.LEAST_SEEDS:
        said.append(
            f"better, worse: {statistics.TEST}, seed by seed, with Holm's correction; unclear: no difference shown"
        )
    elif compared:
        said.append(f"fewer than {statistics.LEAST_SEEDS} seeds: no verdict")
    said += ["energy per device and round", "more: --all, docs/how-to/many.md"]
    out.print("; ".join(said), style="dim", highlight=False)


def _short(row: dict[str, Any], seeds: int) -> str:
    """The cell of a quantity; a ratio to the budget without its interval, which the energy beside it has."""
    text = cell(row, seeds)
    return text.partition(" ±")[0] if row["quantity"] == "energy_over_budget" else text


def _judged(row: dict[str, Any] | None) -> Text | None:
    if row is None:
        return None
    word, name = judgement(row), QUANTITIES[row["quantity"]].heading.partition(",")[0]
    return Text(f"{name} {word}" if word else f"{name}: {'–' if row['pairs'] else statistics.NO_SEED}", COLOURS[word])


def show_all(summary: pl.DataFrame, plan: Plan) -> None:
    """Every quantity: learning, resources, and the differences against the first arm."""
    for titles, rows in tables(plan, summary):
        _print("policy", titles, rows)
    titles, gaps = differences(plan, summary)
    if gaps:
        lines = {arm: ["\n".join(cell).replace(" [", "\n[") for cell in cells] for arm, cells in gaps.items()}
        _print(f"against {plan.arms[0].label}", titles, lines)
    for headings, meaning in meanings(measured(summary)).items():
        out.print(f"{headings}: {meaning}", style="dim", highlight=False, markup=False)


def _print(
    first: str, titles: Sequence[str], rows: Mapping[str, Sequence[str | Text]], left: int | None = None
) -> None:
    """A line per arm; columns that do not fit beside the others go to a table below, so no number is cut or wrapped.

    left: the column from which on words are shown, not numbers.
    """
    widths = [_width(title, [str(row[column]) for row in rows.values()]) for column, title in enumerate(titles)]
    beside = out.width - 2 - sum(width + 2 for width in widths)  # for the names, with all columns in one table
    names = min(
        max(map(len, [*rows, *first.split()])), min(beside, LABEL_WIDTH) if beside >= LEAST_WIDTH else LABEL_WIDTH
    )
    pieces: list[list[tuple[int, int]]] = []  # number and width of each column
    room = 0
    for column, width in enumerate(widths):
        if room < width + 2:
            pieces.append([])
            room = out.width - names - 2
        pieces[-1].append((column, width))
        room -= width + 2
    for piece in pieces:
        table = Table(box=None, header_style="bold")
        table.add_column(first, width=names, overflow="fold")
        for column, width in piece:
            words = left is not None and column >= left
            table.add_column(titles[column], justify="left" if words else "right", width=width)
        for label, row in rows.items():
            table.add_row(label, *(row[column] for column, _ in piece))
        out.print(table, markup=False, highlight=False)
        out.print()


def _width(title: str, texts: Sequence[str]) -> int:
    """Of a column in which no number is wrapped, and no word of its title."""
    heads = title.replace(" / ", "_/ ").split()  # a stroke stays with the word before it
    return max(map(len, [*heads, *(line for text in texts for line in text.splitlines())]))
