"""Commands on federations of real processes (extra `flower`)."""

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
    err,
    number_option,
    print_json,
)
from feelstream.terminal.progress import bar

PATIENCE_S = 60.0  # a message takes a second, and many more on a busy machine
app = typer.Typer()
flower_app = typer.Typer(help="Run federations of real processes with Flower.", no_args_is_help=True)
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
    if as_json:
        print_json(finished.summary().row(0, named=True) | {"directory": str(out)})
    else:
        tell(finished)
