"""Scores and decisions, by policy. A policy without rules of its own here gets the generic ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from feelstream.verification.admission import check_admission
from feelstream.verification.energy import check_energy
from feelstream.verification.findings import RELATIVE, Array, Findings, Stage
from feelstream.verification.formulas import surrogate_energy_j
from feelstream.verification.importance import Case, check_feasible, check_null_outside, feasible_at
from feelstream.verification.joint import (
    check_joint_decision,
    check_joint_planned,
    check_joint_score,
    least_joint_energy_j,
    limit_w,
)
from feelstream.verification.joint_sending import check_joint_admission, check_joint_energy
from feelstream.verification.lyapunov import check_lyapunov_decision, check_lyapunov_planned, check_lyapunov_score
from feelstream.verification.ours import CONTROLLED_OCEAN
from feelstream.verification.rationed import (
    check_rationed_decision,
    check_rationed_planned,
    check_rationed_score,
    check_rationed_subset,
)
from feelstream.verification.reading import Block, Table
from feelstream.verification.reports import answered, check_answered, check_largest_norms
from feelstream.verification.shares import (
    check_own_energy,
    check_own_feasible,
    check_own_transmission,
    no_known_power_w,
)
from feelstream.verification.stored import StoredSettings
from feelstream.verification.whole_run import least_planned_energy_j

Rule = Callable[[Case], None]


def equal_power_w(s: StoredSettings, block: Block) -> Array:
    """P0/β: all are received with the same power. [R, K]"""
    return s.received_power_w / block["beta"]


@dataclass(frozen=True)
class PolicyRules:
    """How a policy's planned size, scores and schedule are re-checked, and what the report says of it.

    Where it does not share the band equally at full frequency, also who was admitted and what that cost, the least
    energy per device (of mean gains β) with which it can have scheduled, and the power that no device exceeds.
    """

    planned: Callable[[Findings, StoredSettings, Table, Array], None]
    score: Rule
    decision: Rule
    note: str
    admission: Rule = check_admission
    energy: Rule = check_energy
    least_energy: Callable[[StoredSettings, Array], Array] = least_planned_energy_j
    most_power: Callable[[StoredSettings, Block], Array] = equal_power_w
    feasible: Callable[[Findings, StoredSettings, Block, Array], None] = check_feasible


def rules_for(s: StoredSettings) -> PolicyRules:
    rules = POLICY_RULES.get(s.policy, GENERIC if s.equal_shares else OWN_TRANSMIT)
    if s.law.known or s.policy not in BY_ENERGY:
        return rules
    note = "not the choice, by a law of the user's"
    if s.policy == "balanced_joint":  # what each may spend follows from the law, and who sends from that
        budgets = replace(OWN_TRANSMIT, score=_check_no_score, decision=check_rationed_subset)
        return replace(budgets, planned=rules.planned, note=f"{note}; budgets of every device in every round")
    return replace(rules, score=_check_any_score, decision=check_subset, note=note)


def check_planned(found: Findings, s: StoredSettings, rounds: Table, scheduled: Array) -> None:
    """0 ≤ planned ≤ K; `scheduled` [R] is the number of devices scheduled."""
    rule = f"the planned size lies between 0 and the number of devices, {s.K}"
    found.at(Stage.INPUTS, rounds).within("planned", 0, s.K, rule)


def _check_size_set(found: Findings, s: StoredSettings, rounds: Table, scheduled: Array) -> None:
    check_planned(found, s, rounds, scheduled)
    if s.size is not None:
        bad = rounds["planned"] != s.size
        found.at(Stage.INPUTS, rounds).flag("planned", bad, s.size, "the planned size is the size set")


def _check_up_to_size(found: Findings, s: StoredSettings, rounds: Table, scheduled: Array) -> None:
    """Packing plans for what it schedules; `select_all` heeds no size."""
    check, most = found.at(Stage.INPUTS, rounds), s.K if s.policy == "select_all" else s.size or 0
    check.within("planned", 0, most, "no more devices are planned for than the size set, or than there are")
    bad = (rounds["planned"] != scheduled) & (scheduled == rounds["scheduled"])
    check.flag("planned", bad, scheduled, "a packed schedule has the size that was planned for")


def check_subset(case: Case) -> None:
    """Only feasible devices are scheduled, and no more than planned [R]."""
    check, scheduled, feasible = case.at(Stage.DECISION), case.block["scheduled"], case.importance.feasible
    check.flag("scheduled", scheduled & ~feasible, scheduled & feasible, "only feasible devices are scheduled")
    count, rule = scheduled.sum(axis=1), "no more devices are scheduled than planned"
    check.flag("scheduled", count > case.planned, case.planned, rule, stored=count)


def _check_some_with_data(case: Case) -> None:
    """Feasible devices that hold data, at most as many as planned."""
    check_subset(case)
    check, scheduled, holds = case.at(Stage.DECISION), case.block["scheduled"], case.block["stored"] > 0
    check.flag("scheduled", scheduled & ~holds, holds, "only devices that hold data are scheduled")


def _check_with_data_only(case: Case) -> None:
    """Feasible devices that hold data, and as many of them as planned, or all."""
    _check_some_with_data(case)
    _check_count(case, case.importance.feasible & (case.block["stored"] > 0), "feasible ones that hold data")


def _check_count(case: Case, candidates: Array, who: str) -> None:
    count, expected = case.block["scheduled"].sum(axis=1), np.minimum(case.planned, candidates.sum(axis=1))
    rule = f"as many devices are scheduled as planned, or all {who} if they are fewer"
    case.at(Stage.DECISION).flag("scheduled", count != expected, expected, rule, stored=count)


def _check_as_many(case: Case) -> None:
    check_subset(case)
    _check_count(case, case.importance.feasible, "feasible ones")


def _check_all_that_fit(case: Case) -> None:
    """All that is left out cannot be added: one device more, and fewer would meet the deadline than share the band."""
    check_subset(case)
    more = case.planned + 1
    feasible, unsure = feasible_at(case.s, case.block, more[:, None])
    fits = (feasible & ~unsure).sum(axis=1) >= more
    rule = "no larger set of devices meets the deadline together"
    case.at(Stage.DECISION).flag("planned", fits, more, rule, stored=case.planned)


def _check_lowest(case: Case) -> None:
    """As many as planned, and no feasible device that was left out has a lower score than one that was not."""
    _check_as_many(case)
    feasible, score = case.importance.feasible, case.block["score"]
    scheduled = case.block["scheduled"] & feasible
    worst = np.where(scheduled, score, -np.inf).max(axis=1, keepdims=True)
    better = feasible & ~scheduled & (score < worst - RELATIVE * np.abs(worst)) & scheduled.any(axis=1, keepdims=True)
    rule = "no device that was left out has a lower score than one that was scheduled"
    case.at(Stage.DECISION).flag("scheduled", better, ~better, rule, stored=scheduled)


def _check_no_score(case: Case) -> None:
    bad, rule = ~case.block.nulls["score"], "this policy has no score, so none is stored"
    case.at(Stage.SCORE).flag("score", bad, np.array(None), rule)


def _check_any_score(case: Case) -> None:
    check_null_outside(case.at(Stage.SCORE), "score")


def _score(rule: str, formula: Callable[[Case], Array]) -> Rule:
    """A score that follows from the stored round alone."""

    def check(case: Case) -> None:
        _check_any_score(case)
        expected = np.broadcast_to(formula(case), case.importance.feasible.shape)
        scale, feasible = case.importance.scale, case.importance.feasible
        case.at(Stage.SCORE).compare("score", expected, rule, scale, where=feasible)

    return check


CHANNEL_SCORES = {
    ("best_channel", "mean"): _score("score = −β", lambda case: -case.block["beta"]),
    ("best_channel", "oracle"): _score("score = −|g|²", lambda case: -case.block["gain"]),
    ("proportional_fair", "oracle"): _score(
        "score = −|g|²/β", lambda case: -case.block["gain"] / case.block["beta"]
    ),
}  # fmt: skip


def _check_channel_score(case: Case) -> None:
    """Oracles and best_channel by mean gains go by what is stored; what the others have seen is not."""
    CHANNEL_SCORES.get((case.s.policy, case.s.gain_known), _check_any_score)(case)


def _check_norms(case: Case) -> None:
    check_subset(case)
    check_largest_norms(case)
    _check_count(case, case.importance.feasible & answered(case.block), "feasible ones that reported")


def _check_drawn_by_reports(case: Case) -> None:
    """How many are drawn depends on how many gradients are above 0, which is not stored."""
    check_subset(case)
    check_answered(case)


_check_energy_score = _score(
    "score = E~(planned size)",
    lambda case: surrogate_energy_j(case.s, case.block, case.n),
)
_check_importance_score = _score("score = −importance", lambda case: -case.importance.importance)
_LEFT_OPEN = PolicyRules(_check_size_set, _check_no_score, check_subset, "feasibility and largest size only")
_AS_MANY = PolicyRules(_check_size_set, _check_no_score, _check_as_many, "size and feasibility only")
_WITH_DATA = PolicyRules(
    _check_size_set, _check_no_score, _check_with_data_only, "size, feasibility and data, not the choice among them"
)
_DRAWN = "size and feasibility, the draw is not repeated"
_BY_CHANNEL = PolicyRules(_check_size_set, _check_channel_score, _check_lowest, "the lowest of the stored scores")

GENERIC = PolicyRules(
    check_planned, _check_any_score, check_subset, "schedule within the feasible set and the planned size only"
)
OWN_TRANSMIT = replace(
    GENERIC, admission=check_own_transmission, energy=check_own_energy, most_power=no_known_power_w,
    feasible=check_own_feasible,
)  # fmt: skip
BY_ENERGY = ("lyapunov", "lyapunov_joint", "balanced_joint", "greedy_energy")  # whose scores follow from the energy law
POLICY_RULES = {
    "lyapunov": PolicyRules(
        check_lyapunov_planned, check_lyapunov_score, check_lyapunov_decision,
        "no allowed subset has a smaller total score",
    ),
    "lyapunov_joint": PolicyRules(
        check_joint_planned, check_joint_score, check_joint_decision,
        "no set found with a smaller total; see the scores for the price",
        check_joint_admission, check_joint_energy, least_joint_energy_j, limit_w,
    ),
    "random": replace(_AS_MANY, note=f"random: {_DRAWN}"),
    "greedy_energy": PolicyRules(
        _check_size_set, _check_energy_score, _check_lowest, "the devices with the least planned energy"
    ),
    "importance_greedy": PolicyRules(
        _check_size_set, _check_importance_score, _check_lowest, "the devices with the largest importance"
    ),
    "balanced": replace(_WITH_DATA, note="size, feasibility and data, not the balance"),
    "balanced_joint": PolicyRules(
        check_rationed_planned, check_rationed_score, check_rationed_decision,
        "the set, its size and its lots repeated; budgets of every device in every round",
        check_joint_admission, check_joint_energy, least_joint_energy_j, limit_w,
    ),
    "fedcgd": replace(_WITH_DATA, decision=_check_some_with_data),
    "fedteddi": _WITH_DATA,
    "representative": _WITH_DATA,
    "fedbacys": replace(_WITH_DATA, decision=_check_some_with_data),
    "select_all": PolicyRules(
        _check_up_to_size, _check_no_score, _check_all_that_fit, "as many as meet the deadline together"
    ),
    "fedcs": PolicyRules(_check_up_to_size, _check_no_score, check_subset, f"fedcs: {_DRAWN}"),
    "age": PolicyRules(_check_size_set, _check_any_score, _check_lowest, "the lowest of the stored scores"),
    "proportional_fair": _BY_CHANNEL,
    "best_channel": _BY_CHANNEL,
    "round_robin": _AS_MANY,
    "update_norm": PolicyRules(
        _check_size_set, _check_any_score, _check_norms, "the largest of the norms stored as scores"
    ),
    "gradient_norm": replace(
        _LEFT_OPEN, decision=_check_drawn_by_reports, note=f"gradient_norm: {_DRAWN}; only devices that reported"
    ),
    "power_of_choice": _AS_MANY,
    "oort": _AS_MANY,
    CONTROLLED_OCEAN: replace(
        _LEFT_OPEN, admission=check_joint_admission, energy=check_joint_energy, most_power=limit_w
    ),
    "ocean": _LEFT_OPEN,
    "myopic_energy": _LEFT_OPEN,
}  # fmt: skip
