"""The command that finds the weight between energy and learning which a budget allows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from feelstream import api
from feelstream.display.quantities import QUANTITIES, significant
from feelstream.errors import ScenarioError
from feelstream.experiment import dask_executor, tuning
from feelstream.report.figures import save
from feelstream.run.files import usable_directory, write_atomically
from feelstream.scenario.files import load
from feelstream.terminal import common, playing
from feelstream.terminal.common import hint, next_command, number_option, out, print_json, typed

app = typer.Typer()


@app.command()
def tune(
    scenario: common.ScenarioArgument,
    policy: common.PolicyOption = None,
    budget: Annotated[
        float | None,
        number_option(
            "--budget",
            low=0,
            whole=False,
            metavar="JOULES",
            help="Energy per device and round to keep; default: the scenario's own.",
        ),
    ] = None,
    horizon: Annotated[
        int | None,
        number_option("--horizon", "--rounds", help="Rounds over which to keep it; default: the scenario's."),
    ] = None,
    weights: Annotated[
        str, typer.Option("--weights", metavar="LOW:HIGH:COUNT", help="Weights to try, evenly on a log scale.")
    ] = "1e-7:1:15",
    seeds: common.SeedsOption = 5,
    seed_start: common.SeedStartOption = 1000,
    learn: Annotated[bool, typer.Option("--learn", help="Train too, and show the accuracy of every weight.")] = False,
    overrides: common.SetOption = None,
    workers: common.WorkersOption = None,
    dask: common.DaskOption = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Directory of the results; default: results/tune-SCENARIO, or -2, -3, … where that is taken."
        ),
    ] = None,
    as_json: common.JsonOption = False,
) -> None:
    """Find the weight (V or price) that favours importance most and keeps an energy budget over a horizon.

    Every weight is run on the same worlds. Stored runs are not repeated.
    """
    changes = common.changes_of(overrides, policy=policy, rounds=horizon)
    chosen, tried, which = load(scenario, changes), _weights(weights), range(seed_start, seed_start + seeds)
    plan = tuning.tuning_plan(chosen, tried, which, learn)
    where = directory or playing.untaken(Path("results") / f"tune-{Path(scenario).stem}", plan)
    with dask_executor(dask, workers) as executor:
        tuned = api.tune(
            chosen, tried, budget_j=budget, seeds=which, learn=learn, out=where, workers=workers, executor=executor,
            progress=True,
        )  # fmt: skip
    results, allowed = tuned.comparison.results, tuned.budget_j
    write_atomically(where / "trade-off.csv", tuned.table().write_csv)
    budget_mj = f"{allowed * QUANTITIES['energy_j'].scale:g}"
    written = save(tuned.plot(), usable_directory(where / "figures"), f"trade-off-{budget_mj}mJ")
    if as_json:
        about = {"field": f"policy.{tuned.field}", "weight": tuned.weight, "budget_j": allowed}
        about |= {"rounds": chosen.system.rounds, "weights": tuned.table().rows(named=True)}
        about |= {"failures": playing.failures(results), "table": where / "trade-off.csv", "figures": written}
        print_json(about)
    else:
        out.print(str(tuned), soft_wrap=True)
        if tuned.weight is None and tuned.trades and (other := tuning.affordable(chosen, seed_start, allowed)):
            share = f"{significant(other.energy_j / allowed, 2)} × the budget with seed {seed_start}"
            hint(f"within the budget: {other.options} (spends {share}); more: docs/how-to/budget.md")
        for path in (where / "trade-off.csv", *written):
            out.print(str(path), soft_wrap=True)
        if tuned.weight is not None:
            found = [*changes, f"policy.{tuned.field}={tuned.weight:g}"]
            next_command("feelstream", "run", scenario, *typed("--set", found))
    if results.failures:  # tune has named them
        raise typer.Exit(1)


def _weights(text: str) -> list[float]:
    parts = text.split(":")
    try:
        low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
    except (ValueError, IndexError):
        low = high = count = 0
    if len(parts) != 3 or not (0 < low <= high < float("inf")) or not 1 <= count <= 1000:
        raise ScenarioError(f"--weights '{text}' must read lowest:highest:count, above 0, as in 1e-6:1:13")
    return tuning.evenly(low, high, count)
