"""Scores and decisions, by policy. A policy without rules of its own here gets the generic ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from feelstream.verification.admission import check_admission
from feelstream.verification.energy import check_energy
from feelstream.verification.findings import RELATIVE, Array, Findings, Stage
from feelstream.verification.formulas import surrogate_energy_j
from feelstream.verification.importance import Importance, check_null_outside, feasible_at
from feelstream.verification.joint import (
    check_joint_decision,
    check_joint_planned,
    check_joint_score,
    least_joint_energy_j,
    limit_w,
)
from feelstream.verification.joint_sending import check_joint_admission, check_joint_energy
from feelstream.verification.lyapunov import check_lyapunov_decision, check_lyapunov_planned, check_lyapunov_score
from feelstream.verification.reading import Block, Table
from feelstream.verification.settings import CONTROLLED_OCEAN, StoredSettings
from feelstream.verification.whole_run import least_planned_energy_j

ScoreRule = Callable[[Findings, StoredSettings, Block, Array, Importance], None]


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
    score: Callable[[Findings, StoredSettings, Block, Array, Importance], None]
    decision: Callable[[Findings, StoredSettings, Block, Array, Importance], None]
    note: str
    admission: Callable[[Findings, StoredSettings, Block], None] = check_admission
    energy: Callable[[Findings, StoredSettings, Block, Array], None] = check_energy
    least_energy: Callable[[StoredSettings, Array], Array] = least_planned_energy_j
    most_power: Callable[[StoredSettings, Block], Array] = equal_power_w


def rules_for(policy: str) -> PolicyRules:
    return POLICY_RULES.get(policy, GENERIC)


def check_planned(found: Findings, s: StoredSettings, rounds: Table, scheduled: Array) -> None:
    """0 ≤ planned ≤ K; `scheduled` [R] is the number of devices scheduled."""
    planned = rounds["planned"]
    bad = (planned < 0) | (planned > s.K)
    rule = f"the planned size lies between 0 and the number of devices, {s.K}"
    found.flag(Stage.INPUTS, "planned", rounds.rounds, bad, planned, np.clip(planned, 0, s.K), rule)


def check_subset(found: Findings, s: StoredSettings, block: Block, planned: Array, importance: Importance) -> None:
    """Only feasible devices are scheduled, and no more than planned [R]."""
    scheduled = block["scheduled"]
    bad = scheduled & ~importance.feasible
    rule = "only feasible devices are scheduled"
    found.flag(Stage.DECISION, "scheduled", block.rounds, bad, scheduled, scheduled & importance.feasible, rule)
    count = scheduled.sum(axis=1)
    rule = "no more devices are scheduled than planned"
    found.flag(Stage.DECISION, "scheduled", block.rounds, count > planned, count, planned, rule)


def _any_score(found: Findings, s: StoredSettings, block: Block, planned: Array, importance: Importance) -> None:
    check_null_outside(found, Stage.SCORE, block, "score")


def _random_planned(found: Findings, s: StoredSettings, rounds: Table, scheduled: Array) -> None:
    check_planned(found, s, rounds, scheduled)
    if s.size is not None:
        size, planned = np.array(s.size), rounds["planned"]
        found.flag(
            Stage.INPUTS,
            "planned",
            rounds.rounds,
            planned != size,
            planned,
            size,
            "the planned size is the size set",
        )


def _with_data_only(found: Findings, s: StoredSettings, block: Block, planned: Array, importance: Importance) -> None:
    """Feasible devices that hold data, and as many of them as planned, or all."""
    check_subset(found, s, block, planned, importance)
    scheduled, holds = block["scheduled"], block["stored"] > 0
    rule = "only devices that hold data are scheduled"
    found.flag(Stage.DECISION, "scheduled", block.rounds, scheduled & ~holds, scheduled, holds, rule)
    count, expected = scheduled.sum(axis=1), np.minimum(planned, (importance.feasible & holds).sum(axis=1))
    rule = "as many devices are scheduled as planned, or all feasible ones that hold data if they are fewer"
    found.flag(Stage.DECISION, "scheduled", block.rounds, count != expected, count, expected, rule)


def _no_score(found: Findings, s: StoredSettings, block: Block, planned: Array, importance: Importance) -> None:
    rule = "this policy has no score, so none is stored"
    found.flag(Stage.SCORE, "score", block.rounds, ~block.nulls["score"], block["score"], np.array(None), rule)


def _random_decision(found: Findings, s: StoredSettings, block: Block, planned: Array, importance: Importance) -> None:
    check_subset(found, s, block, planned, importance)
    count = block["scheduled"].sum(axis=1)
    expected = np.minimum(planned, importance.feasible.sum(axis=1))
    rule = "as many devices are scheduled as planned, or all feasible ones if they are fewer"
    found.flag(Stage.DECISION, "scheduled", block.rounds, count != expected, count, expected, rule)


def _up_to_size(found: Findings, s: StoredSettings, rounds: Table, scheduled: Array) -> None:
    """Packing plans for what it schedules; `select_all` heeds no size."""
    planned, most = rounds["planned"], np.array(s.K if s.policy == "select_all" else s.size)
    outside = (planned < 0) | (planned > most)
    rule = "no more devices are planned for than the size set, or than there are"
    found.flag(Stage.INPUTS, "planned", rounds.rounds, outside, planned, np.clip(planned, 0, most), rule)
    bad = (planned != scheduled) & (scheduled == rounds["scheduled"])
    rule = "a packed schedule has the size that was planned for"
    found.flag(Stage.INPUTS, "planned", rounds.rounds, bad, planned, scheduled, rule)


def _select_all_decision(
    found: Findings, s: StoredSettings, block: Block, planned: Array, importance: Importance
) -> None:
    """All that is left out cannot be added: one device more, and fewer would meet the deadline than share the band."""
    check_subset(found, s, block, planned, importance)
    more = planned + 1
    feasible, unsure = feasible_at(s, block, more[:, None])
    fits = (feasible & ~unsure).sum(axis=1) >= more
    rule = "no larger set of devices meets the deadline together"
    found.flag(Stage.DECISION, "planned", block.rounds, fits, planned, more, rule)


def _lowest_decision(found: Findings, s: StoredSettings, block: Block, planned: Array, importance: Importance) -> None:
    """As many as planned, and no feasible device that was left out has a lower score than one that was not."""
    _random_decision(found, s, block, planned, importance)
    score, scheduled = block["score"], block["scheduled"] & importance.feasible
    worst = np.where(scheduled, score, -np.inf).max(axis=1, keepdims=True)
    better = importance.feasible & ~scheduled & (score < worst - RELATIVE * np.abs(worst))
    better &= scheduled.any(axis=1, keepdims=True)
    rule = "no device that was left out has a lower score than one that was scheduled"
    found.flag(Stage.DECISION, "scheduled", block.rounds, better, scheduled, ~better, rule)


def _given_score(formula: Callable[[StoredSettings, Block, Array, Importance], Array], rule: str) -> ScoreRule:
    """A score that follows from the stored round alone."""

    def check(found: Findings, s: StoredSettings, block: Block, planned: Array, importance: Importance) -> None:
        _any_score(found, s, block, planned, importance)
        expected = np.broadcast_to(formula(s, block, planned, importance), importance.feasible.shape)
        stored, null = block["score"], block.nulls["score"]
        found.compare(
            Stage.SCORE, "score", block.rounds, stored, expected, rule, importance.scale, importance.feasible, null
        )

    return check


def _energy_score(s: StoredSettings, block: Block, planned: Array, importance: Importance) -> Array:
    return surrogate_energy_j(s, block["f_hz"], block["beta"], np.maximum(planned, 1)[:, None])


def _importance_score(s: StoredSettings, block: Block, planned: Array, importance: Importance) -> Array:
    return -importance.importance


def _channel_score(found: Findings, s: StoredSettings, block: Block, planned: Array, importance: Importance) -> None:
    """Oracles and best_channel by mean gains go by what is stored; what the others have seen is not."""
    formulas = {
        ("best_channel", "mean"): (_mean_gain_score, "score = −β"),
        ("best_channel", "oracle"): (_gain_score, "score = −|g|²"),
        ("proportional_fair", "oracle"): (_gain_ratio_score, "score = −|g|²/β"),
    }
    rule = formulas.get((s.policy, s.gain_known))
    (_given_score(*rule) if rule else _any_score)(found, s, block, planned, importance)


def _mean_gain_score(s: StoredSettings, block: Block, planned: Array, importance: Importance) -> Array:
    return -block["beta"]


def _gain_score(s: StoredSettings, block: Block, planned: Array, importance: Importance) -> Array:
    return -block["gain"]


def _gain_ratio_score(s: StoredSettings, block: Block, planned: Array, importance: Importance) -> Array:
    return -block["gain"] / block["beta"]


GENERIC = PolicyRules(
    check_planned, _any_score, check_subset, "schedule within the feasible set and the planned size only"
)
POLICY_RULES = {
    "lyapunov": PolicyRules(
        check_lyapunov_planned,
        check_lyapunov_score,
        check_lyapunov_decision,
        "no allowed subset has a smaller total score",
    ),
    "lyapunov_joint": PolicyRules(
        check_joint_planned,
        check_joint_score,
        check_joint_decision,
        "no set found with a smaller total; see the scores for the price",
        check_joint_admission,
        check_joint_energy,
        least_joint_energy_j,
        limit_w,
    ),
    "random": PolicyRules(
        _random_planned, _no_score, _random_decision, "random: size and feasibility, the draw is not repeated"
    ),
    "greedy_energy": PolicyRules(
        _random_planned,
        _given_score(_energy_score, "score = E~(planned size)"),
        _lowest_decision,
        "the devices with the least planned energy",
    ),
    "importance_greedy": PolicyRules(
        _random_planned,
        _given_score(_importance_score, "score = −importance"),
        _lowest_decision,
        "the devices with the largest importance",
    ),
    "balanced": PolicyRules(_random_planned, _no_score, _with_data_only, "size, feasibility and data, not the balance"),
    "select_all": PolicyRules(_up_to_size, _no_score, _select_all_decision, "as many as meet the deadline together"),
    "fedcs": PolicyRules(_up_to_size, _no_score, check_subset, "fedcs: size and feasibility, the draw is not repeated"),
    "age": PolicyRules(_random_planned, _any_score, _lowest_decision, "the lowest of the stored scores"),
    **dict.fromkeys(
        ("proportional_fair", "best_channel"),
        PolicyRules(_random_planned, _channel_score, _lowest_decision, "the lowest of the stored scores"),
    ),
    **dict.fromkeys(
        ("round_robin", "power_of_choice", "oort"),
        PolicyRules(_random_planned, _no_score, _random_decision, "size and feasibility only"),
    ),
    CONTROLLED_OCEAN: PolicyRules(
        _random_planned,
        _no_score,
        check_subset,
        "feasibility and largest size only",
        check_joint_admission,
        check_joint_energy,
        most_power=limit_w,
    ),
    **dict.fromkeys(
        ("ocean", "myopic_energy"),
        PolicyRules(_random_planned, _no_score, check_subset, "feasibility and largest size only"),
    ),
}
