"""The command that makes a run. What takes a while to import comes after the first sign of life."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from feelstream.terminal import common
from feelstream.terminal.common import err, hint, next_command, typed

app = typer.Typer()


@app.command()
def run(
    scenario: common.ScenarioArgument,
    policy: common.PolicyOption = None,
    seed: common.SeedOption = 0,
    rounds: common.RoundsOption = None,
    overrides: common.SetOption = None,
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
    threads: common.ThreadsOption = None,
    log: Annotated[
        Literal["tensorboard", "mlflow", "wandb"] | None, typer.Option("--log", help="Log to this tracker too.")
    ] = None,
    log_dir: Annotated[Path, typer.Option("--log-dir", help="Where the tracker keeps its files.")] = Path("logs"),
    as_json: common.JsonOption = False,
) -> None:
    """Run one scenario and show the result."""
    with err.status(f"{escape(scenario)}, seed {seed}"):  # NumPy, Polars and all take half a second
        from feelstream.api import simulate
        from feelstream.callbacks import LOGGERS
        from feelstream.cli.running import hint_budget, hint_nobody, tell
        from feelstream.run import Change
        from feelstream.run.run import is_unfinished
        from feelstream.scenario.files import load
    overrides, changes = common.changes_of(overrides, policy=policy, rounds=rounds), changes or []
    complete = directory is not None and (directory / "run.json").is_file() and not is_unfinished(directory)
    finished = simulate(
        load(scenario, overrides), seed, out=directory, changes=[Change.parse(text) for text in changes],
        threads=threads, progress=True, callbacks=[LOGGERS[log](log_dir)] if log else [],
    )  # fmt: skip
    if complete:
        err.print(f"{directory} holds this run already, complete; nothing was run")
    tell(finished, directory, as_json)
    if as_json:
        return
    hint_nobody(finished)
    hint_budget(finished)
    if directory is not None:
        next_command("feelstream", "report", directory)
        return
    words = [*typed("--seed", [seed] if seed else ()), *typed("--set", overrides), *typed("--change", changes)]
    hint("no files are kept; --out DIR keeps them")
    next_command("feelstream", "run", scenario, *words, "--out", f"runs/{Path(scenario).stem}")
