"""The command that compares policies over many seeds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import polars as pl
import typer
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from feelstream import comparison, statistics
from feelstream.cli.common import ScenarioArgument, SetOption, err, out
from feelstream.experiment import Plan, Progress, Results, dask_executor, execute
from feelstream.files import write_atomically

app = typer.Typer()

WorkersOption = Annotated[int | None, typer.Option("--workers", min=1, help="Processes; default: one per core.")]
DaskOption = Annotated[
    str | None,
    typer.Option(
        "--dask", metavar="ADDRESS", help="Play on a Dask cluster: tcp://host:port of its scheduler, or local."
    ),
]
SeedsOption = Annotated[int, typer.Option("--seeds", min=1, help="How many seeds.")]
SeedStartOption = Annotated[int, typer.Option("--seed-start", min=0, help="The first seed.")]
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


def play(plan: Plan, where: Path, workers: int | None = None, dask: str | None = None, **more: Any) -> Results:
    """Execute a plan with a progress bar, on this machine or on a Dask cluster."""
    with dask_executor(dask, workers) if dask else nullcontext() as executor, run_bar(plan.name) as progress:
        return execute(plan, where, workers=workers, executor=executor, progress=progress, **more)


def tell_failures(results: Results) -> None:
    """Name what failed, one line per reason, and end with code 1; nothing if all is well."""
    reasons: dict[str, list[str]] = {}
    for failure in results.failures:
        reasons.setdefault(failure.reason, []).append(f"{failure.arm}, seed {failure.seed}")
    for reason, runs in reasons.items():
        more = f" and {len(runs) - 3} more" if len(runs) > 3 else ""
        err.print(f"failed: {'; '.join(runs[:3])}{more}: {reason}", style="red", markup=False, soft_wrap=True)
    if reasons:
        err.print("the same command tries them again", highlight=False)
        raise typer.Exit(1)


@contextmanager
def run_bar(title: str) -> Iterator[Any]:
    """A bar on standard error that counts rounds and tells runs, rounds per second and the time left."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"), TimeRemainingColumn())
    with Bar(*columns, console=err) as bar:
        task, start = bar.add_task(title, total=None, note=""), monotonic()

        def show(state: Progress) -> None:
            speed = state.rounds_done / max(monotonic() - start, 1e-9)
            failed = f", {state.runs_failed} failed" if state.runs_failed else ""
            note = f"{state.runs_done}/{state.runs} runs{failed}, {speed:.0f} rounds/s"
            bar.update(task, total=max(state.rounds, 1), completed=state.rounds_done if state.rounds else 1, note=note)

        yield show


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
