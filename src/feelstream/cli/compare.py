"""The command that compares policies over many seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.table import Table

from feelstream import comparison, leaderboard, statistics
from feelstream.cli.common import ScenarioArgument, SetOption, err, out
from feelstream.cli.playing import DaskOption, SeedsOption, SeedStartOption, WorkersOption, play, tell_failures
from feelstream.experiment import Plan, Results
from feelstream.files import write_atomically
from feelstream.leaderboard import MEASURES, Measure

app = typer.Typer()

# What is also compared with the first arm in the terminal; summary.csv has it for every quantity.
AGAINST_FIRST = ("final_accuracy", "accuracy_area", "energy_j")


PolicyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="name, file.py:Class, either with fields as 'lyapunov(V=0.1)', or all; repeatable.",
    ),
]


@app.command()
def compare(
    scenario: ScenarioArgument,
    policies: PolicyOption = None,
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
) -> None:
    """Compare policies in pairs over many seeds; what was played before is not played again."""
    name = Path(scenario).stem if scenario.endswith(".toml") else scenario
    where = directory or Path("results") / f"compare-{name}"
    arms = comparison.arms(scenario, policies or (), overrides or (), vary or ())
    plan = Plan(f"compare {name}", arms, tuple(range(seed_start, seed_start + seeds)))
    results = play(plan, where, workers, dask)
    report_comparison(results, where)
    tell_failures(results)


def report_comparison(results: Results, where: Path) -> pl.DataFrame:
    """Write summary.csv, curves.parquet, the Pareto plot and report.html; show the leaderboard; give the summary."""
    from feelstream.report import write

    with err.status("drawing the report"):
        summary = comparison.summarise(results)
        write_atomically(where / "summary.csv", summary.write_csv)
        write_atomically(where / "curves.parquet", comparison.curves(results).write_parquet)
        written = write(results, where, summary=summary)
    show(summary, results.plan)
    for path in (where / "summary.csv", where / "curves.parquet", *written.figures, written.report):
        out.print(str(path), markup=False, highlight=False, soft_wrap=True)
    return summary


def show(summary: pl.DataFrame, plan: Plan) -> None:
    """The leaderboard in the terminal: learning, resources, and the differences against the first arm."""
    for group in ("learning", "resources"):
        measures = leaderboard.shown(summary, group)
        if not measures:
            continue
        table = _table("arm", measures)
        for arm in plan.arms:
            table.add_row(arm.label, *leaderboard.cells(summary, arm.label, measures, len(plan.seeds)))
        out.print(table, markup=False, highlight=False)
        out.print()
    if len(plan.arms) > 1:
        measures = [measure for measure in leaderboard.shown(summary) if measure.quantity in AGAINST_FIRST]
        gaps = _table(f"against {plan.arms[0].label}", measures)
        for arm in plan.arms[1:]:
            rows = {row["quantity"]: row for row in summary.filter(arm=arm.label).rows(named=True)}
            gaps.add_row(arm.label, *(_gap(rows[measure.quantity]) for measure in measures))
        out.print(gaps, markup=False, highlight=False)
    many = f"mean ± half of the 95 % interval over {len(plan.seeds)} seeds; differences by seed, {statistics.TEST}"
    out.print(
        f"{many if len(plan.seeds) > 1 else 'one seed, so no intervals'}; accuracy at the end and averaged over the "
        "rounds; energy per device and round; (7/10): over the 7 of 10 seeds that got there",
        style="dim",
        highlight=False,
    )


def _table(first: str, measures: Sequence[Measure]) -> Table:
    table = Table(box=None, header_style="bold")
    table.add_column(first)
    for measure in measures:
        table.add_column(measure.title, justify="right")
    return table


def _gap(row: dict[str, Any]) -> str:
    unit, digits = MEASURES[row["quantity"]].scale, MEASURES[row["quantity"]].digits
    if not row["pairs"]:
        return statistics.NO_SEED
    mean = f"{row['difference'] * unit:+.{digits}f}"
    if row["difference_low"] is None:
        return f"{mean}\n{row['verdict']}"
    low, high = row["difference_low"] * unit, row["difference_high"] * unit
    return f"{mean} [{low:+.{digits}f}, {high:+.{digits}f}]\n{row['verdict']}"
