"""The command line. Every error a user can act on is one sentence on standard error and exit code 2."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from feelstream import __version__, scenario_files
from feelstream.data import datasets
from feelstream.errors import FeelstreamError
from feelstream.policies import POLICIES
from feelstream.run import Run, simulate, simulate_in
from feelstream.scenario import Scenario
from feelstream.simulation import RoundRecord

app = typer.Typer(
    help="Dynamic device scheduling for federated edge learning with streaming data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Data sets: fetch them, list them.", no_args_is_help=True)
app.add_typer(data_app, name="data")
out = Console()
err = Console(stderr=True)

ScenarioArgument = Annotated[str, typer.Argument(metavar="SCENARIO", help="A preset's name or a TOML file.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.FIELD=VALUE", help="Override a field; repeatable."),
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of every random draw.")]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", min=1, help="CPU threads for learning; default: all cores.")
]


def main() -> None:
    """Entry point: user errors become a sentence and exit code 2."""
    try:
        app()
    except FeelstreamError as problem:
        err.print(f"feelstream: {problem}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        err.print("feelstream: interrupted; the same command goes on where this one stopped", style="yellow")
        sys.exit(130)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"feelstream {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None: ...


@app.command()
def run(
    scenario: ScenarioArgument,
    seed: SeedOption = 0,
    overrides: SetOption = None,
    directory: Annotated[
        Path | None, typer.Option("--out", help="Run directory; an interrupted run in it is continued.")
    ] = None,
    threads: ThreadsOption = None,
) -> None:
    """Play one scenario and say how it went."""
    settings = scenario_files.load(scenario, overrides or ())
    with _progress() as bar:
        task = bar.add_task(f"{scenario}, seed {seed}", total=settings.system.rounds, note="")

        def show(record: RoundRecord) -> None:
            bar.update(task, advance=1, note=_note(record))

        if directory is None:
            finished = simulate(settings, seed, threads=threads, progress=show)
        else:
            finished = simulate_in(
                directory,
                settings,
                seed,
                threads=threads,
                progress=show,
                resumed=lambda round: bar.update(task, completed=round, note="resumed"),
            )
        bar.update(task, completed=settings.system.rounds)
    _summary(finished, directory)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=err,
    )


def _note(record: RoundRecord) -> str:
    accuracy = f"accuracy {record.evaluation.accuracy:.1%}, " if record.evaluation else ""
    return f"{accuracy}queue {record.queue_next_j.mean() * 1e3:.2f} mJ"


def _summary(finished: Run, directory: Path | None) -> None:
    last, rounds = finished.rounds.row(-1, named=True), finished.rounds
    budget = finished.scenario.known_system(1).energy_budget_j.mean()
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    if last["accuracy"] is not None:
        table.add_row("accuracy", f"{last['accuracy']:.2%}  (loss {last['loss']:.3f})")
    table.add_row(
        "energy",
        f"{last['energy_mean_cum_j'] * 1e3:.3f} mJ per device and round, budget {budget * 1e3:.3f} mJ",
    )
    table.add_row("queue", f"mean {last['queue_mean_j'] * 1e3:.2f} mJ, largest {last['queue_max_j'] * 1e3:.2f} mJ")
    scheduled, sent = rounds["scheduled"].sum(), rounds["transmitted"].sum()
    table.add_row("devices", f"{scheduled} trained, {sent} transmitted, {scheduled - sent} dropped at admission")
    timings = finished.about["timings"]
    table.add_row("engine", f"{finished.about['engine']['name']}, {timings['total_s']:.1f} s")
    table.add_row("files", str(directory) if directory else "none kept; give --out DIR to keep them")
    out.print(table, highlight=False)


@app.command("presets")
def show_presets(
    name: Annotated[str | None, typer.Argument(help="Print this preset as a TOML file.")] = None,
    overrides: SetOption = None,
) -> None:
    """List the presets, or print one with every field and its meaning."""
    if name is None:
        _two_columns(scenario_files.presets())
        return
    described = scenario_files.presets().get(name, "")
    print(scenario_files.to_toml(scenario_files.preset(name, overrides or ()), described), end="")


@app.command("policies")
def show_policies() -> None:
    """List the scheduling policies and their fields."""
    for name in POLICIES.names():
        policy = POLICIES.lookup(name)
        out.print(f"[bold]{name}[/bold]  {(policy.__doc__ or '').strip().splitlines()[0]}", highlight=False)
        for field, about in policy.model_fields.items():
            out.print(f"    {field} = {about.default}: {about.description}", markup=False, highlight=False)


def _two_columns(rows: dict[str, str]) -> None:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for left, right in rows.items():
        table.add_row(left, right)
    out.print(table, highlight=False)


@app.command("verify")
def verify_run(
    directory: Annotated[Path, typer.Argument(help="A run directory.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Recompute a stored run from its files alone; exit code 1 if anything disagrees."""
    from feelstream.verify import verify

    report = verify(directory)
    print(json.dumps(report.as_dict(), indent=2) if as_json else report)
    if not report.ok:
        raise typer.Exit(1)


@data_app.command("get")
def data_get(name: Annotated[str, typer.Argument(help="mnist or fashion-mnist.")]) -> None:
    """Fetch a data set into the cache and check it."""
    for path in datasets.fetch(name):
        out.print(str(path), markup=False, highlight=False, soft_wrap=True)


@data_app.command("list")
def data_list() -> None:
    """Say which data sets are in the cache."""
    for name, files in datasets.present().items():
        states = {str(state) for state in files.values()}
        out.print(f"{name}: {', '.join(sorted(states))}", highlight=False)
