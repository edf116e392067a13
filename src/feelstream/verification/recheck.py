"""The re-check from end to end."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from feelstream.columns import DEVICE_COLUMNS, OUR_EVALUATORS, REAL, ROUND_COLUMNS, Column, columns_of
from feelstream.verification import admission, decisions, deployment, energy, inputs, totals
from feelstream.verification.evaluations import Arrays
from feelstream.verification.files import Stored, arrays, check_shape, read_blocks, read_run, schema_of
from feelstream.verification.findings import Findings, Report, Stage
from feelstream.verification.rounds import Rounds, Totals
from feelstream.verification.rules import apply

RULES = (
    *deployment.RULES, *inputs.RULES, *decisions.RULES, *admission.RULES, *energy.RULES,
)  # fmt: skip
OF_THE_USER = Column(REAL, "", "a number of an evaluator of the user's own", "where not evaluated")
DECIDED = {  # what is said of the decision, by the first of these traits
    "optimal": "no allowed subset has a smaller total score",
    "lowest": "the lowest of the stored scores",
    "": "feasibility and size only; --decisions asks the policy again",
}
NOT_STORED = "not re-checked: trace level rounds stores no devices"


def verify(path: str | PathLike[str]) -> Report:
    """Recompute every decision, energy and queue step of the run in directory `path` from its files alone.

    Raises RunError if the files are missing, damaged, of another format, or of a run that is not complete.
    """
    stored = read_run(Path(path))
    traits, found = decisions.traits_of(stored), Findings({Stage.FILES: stored.files})
    # What is wrong in the files may well be 0/0 here; it is reported as a disagreement, not as a warning.
    with np.errstate(all="ignore"):
        whole = totals_of(stored, traits)
        if stored.run.trace == "full":
            _check_devices(found, whole)
        else:
            for phase, end in totals.phases(stored):
                apply(decisions.PLAN_RULES, found, whole.of_rounds(np.arange(phase.first, end), phase))
            apply(totals.COUNTS, found, whole)
            checked = (Stage.FILES, Stage.INPUTS, Stage.ROUND, Stage.EVALUATION)
            found.notes.update({stage: NOT_STORED for stage in Stage if stage not in checked})
        by_itself = (*inputs.ROUND_RULES, *totals.BY_ITSELF, *totals.of_evaluators(whole))
        apply(by_itself, found, whole)
    return Report(str(stored.directory), found.checks(), found.first, _not_checked(stored, traits))


def totals_of(stored: Stored, traits: frozenset[str]) -> Totals:
    """rounds.parquet, with the numbers of a user's own evaluators."""
    columns, path = columns_of(ROUND_COLUMNS, stored.facts), stored.directory / "rounds.parquet"
    if "deployed" not in stored.facts and not set(stored.run.learning.evaluators) <= {"test", *OUR_EVALUATORS}:
        columns |= {name: OF_THE_USER for name in schema_of(path) if name not in ROUND_COLUMNS}
    check_shape(path, columns, stored.run.rounds, f"{stored.run.rounds} rounds")
    return Totals(stored, traits, stored.run.phases[0], 1, *arrays(path, 0, columns, (stored.run.rounds,)))


def blocks(whole: Totals) -> Iterator[Rounds]:
    """The devices' rows of a run, some rounds at a time, in order."""
    stored = whole.source
    memory: dict[str, Any] = {"last": {}, "backlog_j": totals.backlog_j(stored, np.nan_to_num(whole.energy_mean_j))}
    for first, values, nulls in read_blocks(stored, columns_of(DEVICE_COLUMNS, stored.facts)):
        phase = next(phase for phase, end in totals.phases(stored) if first < end)
        part = whole.of_rounds(first + np.arange(len(values["round"])), phase)
        part.devices = Rounds(part, values, nulls, memory)
        yield part.devices
        memory["last"] = {name: column[-1] for name, column in part.devices.values.items()}


def _check_devices(found: Findings, whole: Totals) -> None:
    stored, traits = whole.source, whole.traits
    rules = (*inputs.of_columns(columns_of(DEVICE_COLUMNS, stored.facts)), *RULES)
    found.notes[Stage.DECISION] = next(said for trait, said in DECIDED.items() if not trait or trait in traits)
    run, evaluations = totals.WholeRun(stored), Arrays(stored)
    for block in blocks(whole):
        apply(rules, found, block)
        apply((*decisions.PLAN_RULES, *totals.SUMS), found, block.totals)
        evaluations.check(found, block.totals)
        if found.first is not None:
            # Later blocks hold later rounds, so the first disagreement is known.
            found.notes[Stage.WHOLE_RUN] = "not reached"
            return
        run.add(block)
    run.check(found, traits)


def _not_checked(stored: Stored, traits: frozenset[str]) -> list[str]:
    """What no computation from the stored files can tell."""
    run, full, learns = stored.run, stored.run.trace == "full", stored.run.learning.learns
    own = [name for name in run.learning.evaluators if name not in ("test", *OUR_EVALUATORS)]
    learned = "accuracy, loss, arrays of evaluators" + (f", what {' and '.join(own)} measured" if own else "")
    policy = "policy" if "ours" in traits else "user's own policy"
    said = {
        f"{learned}, beyond their range and the rounds they belong to": learns,
        "the draws: frequencies, gains and arrivals, beyond their range and what follows from them": full,
        "everything about single devices, since trace level rounds stores none": not full,
        f"the choices of the {policy}, beyond what every policy must obey": not traits & {"optimal", "lowest"},
        "who was let through and how the band was split, beyond physics": "equal" not in traits,
        "which blocks failed, beyond how often they could be sent again": full and "packet_errors" in traits,
        "what a round costs each device by the user's own rule, beyond its range": full and "own_costs" in traits,
        "the energy of computing by a user's own law, and choices that go by it": "law" not in traits,
        "the importance by a user's own metric": "ours" in traits and "metric" not in traits,
        "what devices reported to the policy, beyond what that cost them": run.slot is not None,
        "what the user's own local training does": learns and "learning.local" in run.own,
        "what the user's own server update does": learns and "learning.server" in " ".join(run.own),
        "that run.json was not rewritten together with the tables": True,
    }
    return [what for what, so in said.items() if so]
