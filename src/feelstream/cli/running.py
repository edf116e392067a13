"""What is told of a run that a command has made."""

from __future__ import annotations

from pathlib import Path

from feelstream.display.quantities import significant
from feelstream.experiment.tuning import affordable
from feelstream.run import Run
from feelstream.terminal.common import hint, out, print_json

TOLERANCE = 0.05  # of the budget: a run that is so little above it needs no hint


def tell(finished: Run, directory: Path | None, as_json: bool) -> None:
    """What `print(run)` prints; as JSON the row of its summary, and where it is."""
    if as_json:
        print_json(finished.summary().row(0, named=True) | {"directory": None if directory is None else str(directory)})
    else:
        out.print(str(finished), soft_wrap=True)


def hint_nobody(finished: Run) -> None:
    """Where nobody trained at all: why not the device that held the most in the end, as an example."""
    if finished.rounds["scheduled"].sum() or finished.devices is None:
        return
    last = finished.devices.filter(round=len(finished.rounds))
    device = int(last["device"][int(last["stored"].arg_max() or 0)])
    hint(f"nobody trained in any round. {finished.explain(len(finished.rounds), device).text}")


def hint_budget(finished: Run) -> None:
    """Where more than the budget was spent: a change that keeps it, if one was found. Where no device ever spent more
    than its budget in a round: that the budget, and what weighs energy against learning, changed nothing.
    """
    spent, budget = float(finished.rounds["energy_mean_cum_j"][-1]), finished.budget_j
    if finished.rounds["queue_max_j"].max() == 0:
        hint("energy: the budget never binds: in no round did a device spend more than it, so no queue rose above 0")
    if budget <= 0 or spent <= (1 + TOLERANCE) * budget:
        return
    hint(f"energy: {significant(spent / budget, 3)} × the budget; why: docs/how-to/budget.md")
    found = affordable(finished.scenario, finished.seed, budget)
    if found is not None:
        sent = int(finished.rounds["transmitted"].sum())
        hint(
            f"within the budget: {found.options} (spends {significant(found.energy_j / budget, 2)} × the budget, with "
            f"{found.transmitted} updates in place of {sent})"
        )
