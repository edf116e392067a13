"""The drift-plus-penalty policy: its scores, and that no allowed subset has a smaller total."""

from __future__ import annotations

import math

import numpy as np

from feelstream.verification.findings import ABSOLUTE, RELATIVE, Array, Findings, Stage
from feelstream.verification.formulas import amounts, dissimilarities, surrogate_energy_j
from feelstream.verification.importance import Case, Importance, check_null_outside, feasible_at, importance_at
from feelstream.verification.reading import Block, Table
from feelstream.verification.stored import StoredSettings


def check_lyapunov_planned(found: Findings, s: StoredSettings, rounds: Table, scheduled: Array) -> None:
    """exact and cap plan for the size set; free plans for what it schedules, at most the size set."""
    check, planned, size = found.at(Stage.INPUTS, rounds), rounds["planned"], s.size or 0
    if s.cardinality != "free":
        check.flag("planned", planned != size, size, f"{s.cardinality} plans for the size set")
        return
    check.within("planned", 0, size, "free plans for a size between 0 and the size set")
    # Two of three stored counts agree against the planned one, so it is that one which is wrong.
    bad = (planned != scheduled) & (scheduled == rounds["scheduled"])
    check.flag("planned", bad, scheduled, "free schedules as many as it planned for")


def check_lyapunov_score(case: Case) -> None:
    """score = Q E~(n) − V I, −I for infinite V; null outside the feasible set."""
    check = case.at(Stage.SCORE)
    check_null_outside(check, "score")
    score, scale = scores_at(case.s, case.block, case.n, case.importance)
    rule = "score = Q·E~(planned size) − V·importance (V = auto: Q with the fleet's queue), −importance for infinite V"
    check.compare("score", score, rule, scale, where=case.importance.feasible)


def check_lyapunov_decision(case: Case) -> None:
    """The schedule has the allowed size and the least possible total; ties may fall any way."""
    s, block, planned, importance = case.s, case.block, case.planned, case.importance
    check, scheduled = case.at(Stage.DECISION), block["scheduled"]
    rule = "only feasible devices are scheduled"
    check.flag("scheduled", scheduled & ~importance.feasible, scheduled & importance.feasible, rule)

    score, scale = scores_at(s, block, case.n, importance)
    slack = RELATIVE * scale
    # Where rounding alone decides the sign, scores are equal and the stored choice stands.
    ranked = np.where(np.abs(score) <= slack, 0.0, score)
    best = _lowest(ranked, planned, importance.feasible, prefer=scheduled)
    rule = "the planned number of lowest scores is scheduled, or all feasible devices if they are fewer"
    if s.cardinality == "cap":
        rule = "of the planned number of lowest scores, those below 0 are scheduled"
        best &= (score < -slack) | (scheduled & (score < slack))
    size_is_wrong = scheduled.sum(axis=1) != best.sum(axis=1)
    chosen_total, chosen_scale = _total(score, scale, scheduled & importance.feasible)
    best_total, best_scale = _total(score, scale, best)
    worse = chosen_total > best_total + RELATIVE * (chosen_scale + best_scale) + ABSOLUTE
    bad = (size_is_wrong | worse)[:, None] & (scheduled != best)
    check.flag("scheduled", bad, best, rule)
    if s.cardinality == "free" and s.metric != "own":
        _check_free_size(case, best_total, best_scale)


def _check_free_size(case: Case, planned_total: Array, planned_scale: Array) -> None:
    """No other size n with |Π_f(n)| ≥ n has a smaller least total, everything recomputed at that n."""
    s, block = case.s, case.block
    dissimilarity, fixed = dissimilarities(s, block.rounds, block["used_labels"], block["fresh_labels"])
    least, least_scale, least_n = (np.zeros_like(planned_total) for _ in range(3))
    for n in range(1, (s.size or 0) + 1):
        feasible, unsure = feasible_at(s, block, n)
        importance = importance_at(s, block, amounts(block["fresh"], feasible), dissimilarity, fixed, feasible)
        score, scale = scores_at(s, block, n, importance)
        total, total_scale = _total(score, scale, _lowest(score, np.array(n), feasible))
        # A set whose members rounding decides proves nothing against the stored choice.
        better = (total < least) & (feasible.sum(axis=1) >= n) & ~unsure.any(axis=1)
        least, least_scale = np.where(better, total, least), np.where(better, total_scale, least_scale)
        least_n = np.where(better, n, least_n)
    bad = planned_total > least + RELATIVE * (planned_scale + least_scale) + ABSOLUTE
    rule = "free plans for the size whose lowest scores have the least total"
    case.at(Stage.DECISION).flag("planned", bad, least_n.astype(int), rule, stored=case.planned)


def scores_at(s: StoredSettings, block: Block, n: Array | int, importance: Importance) -> tuple[Array, Array]:
    """Q E~(n) − V I and the size of its terms, both [R, K]."""
    V = s.V if s.V is not None else 0.0
    if math.isinf(V):
        return -importance.importance, importance.scale
    backlog = 0.0 if s.backlog_j is None else s.backlog_j[block.rounds - 1][:, None]
    energy = (block["queue_j"] + backlog) * surrogate_energy_j(s, block, n)
    return energy - V * importance.importance, energy + V * importance.scale


def _lowest(score: Array, n: Array, feasible: Array, prefer: Array | None = None) -> Array:
    """The n lowest scores of each round's feasible devices, a mask [R, K]; of equals, the preferred first."""
    others = np.zeros_like(feasible) if prefer is None else ~prefer
    order = np.lexsort((others, score, ~feasible), axis=-1)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(score.shape[1])[None, :], axis=-1)
    return feasible & (rank < np.reshape(n, (-1, 1)))


def _total(score: Array, scale: Array, members: Array) -> tuple[Array, Array]:
    return np.where(members, score, 0.0).sum(axis=1), np.where(members, scale, 0.0).sum(axis=1)
