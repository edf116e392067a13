"""The re-check from end to end."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np

from feelstream.columns import OUR_EVALUATORS
from feelstream.verification.changes import phases, with_backlog
from feelstream.verification.decisions import rules_for
from feelstream.verification.energy import check_downloads, check_lost, check_queues
from feelstream.verification.estimates import check_estimates
from feelstream.verification.evaluations import FILE as ARRAYS
from feelstream.verification.evaluations import ArrayChecks, check_numbers, has_arrays
from feelstream.verification.findings import Findings, Report, Stage
from feelstream.verification.importance import Case, check_importance
from feelstream.verification.inputs import check_inputs, check_round_inputs
from feelstream.verification.intact import check_files
from feelstream.verification.ours import OUR_LOCAL_TRAININGS, OUR_POLICIES, OUR_SERVER_UPDATES
from feelstream.verification.reading import Block, Table, read_blocks, read_rounds
from feelstream.verification.reliability import check_reliability
from feelstream.verification.reports import check_reports
from feelstream.verification.settings import read_settings
from feelstream.verification.stored import StoredSettings
from feelstream.verification.stored_costs import of_block
from feelstream.verification.totals import check_counts, check_rounds, check_totals
from feelstream.verification.whole_run import RunningTotals, check_whole_run

TABLES = {"full": ("rounds.parquet", "devices.parquet"), "rounds": ("rounds.parquet",)}
NOT_STORED = "not re-checked: trace level rounds stores no devices"


def verify(path: str | PathLike[str]) -> Report:
    """Recompute every decision, energy and queue step of the run in directory `path` from its files alone.

    Raises RunError if the files are missing, damaged, of another format, or of a run that is not complete.
    """
    directory = Path(path)
    settings = read_settings(directory)
    arrays = (ARRAYS,) if has_arrays(settings) and "deployed" not in settings.facts else ()
    files = check_files(directory, (*TABLES[settings.trace_level], *arrays))
    rounds = read_rounds(directory, settings)
    settings = with_backlog(settings, np.nan_to_num(rounds["energy_mean_j"]))
    found = Findings({Stage.FILES: files})
    # What is wrong in the files may well be 0/0 here; it is reported as a disagreement, not as a warning.
    with np.errstate(all="ignore"):
        if settings.trace_level == "full":
            _check_devices(found, settings, directory, rounds)
        else:
            for phase in phases(settings):
                part = _rows(rounds, phase.first, phase.end)
                rules_for(settings).planned(found, phase.settings, part, part["scheduled"])
            check_counts(found, settings, rounds)
            stored = (Stage.FILES, Stage.INPUTS, Stage.ROUND, Stage.EVALUATION)
            found.notes.update({stage: NOT_STORED for stage in Stage if stage not in stored})
        check_round_inputs(found, rounds)
        check_rounds(found, settings, rounds)
        check_numbers(found, settings, rounds)
    return Report(str(directory), found.checks(), found.first, _not_checked(settings))


def _not_checked(s: StoredSettings) -> list[str]:
    """What no computation from the stored files can tell."""
    full = s.trace_level == "full"
    policy = "user's own policy" if s.policy not in OUR_POLICIES else "policy"
    own_training = s.local_training not in OUR_LOCAL_TRAININGS
    own_update = s.server_update not in OUR_SERVER_UPDATES
    return [
        *([f"{_learned(s)}, beyond their range and the rounds they belong to"] if s.learns else []),
        "the draws: frequencies, gains and arrivals, beyond their range and what follows from them"
        if full
        else "everything about single devices, since trace level rounds stores none",
        *([f"the choices of the {policy}, beyond what every policy must obey"] if policy != "policy" else []),
        *(
            []
            if s.equal_shares
            else ["who was let through and how the band was split, by the user's own transmit, beyond physics"]
        ),
        *(["which blocks failed, beyond how often they could be sent again"] if s.costs.block_bits and full else []),
        *(["what a round costs each device by the user's own rule, beyond its range"] if s.costs.own and full else []),
        *([] if s.law.known else ["the energy of computing by a user's own law, and choices that go by it"]),
        *(["the importance by a user's own metric"] if s.metric == "own" and policy == "policy" else []),
        *(["what devices reported to the policy, beyond what that cost them"] if s.reports else []),
        *(["what the user's own local training does"] if s.learns and own_training else []),
        *(["what the user's own server update does"] if s.learns and own_update else []),
        "that run.json was not rewritten together with the tables",
    ]


def _learned(s: StoredSettings) -> str:
    """What only repeating the run can tell of the model."""
    if "deployed" in s.facts or set(s.evaluators) <= {"test"}:
        return "accuracy and loss"
    own = [name for name in s.evaluators if name not in ("test", *OUR_EVALUATORS)]
    made = "what the model says of single samples, so accuracy, loss, and losses, accuracies and recalls in arrays"
    return made + (f"; what {' and '.join(own)} measured" if own else "")


def _check_devices(found: Findings, s: StoredSettings, directory: Path, rounds: Table) -> None:
    found.notes[Stage.DECISION] = rules_for(s).note
    totals, arrays = RunningTotals(s.K), ArrayChecks(found, s, directory)
    parts = phases(s)
    for block in read_blocks(directory, s, [phase.first for phase in parts]):
        present = next(phase.settings for phase in parts if block.rounds[0] < phase.end)
        part = _rows(rounds, block.rounds[0], block.rounds[-1] + 1)
        _check_block(found, present, block, part)
        arrays.block(block, part)
        if found.first is not None:
            # Later blocks hold later rounds, so the first disagreement is known.
            found.notes[Stage.WHOLE_RUN] = "not reached"
            return
        totals.add(block)
    # E_tr counts by the probability to deliver, as if the best channel had been that much better.
    beta = totals.beta / totals.reliability_min
    least_j = np.min([rules_for(s).least_energy(totals.cheapest(phase.settings), beta) for phase in parts], axis=0)
    check_whole_run(found, s, totals, least_j)


def _check_block(found: Findings, s: StoredSettings, block: Block, rounds: Table) -> None:
    """One block of rounds through the stages of a round, in order."""
    rules, planned = rules_for(s), np.clip(rounds["planned"], 0, s.K)
    s = check_estimates(found, of_block(s, block.values), block)
    check_inputs(found, s, block, rules.most_power(s, block))
    check_reliability(found, s, block)
    rules.planned(found, s, rounds, block["scheduled"].sum(axis=1))
    rules.feasible(found, s, block, np.maximum(planned, 1)[:, None])
    importance = check_importance(found, s, block)
    case = Case(found, s, block, planned, importance)
    for rule in (rules.score, rules.decision, rules.admission, rules.energy):
        rule(case)
    check_lost(found, block)
    check_downloads(found, s, block)
    check_reports(case)
    check_queues(found, s, block)
    check_totals(found, block, rounds)


def _rows(rounds: Table, first: int, end: int) -> Table:
    """The rounds first, …, end − 1."""
    part = slice(first - 1, end - 1)
    return Table(
        rounds.rounds[part],
        {name: column[part] for name, column in rounds.values.items()},
        {name: column[part] for name, column in rounds.nulls.items()},
    )
