"""Reports before scheduling: who may have answered, and what each answer cost."""

from __future__ import annotations

import numpy as np

from feelstream.verification.computing import energy_j
from feelstream.verification.findings import RELATIVE, Array, Stage, close
from feelstream.verification.formulas import computing_energy_j, sending_time_s
from feelstream.verification.importance import Case
from feelstream.verification.ours import ASKS_EVERYONE
from feelstream.verification.reading import Block
from feelstream.verification.stored import StoredSettings


def answered(block: Block) -> Array:
    """Who paid for a report. [R, K]"""
    return block["e_report_j"] > 0


def _sending_s(s: StoredSettings, block: Block) -> Array:
    """b/R(K, |g|²): everyone has the K-th part of the band."""
    assert s.reports is not None
    return sending_time_s(s, s.K, block["gain"] / block["beta"]) * (s.reports.bits / s.update_bits)


def check_reports(case: Case) -> None:
    """E_report = E_cmp(c_r) + P·b/R(K), 0 for those who did not answer; with E_cmp of training where it took that and
    the device was not scheduled. Only available devices that hold data answer, and only in time.
    """
    s, block, check = case.s, case.block, case.at(Stage.ENERGY)
    if s.reports is None:
        return
    asked, sending = s.reports, _sending_s(s, block)
    cycles = asked.cycles + (s.cycles if asked.trains else 0.0)
    needed = cycles / block["f_hz"] + sending
    holds = block["available"] & (block["stored"] > 0)
    unsure = close(needed, np.full_like(needed, asked.slot_s))
    may = holds & ((needed <= asked.slot_s) | unsure)
    paid = answered(block)
    rule = "only an available device that holds data and is in time for the slot pays for a report"
    check.flag("e_report_j", ~(block["e_report_j"] >= 0) | (paid & ~may), 0.0, rule)
    silent = ~paid & may & ~unsure
    if s.policy in ASKS_EVERYONE:
        check.flag("e_report_j", silent, np.array("above 0"), "every device that may report does")
    if s.law.known:
        own = energy_j(s.law, asked.cycles, block["f_hz"]) if asked.cycles else 0.0
        trained = computing_energy_j(s, block["f_hz"]) if asked.trains else 0.0
        expected = own + s.received_power_w / block["beta"] * sending + np.where(block["scheduled"], 0.0, trained)
        rule = f"E_report = {s.law.formula} of the report's cycles + (P0/β)·b/R on the K-th part of the band"
        check.compare("e_report_j", np.where(paid, expected, 0.0), rule)


def worst_report_j(s: StoredSettings, block: Block) -> Array | float:
    """What no report exceeds: E_cmp(c_r) + (P0/β)·slot_s, and E_cmp of training where it takes that."""
    if s.reports is None:
        return 0.0
    own = energy_j(s.law, s.reports.cycles, block["f_hz"]) if s.reports.cycles else 0.0
    trained = computing_energy_j(s, block["f_hz"]) if s.reports.trains else 0.0
    return own + trained + s.received_power_w / block["beta"] * s.reports.slot_s


def check_answered(case: Case) -> None:
    """Only devices that answered are scheduled."""
    rule = "only devices that reported are scheduled"
    paid = answered(case.block)
    case.at(Stage.DECISION).flag("scheduled", case.block["scheduled"] & ~paid, paid, rule)


def check_largest_norms(case: Case) -> None:
    """score = −‖Δθ‖, 0 of a device that did not answer: of those that did, no device left out has a lower one."""
    check_answered(case)
    block, feasible = case.block, case.importance.feasible
    who = feasible & answered(block)
    score, scheduled = block["score"], block["scheduled"] & who
    worst = np.where(scheduled, score, -np.inf).max(axis=1, keepdims=True)
    better = who & ~scheduled & (score < worst - RELATIVE * np.abs(worst)) & scheduled.any(axis=1, keepdims=True)
    check = case.at(Stage.DECISION)
    rule = "no device that reported and was left out has a larger norm than one that was scheduled"
    check.flag("scheduled", better, ~better, rule, stored=scheduled)
    rule = "a device that did not report has the score 0, others minus a norm"
    check.flag("score", feasible & ~np.where(answered(block), score <= 0, score == 0), 0.0, rule)
