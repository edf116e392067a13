"""The command that makes a run. What takes a while to import comes after the first sign of life."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from feelstream.terminal.common import (
    JsonOption,
    PolicyOption,
    RoundsOption,
    ScenarioArgument,
    SeedOption,
    SetOption,
    ThreadsOption,
    err,
    with_policy,
    with_rounds,
)

app = typer.Typer()


@app.command()
def run(
    scenario: ScenarioArgument,
    policy: PolicyOption = None,
    seed: SeedOption = 0,
    rounds: RoundsOption = None,
    overrides: SetOption = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--change",
            metavar="ROUND:FIELD=VALUE",
            help="Change policy.V, policy.size or system.energy_budget_j from a round on; repeatable.",
        ),
    ] = None,
    directory: Annotated[
        Path | None, typer.Option("--out", help="Run directory; an interrupted run in it resumes.")
    ] = None,
    threads: ThreadsOption = None,
    log: Annotated[
        str | None, typer.Option("--log", metavar="tensorboard|mlflow|wandb", help="Log to this tracker too.")
    ] = None,
    log_dir: Annotated[Path, typer.Option("--log-dir", help="Where the tracker keeps its files.")] = Path("logs"),
    as_json: JsonOption = False,
) -> None:
    """Run one scenario and show the result."""
    with err.status(f"{escape(scenario)}, seed {seed}"):  # NumPy, Polars and all take half a second
        from feelstream.cli.running import play
    play(
        scenario, seed, with_rounds(with_policy(overrides, policy), rounds), changes or [],
        directory=directory, threads=threads, log=log, log_dir=log_dir, as_json=as_json,
    )  # fmt: skip
