"""The command that compares policies over many seeds."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.table import Table

from feelstream.cli.common import (
    JsonOption,
    ScenarioArgument,
    SetOption,
    complete_policy,
    err,
    next_command,
    out,
    print_json,
)
from feelstream.cli.playing import (
    DaskOption,
    SeedsOption,
    SeedStartOption,
    WorkersOption,
    failures,
    play,
    tell_failures,
)
from feelstream.experiment import Plan, Results, comparison, leaderboard, statistics
from feelstream.experiment.leaderboard import MEASURES, Measure
from feelstream.report.numbers import number
from feelstream.run.files import write_atomically

app = typer.Typer()

# What is also compared with the first arm in the terminal; summary.csv has it for every quantity.
AGAINST_FIRST = ("late_accuracy", "accuracy_area", "energy_j")
LABEL_WIDTH = 24  # columns of the terminal; labels that are longer are folded


def policy_option(left_out: str) -> Any:
    """The option --policy; left_out: what is compared without it."""
    words = "A name, or file.py:Class, either with fields as 'lyapunov(V=0.1)', or all; repeatable"
    help = f"{words}; default: {left_out}."
    return typer.Option("--policy", metavar="POLICY", help=help, autocompletion=complete_policy)


@app.command()
def compare(
    scenario: ScenarioArgument,
    policies: Annotated[list[str] | None, policy_option("the scenario's own")] = None,
    seeds: SeedsOption = 10,
    seed_start: SeedStartOption = 0,
    overrides: SetOption = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary", metavar="SECTION.FIELD=A,B,…", help="Every one of these values; repeatable, for a grid."
        ),
    ] = None,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    directory: Annotated[
        Path | None, typer.Option("--out", help="Directory of the results; default: results/compare-SCENARIO.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare policies in pairs over many seeds; runs that are stored are not run again."""
    name = Path(scenario).stem
    where = directory or Path("results") / f"compare-{name}"
    arms = comparison.arms(scenario, policies or (), overrides or (), vary or ())
    command = _command(scenario, policies, seeds, seed_start, overrides, vary, directory)
    plan = Plan(f"compare {name}", arms, tuple(range(seed_start, seed_start + seeds)), command)
    results = play(plan, where, workers, dask)
    found = report_comparison(results, where, quiet=as_json)
    if as_json:
        print_json(found)
    tell_failures(results)
    if not as_json:
        next_command("feelstream", "studio", where)


def _command(
    scenario: str,
    policies: list[str] | None,
    seeds: int,
    seed_start: int,
    overrides: list[str] | None,
    vary: list[str] | None,
    directory: Path | None,
) -> str:
    """The words that make the same comparison again."""
    words = ["feelstream", "compare", scenario]
    for option, values in (("--policy", policies), ("--set", overrides), ("--vary", vary)):
        words += [word for value in values or () for word in (option, value)]
    words += ["--seeds", str(seeds)]
    words += ["--seed-start", str(seed_start)] if seed_start else []
    words += ["--out", str(directory)] if directory is not None and not directory.is_absolute() else []
    return shlex.join(words)


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
    for group in ("learning", "resources"):
        measures = leaderboard.shown(summary, group)
        if not measures:
            continue
        rows = {arm.label: leaderboard.cells(summary, arm.label, measures, len(plan.seeds)) for arm in plan.arms}
        _print("arm", measures, rows)
    if len(plan.arms) > 1:
        measures = [measure for measure in leaderboard.shown(summary) if measure.quantity in AGAINST_FIRST]
        gaps: dict[str, list[str]] = {}
        for arm in plan.arms[1:]:
            found = {row["quantity"]: row for row in summary.filter(arm=arm.label).rows(named=True)}
            gaps[arm.label] = [_gap(found[measure.quantity]) for measure in measures]
        _print(f"against {plan.arms[0].label}", measures, gaps)
    many = f"mean ± half of the 95 % interval over {len(plan.seeds)} seeds; differences by seed, {statistics.TEST}"
    out.print(
        f"{many if len(plan.seeds) > 1 else 'one seed, so no intervals'}; accuracy over the last fifth of "
        "the run and averaged over the rounds; energy per device and round; ≥ (7/10): 7 of 10 seeds got there",
        style="dim",
        highlight=False,
    )


def _print(first: str, measures: Sequence[Measure], rows: Mapping[str, Sequence[str]]) -> None:
    """A line per arm; columns that do not fit beside the others go to a table below, so no number is cut or wrapped."""
    names = min(max(map(len, [*rows, *first.split()])), LABEL_WIDTH)
    pieces: list[list[tuple[int, int]]] = []  # number and width of each column
    left = 0
    for column, measure in enumerate(measures):
        texts = [*measure.title.split(), *(line for cells in rows.values() for line in cells[column].splitlines())]
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
            table.add_column(measures[column].title, justify="right", width=width)
        for label, cells in rows.items():
            table.add_row(label, *(cells[column] for column, _ in piece))
        out.print(table, markup=False, highlight=False)
        out.print()


def _gap(row: dict[str, Any]) -> str:
    unit, digits = MEASURES[row["quantity"]].scale, MEASURES[row["quantity"]].digits
    if not row["pairs"]:
        return statistics.NO_SEED
    mean = number(row["difference"] * unit, digits, signed=True)
    if row["difference_low"] is None:
        return f"{mean}\n{row['verdict']}"
    low, high = (number(row[f"difference_{end}"] * unit, digits, signed=True) for end in ("low", "high"))
    return f"{mean}\n[{low}, {high}]\n{row['verdict']}"
