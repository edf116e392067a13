"""The command that compares policies over many seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.table import Table

from feelstream import comparison, statistics
from feelstream.cli.common import ScenarioArgument, SetOption, out
from feelstream.cli.playing import DaskOption, SeedsOption, SeedStartOption, WorkersOption, play, tell_failures
from feelstream.experiment import Plan
from feelstream.files import write_atomically

app = typer.Typer()

# How a quantity is shown: its heading, the factor to that unit, decimals.
SHOWN = {
    "final_accuracy": ("accuracy, %", 100.0, 2),
    "accuracy_area": ("mean accuracy, %", 100.0, 2),
    "energy_j": ("energy, mJ", 1e3, 3),
}


@app.command()
def compare(
    scenario: ScenarioArgument,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="POLICY",
            help="name, file.py:Class, either with fields as 'lyapunov(V=0.1)', or all; repeatable.",
        ),
    ] = None,
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
    summary = comparison.summarise(results)
    write_atomically(where / "summary.csv", summary.write_csv)
    write_atomically(where / "curves.parquet", comparison.curves(results).write_parquet)
    _show(summary, plan)
    out.print(f"{where / 'summary.csv'}, {where / 'curves.parquet'}", markup=False, highlight=False, soft_wrap=True)
    tell_failures(results)


def _show(summary: pl.DataFrame, plan: Plan) -> None:
    quantities = summary["quantity"].unique(maintain_order=True).to_list()
    levels, gaps = Table(box=None, header_style="bold"), Table(box=None, header_style="bold")
    levels.add_column("arm")
    gaps.add_column(f"against {plan.arms[0].label}")
    for quantity in quantities:
        levels.add_column(SHOWN[quantity][0], justify="right")
        gaps.add_column(SHOWN[quantity][0], justify="right")
    for arm in plan.arms:
        rows = summary.filter(arm=arm.label).rows(named=True)
        levels.add_row(arm.label, *(_level(row) for row in rows))
        if arm is not plan.arms[0]:
            gaps.add_row(arm.label, *(_gap(row) for row in rows))
    out.print(levels, markup=False, highlight=False)
    if len(plan.arms) > 1:
        out.print()
        out.print(gaps, markup=False, highlight=False)
    many = f"mean ± half of the 95 % interval over {len(plan.seeds)} seeds; differences by seed, {statistics.TEST}"
    out.print(
        f"{many if len(plan.seeds) > 1 else 'one seed, so no intervals'}; accuracy at the end and averaged over the "
        "rounds; energy per device and round",
        style="dim",
        highlight=False,
    )


def _level(row: dict[str, Any]) -> str:
    _, unit, digits = SHOWN[row["quantity"]]
    if not row["n"]:
        return "–"
    half = "" if row["low"] is None else f" ± {(row['high'] - row['low']) / 2 * unit:.{digits}f}"
    return f"{row['mean'] * unit:.{digits}f}{half}"


def _gap(row: dict[str, Any]) -> str:
    _, unit, digits = SHOWN[row["quantity"]]
    if not row["pairs"]:
        return statistics.NO_SEED
    mean = f"{row['difference'] * unit:+.{digits}f}"
    if row["difference_low"] is None:
        return f"{mean}\n{row['verdict']}"
    low, high = row["difference_low"] * unit, row["difference_high"] * unit
    return f"{mean} [{low:+.{digits}f}, {high:+.{digits}f}]\n{row['verdict']}"
