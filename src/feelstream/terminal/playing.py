"""What the commands that make many runs share: their options, and how they end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from feelstream.experiment import Plan, Results, dask_executor, execute
from feelstream.experiment.store import NOT_YET
from feelstream.terminal.common import err, number_option
from feelstream.terminal.progress import plan_bar

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


def failures(*all_results: Results) -> list[dict[str, Any]]:
    """What failed, as JSON has it."""
    return [vars(failure) for results in all_results for failure in results.failures]


def tell_failures(results: Results, played: bool = True) -> None:
    """Name what failed, one line per reason, and end with code 1; nothing if all is well.

    played: whether the runs were tried just now; if not, those that are not finished yet are no failures.
    """
    reasons: dict[str, list[str]] = {}
    for failure in (each for each in results.failures if played or each.reason != NOT_YET):
        reasons.setdefault(failure.reason, []).append(f"{failure.arm}, seed {failure.seed}")
    for reason, runs in reasons.items():
        more = f" and {len(runs) - 3} more" if len(runs) > 3 else ""
        err.print(f"failed: {'; '.join(runs[:3])}{more}: {reason}", style="red", markup=False, soft_wrap=True)
    if reasons and played:
        err.print("the same command tries them again", highlight=False)
    if reasons:
        raise typer.Exit(1)
