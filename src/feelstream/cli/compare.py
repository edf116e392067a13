"""The command that compares policies over many seeds."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from feelstream.experiment import Plan, comparison
from feelstream.terminal.common import (
    JsonOption,
    RoundsOption,
    ScenarioArgument,
    SetOption,
    changes_of,
    hint,
    next_command,
    print_json,
    typed,
)
from feelstream.terminal.playing import (
    DaskOption,
    SeedsOption,
    SeedStartOption,
    WorkersOption,
    play,
    policy_option,
    report_comparison,
    tell_failures,
)

app = typer.Typer()


@app.command()
def compare(
    scenario: ScenarioArgument,
    policies: Annotated[list[str] | None, policy_option("the scenario's own")] = None,
    seeds: SeedsOption = 10,
    seed_start: SeedStartOption = 0,
    rounds: RoundsOption = None,
    overrides: SetOption = None,
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", metavar="FIELD=A,B,…", help="Try each of these values; repeat it for a grid."),
    ] = None,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    directory: Annotated[
        Path | None, typer.Option("--out", help="Directory of the results; default: results/compare-SCENARIO.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show every quantity.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare policies in pairs over many seeds; stored runs are not repeated."""
    name, overrides = Path(scenario).stem, changes_of(overrides, rounds=rounds)
    where = directory or Path("results") / f"compare-{name}"
    arms = comparison.arms(scenario, policies or (), overrides, vary or ())
    words = [  # that make the same comparison again
        "feelstream", "compare", scenario,
        *typed("--policy", policies), *typed("--set", overrides), *typed("--vary", vary), *typed("--seeds", [seeds]),
        *typed("--seed-start", [seed_start] if seed_start else ()),
        *typed("--out", [directory] if directory is not None and not directory.is_absolute() else ()),
    ]  # fmt: skip
    plan = Plan(f"compare {name}", arms, tuple(range(seed_start, seed_start + seeds)), shlex.join(words))
    results = play(plan, where, workers, dask)
    found = report_comparison(results, where, quiet=as_json, everything=everything)
    if as_json:
        print_json(found)
    tell_failures(results)
    if not as_json:
        if find_spec("nicegui") is not None:
            next_command("feelstream", "studio", where)
        else:
            hint(f"next: open {found['report']} in a browser")
