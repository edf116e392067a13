"""What the commands that make many runs share: their options, the report, the tables, and how they end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.text import Text

from feelstream.display.quantities import counted, meanings
from feelstream.experiment import Plan, Results, comparison, dask_executor, execute
from feelstream.experiment.measures import HEADLINE, differences, measured, tables
from feelstream.experiment.statistics import LEAST_SEEDS, TEST
from feelstream.experiment.store import NOT_YET
from feelstream.run.files import write_atomically
from feelstream.terminal.common import complete_policy, err, number_option, out
from feelstream.terminal.progress import plan_bar
from feelstream.terminal.tables import plain, text_table

WorkersOption = Annotated[int | None, number_option("--workers", help="Processes; default: one per core.")]
DaskOption = Annotated[
    str | None,
    typer.Option(
        "--dask", metavar="ADDRESS", help="Run on a Dask cluster: tcp://host:port of its scheduler, or local."
    ),
]
SeedsOption = Annotated[int, number_option("--seeds", high=100_000, help="How many seeds.")]
SeedStartOption = Annotated[int, number_option("--seed-start", low=0, high=2**62, help="The first seed.")]


def play(plan: Plan, where: Path, workers: int | None = None, dask: str | None = None) -> Results:
    """Execute a plan with a progress bar, on this machine or on a Dask cluster."""
    with dask_executor(dask, workers) as executor, plan_bar(plan.name) as progress:
        return execute(plan, where, workers=workers, executor=executor, progress=progress)


def failures(results: Results) -> list[dict[str, Any]]:
    """What failed, as JSON has it."""
    return [vars(failure) for failure in results.failures]


def tell_failures(results: Results, played: bool = True) -> None:
    """Name what failed, one line per reason, and end with code 1; nothing if all is well.

    played: whether the runs were tried just now; if not, those that are not finished yet are no failures.
    """
    reasons: dict[str, list[str]] = {}
    for failure in (each for each in results.failures if played or each.reason != NOT_YET):
        reasons.setdefault(failure.reason, []).append(f"{failure.arm}, seed {failure.seed}")
    for reason, runs in reasons.items():
        more = f" and {len(runs) - 3} more" if len(runs) > 3 else ""
        err.print(f"failed: {'; '.join(runs[:3])}{more}: {reason}", style="red", soft_wrap=True)
    if reasons and played:
        err.print("the same command tries them again")
    if reasons:
        raise typer.Exit(1)


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
        out.print(str(path), soft_wrap=True)
    return found


def show(summary: pl.DataFrame, plan: Plan) -> None:
    """What a comparison is about: accuracy, energy, energy over budget, and the verdict on the first."""
    seeds = len(plan.seeds)
    table = Text(plain(summary, HEADLINE, seeds, out.width))
    table.highlight_regex(r"\bbetter\b", "green")
    table.highlight_regex(r"\bworse\b", "red")
    out.print(table, soft_wrap=True)
    said = [f"mean ± half of the 95 % interval over {counted(seeds, 'seed')}" if seeds > 1 else "one seed: no interval"]
    if len(plan.arms) > 1 and seeds >= LEAST_SEEDS:
        said.append(f"better, worse: {TEST}, seed by seed, with Holm's correction; unclear: no difference shown")
    said += ["energy per device and round", "more: --all, docs/how-to/many.md"]
    out.print(f"\n{'; '.join(said)}", style="dim")


def show_all(summary: pl.DataFrame, plan: Plan) -> None:
    """Every quantity: learning, resources, and the differences against the first arm."""
    found = [("policy", titles, rows) for titles, rows in tables(plan, summary)]
    titles, gaps = differences(plan, summary)
    rows = {arm: ["\n".join(each).replace(" [", "\n[") for each in cells] for arm, cells in gaps.items()}
    found += [(f"against {plan.arms[0].label}", titles, rows)] if gaps else []
    for first, titles, rows in found:
        lines = [[arm, *cells] for arm, cells in rows.items()]
        out.print(f"\n{text_table([first, *titles], lines, out.width)}", soft_wrap=True)
    for headings, meaning in meanings(measured(summary)).items():
        out.print(f"{headings}: {meaning}", style="dim")
