"""The command that says how far a run is from the best schedule in hindsight."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from feelstream.terminal.common import JsonOption, out, plain_table, print_json

app = typer.Typer()


@app.command("bound")
def bound(
    directory: Annotated[Path, typer.Argument(help="The run directory.")],
    as_json: JsonOption = False,
) -> None:
    """Bound what the best schedule in hindsight could have gained in a stored run."""
    from feelstream.experiment.hindsight import bound_of
    from feelstream.run import read

    run = read(directory)
    found = bound_of(run)
    if as_json:
        print_json(
            {
                "gained": found.gained,
                "bound_within_budget": found.within_budget,
                "bound_with_its_energy": found.with_its_energy,
                "gap": found.gap,
                "devices_over_budget": found.devices_over_budget,
            }
        )
        return
    table = plain_table()
    over = found.devices_over_budget
    rows = (
        (f"{run.scenario.policy.plugin_name()}, fresh data scheduled (sum of amounts)", f"{found.gained:.2f}"),
        ("at most, with the energy that each device spent here", f"{found.with_its_energy:.2f}"),
        ("gap", f"{100 * found.gap:.1f} %"),
        ("at most, within the budgets of the scenario", f"{found.within_budget:.2f}"),
        ("devices over their budget", f"{over} of {run.scenario.system.devices}"),
    )
    for row in rows:
        table.add_row(*row)
    out.print(table, highlight=False, markup=False)
