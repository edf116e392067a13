"""The command that finds the weight between energy and learning which a budget allows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from feelstream.errors import ScenarioError
from feelstream.experiment import tuning
from feelstream.experiment.affordable import affordable
from feelstream.experiment.statistics import LEVEL, Interval
from feelstream.quantities import QUANTITIES, Quantity, number, significant
from feelstream.run.files import make_directory, write_atomically
from feelstream.scenario.files import load
from feelstream.terminal.common import (
    JsonOption,
    PolicyOption,
    ScenarioArgument,
    SetOption,
    hint,
    next_command,
    number_option,
    out,
    print_json,
    with_policy,
)
from feelstream.terminal.playing import (
    DaskOption,
    SeedsOption,
    SeedStartOption,
    WorkersOption,
    failures,
    play,
    tell_failures,
    untaken,
)

app = typer.Typer()


@app.command()
def tune(
    scenario: ScenarioArgument,
    policy: PolicyOption = None,
    budget: Annotated[
        float | None,
        number_option(
            "--budget",
            low=float("-inf"),
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
    seeds: SeedsOption = 5,
    seed_start: SeedStartOption = 1000,
    learn: Annotated[bool, typer.Option("--learn", help="Train too, and show the accuracy of every weight.")] = False,
    overrides: SetOption = None,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Directory of the results; default: results/tune-SCENARIO, or -2, -3, … where that is taken."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find the weight (V or price) that favours importance most and keeps an energy budget over a horizon.

    Every weight is run on the same worlds. Stored runs are not repeated.
    """
    given = with_policy(overrides, policy)
    changes = [*given, *([f"system.rounds={horizon}"] if horizon else [])]
    chosen = load(scenario, changes)
    field = tuning.weight_of(chosen)
    if field is None:
        tuning.with_weight(chosen, 1.0)  # says which policies have one
    allowed = float(np.mean(chosen.system.energy_budget_j)) if budget is None else budget
    if not 0 < allowed < float("inf"):
        raise ScenarioError(f"--budget: must be a finite number of joules above 0, not {allowed:g}")
    plan = tuning.tuning_plan(chosen, _weights(weights), tuple(range(seed_start, seed_start + seeds)), learn)
    where = directory or untaken(Path("results") / f"tune-{Path(scenario).stem}", plan)
    results = play(plan, where, workers, dask)
    found = tuning.trades(results)
    table = tuning.table_of(str(field), found, allowed)
    write_atomically(where / "trade-off.csv", table.write_csv)
    from feelstream.report.drawing.figures import save
    from feelstream.report.drawing.trade_off import trade_off_figure

    pictures = where / "figures"
    make_directory(pictures)
    budget_mj = f"{allowed * QUANTITIES['energy_j'].scale:g}"
    written = save(trade_off_figure(str(field), found, allowed), pictures, f"trade-off-{budget_mj}mJ")
    best = tuning.recommended(found, allowed, more_is_cheaper=field == "price")
    if as_json:
        weight = None if best is None else best.weight
        printed = {"field": f"policy.{field}", "weight": weight, "budget_j": allowed, "rounds": chosen.system.rounds}
        printed |= {"weights": table.rows(named=True), "failures": failures(results)}
        print_json(printed | {"table": where / "trade-off.csv", "figures": written})
    else:
        _show(str(field), found, allowed)
        said = tuning.conclusion(str(field), found, best, allowed, chosen)
        out.print(said, style="bold", markup=False, highlight=False, soft_wrap=True)
        if best is None and found and (other := affordable(chosen, plan.seeds[0], allowed)):
            share = f"{significant(other.energy_j / allowed, 2)} × the budget with seed {plan.seeds[0]}"
            hint(f"within the budget: {other.options} (spends {share}); more: docs/how-to/budget.md")
        for path in (where / "trade-off.csv", *written):
            out.print(str(path), markup=False, highlight=False, soft_wrap=True)
        if best is not None:
            words = [word for change in [*changes, f"policy.{field}={best.weight:g}"] for word in ("--set", change)]
            next_command("feelstream", "run", scenario, *words)
    tell_failures(results)


def _weights(text: str) -> list[float]:
    parts = text.split(":")
    try:
        low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
    except (ValueError, IndexError):
        low = high = count = 0
    if len(parts) != 3 or not (0 < low <= high < float("inf")) or not 1 <= count <= 1000:
        raise ScenarioError(f"--weights '{text}' must read lowest:highest:count, above 0, as in 1e-6:1:13")
    return [float(f"{weight:.2e}") for weight in np.geomspace(low, high, count)]


def _show(field: str, found: list[tuning.Trade], budget_j: float) -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    learned = any(trade.accuracy for trade in found)
    shown = {name: QUANTITIES[column] for name, column in tuning.MEASURED.items() if learned or name != "accuracy"}
    for head in (field, "kept", *(quantity.column_title for quantity in shown.values())):
        table.add_column(head, justify="right")
    weights = _written([trade.weight for trade in found])
    for weight, trade in zip(weights, found, strict=True):
        cells = [_words(getattr(trade, name), quantity) for name, quantity in shown.items()]
        table.add_row(weight, "yes" if tuning.keeps(trade, budget_j) else "no", *cells)
    out.print(table, markup=False, highlight=False)
    said = f"kept: the whole {100 * LEVEL:.0f} % interval of the energy is within the budget of {_budget(budget_j)}"
    out.print(said, markup=False, highlight=False)


def _budget(budget_j: float) -> str:
    energy = QUANTITIES["energy_j"]
    return f"{number(budget_j * energy.scale, energy.decimals(budget_j * energy.scale))} {energy.unit}"


def _written(weights: list[float]) -> list[str]:
    """All with an exponent, or none."""
    plain = [f"{weight:g}" for weight in weights]
    return [f"{weight:.2e}" for weight in weights] if any("e" in text for text in plain) else plain


def _words(value: Interval | None, quantity: Quantity) -> str:
    if value is None:
        return "–"
    half = value.half_width
    mean = value.mean * quantity.scale
    digits = quantity.decimals(mean)
    margin = "" if half is None else f" ± {number(half * quantity.scale, digits)}"
    return f"{number(mean, digits)}{margin}"
