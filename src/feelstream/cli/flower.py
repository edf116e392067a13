"""Commands on Flower federations (extra `flower`): of real processes, and of an app in the world of a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from feelstream.cli.running import tell
from feelstream.errors import RunError
from feelstream.scenario import files as scenario_files
from feelstream.terminal.common import (
    JsonOption,
    RoundsOption,
    ScenarioArgument,
    SeedOption,
    SetOption,
    changes_of,
    complete_scenario,
    err,
    next_command,
    number_option,
)
from feelstream.terminal.progress import bar

PATIENCE_S = 60.0  # a message takes a second, and many more on a busy machine
app = typer.Typer()
flower_app = typer.Typer(
    help="Run a scenario or your own app with Flower.",
    no_args_is_help=True,
)
app.add_typer(flower_app, name="flower")


@flower_app.command("run")
def run(
    scenario: ScenarioArgument,
    out: Annotated[Path, typer.Option("--out", help="Run directory; an interrupted run in it resumes.")],
    nodes: Annotated[
        int | None, number_option("--nodes", help="SuperNodes, one per device; default: the scenario's devices.")
    ] = None,
    seed: SeedOption = 0,
    rounds: RoundsOption = None,
    overrides: SetOption = None,
    deadline_s: Annotated[
        float,
        number_option("--deadline-s", whole=False, metavar="SECONDS", help="Wall-clock time for a training reply."),
    ] = PATIENCE_S,
    query_timeout_s: Annotated[
        float, number_option("--query-timeout-s", whole=False, metavar="SECONDS", help="Wall-clock time for a report.")
    ] = PATIENCE_S,
    as_json: JsonOption = False,
) -> None:
    """Run a scenario through a SuperLink and SuperNodes on this machine, then stop them all."""
    from feelstream.flower.federation import run_in_federation

    settings = scenario_files.load(scenario, changes_of(overrides, rounds=rounds, devices=nodes))
    if settings.system.devices > 50:
        raise RunError(
            f"{settings.system.devices} SuperNodes are too many for one machine; give --nodes N with N up to 50"
        )
    total = settings.system.rounds
    with bar(f"{scenario}, seed {seed}") as show:
        show(0, total, "starting")
        finished = run_in_federation(
            settings, seed, out, deadline_s=deadline_s, query_timeout_s=query_timeout_s,
            progress=lambda rounds: show(rounds, total, "") if rounds else None,
            lost=lambda sentence: err.print(sentence),
        )  # fmt: skip
        show(total, total, "")
    tell(finished, out, as_json)


@flower_app.command("try")
def try_(
    app_directory: Annotated[
        Path, typer.Argument(metavar="APP_DIR", help="Directory of a Flower app, the one with its pyproject.toml.")
    ],
    scenario: Annotated[
        str,
        typer.Option(
            "--scenario",
            metavar="SCENARIO",
            help="The world: a preset's name or a TOML file.",
            autocompletion=complete_scenario,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Run directory, new or empty.")],
    name: Annotated[
        str, typer.Option("--name", help="What reports call the strategy; default: the name of the app.")
    ] = "",
    seed: SeedOption = 0,
    rounds: RoundsOption = None,
    overrides: SetOption = None,
    run_config: Annotated[
        list[str] | None,
        typer.Option("--run-config", metavar="KEY=VALUE", help="Override a setting of the app; repeatable."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run your own Flower app, unchanged, in the world of a scenario: its time, energy, channels and failures.

    The devices of the scenario are the nodes, and clients run in this process. No server is started.
    """
    from feelstream.flower.try_app import try_app

    settings = scenario_files.load(scenario, changes_of(overrides, rounds=rounds))
    finished = try_app(app_directory, settings, out, seed=seed, settings=run_config or (), name=name)
    tell(finished, out, as_json)
    if not as_json:
        next_command("feelstream", "verify", out)
