"""The command that compares policies over many seeds."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from feelstream.experiment import Plan, comparison
from feelstream.terminal import common, playing
from feelstream.terminal.common import hint, next_command, print_json, typed

app = typer.Typer()


@app.command()
def compare(
    scenario: common.ScenarioArgument,
    policies: Annotated[list[str] | None, common.policy_option("the scenario's own")] = None,
    seeds: common.SeedsOption = 10,
    seed_start: common.SeedStartOption = 0,
    rounds: common.RoundsOption = None,
    overrides: common.SetOption = None,
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", metavar="FIELD=A,B,…", help="Try each of these values; repeat it for a grid."),
    ] = None,
    workers: common.WorkersOption = None,
    dask: common.DaskOption = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Directory of the results; default: results/compare-SCENARIO, or -2, -3, … where "
            "that holds another comparison.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show every quantity.")] = False,
    as_json: common.JsonOption = False,
) -> None:
    """Compare policies in pairs over many seeds; stored runs are not repeated."""
    name, overrides = Path(scenario).stem, common.changes_of(overrides, rounds=rounds)
    words = [  # that make the same comparison again
        "feelstream", "compare", scenario,
        *typed("--policy", policies), *typed("--set", overrides), *typed("--vary", vary), *typed("--seeds", [seeds]),
        *typed("--seed-start", [seed_start] if seed_start else ()),
        *typed("--out", [directory] if directory is not None and not directory.is_absolute() else ()),
    ]  # fmt: skip
    arms = comparison.arms(scenario, policies or (), overrides, vary or ())
    plan = Plan(f"compare {name}", arms, tuple(range(seed_start, seed_start + seeds)), shlex.join(words))
    where = directory or playing.untaken(Path("results") / f"compare-{name}", plan)
    results = playing.play(plan, where, workers, dask)
    found = playing.report_comparison(results, where, quiet=as_json, everything=everything)
    if as_json:
        print_json(found)
    elif not everything:
        hint("more: --all, docs/how-to/many.md")
    playing.tell_failures(results)
    if not as_json and find_spec("nicegui") is not None:
        next_command("feelstream", "studio", where)
    elif not as_json:
        hint(f"next: open {found['report']} in a browser")
