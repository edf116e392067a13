"""Who may be scheduled, how important each one's data is, and whether the set is the one that the policy names.

Here stand the scores and sets that follow from the trace alone, and what else is known of our policies by name. What a
policy draws, solves or remembers, it is asked again by `feelstream verify --decisions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from feelstream.verification.energy import answered
from feelstream.verification.files import Stored
from feelstream.verification.findings import ABSOLUTE, RELATIVE, Array, Stage
from feelstream.verification.rounds import METRICS, Rounds, Totals
from feelstream.verification.rules import exact, holds, only, same, within

INPUTS, FEASIBLE, IMPORTANCE, SCORE, DECISION = (
    Stage.INPUTS, Stage.FEASIBLE, Stage.IMPORTANCE, Stage.SCORE, Stage.DECISION,
)  # fmt: skip

# Scores of ours, by name and by the gains that the policy knows, and the size of their terms.
SCORES: dict[tuple[str, str | None], Callable[[Rounds], tuple[Array, Array | float]]] = {
    ("lyapunov", None): lambda r: drift_plus_penalty(r, r.n, *r.worth),
    ("greedy_energy", None): lambda r: (r.planned_j(r.n), 0.0),
    ("importance_greedy", None): lambda r: (-r.worth[0], r.worth[1]),
    ("best_channel", "mean"): lambda r: (-r.beta, 0.0),
    ("best_channel", "oracle"): lambda r: (-r.gain, 0.0),
    ("proportional_fair", "oracle"): lambda r: (-r.gain / r.beta, 0.0),
}
LYAPUNOV = ("lyapunov", "lyapunov_joint")
BY_ENERGY = ("lyapunov", "greedy_energy")  # whose scores follow from the energy law
# Who goes by the data that devices hold, who takes as many as planned (or all), and who plans for what it schedules.
WITH_DATA = ("balanced", "balanced_joint", "fedcgd", "fedteddi", "fedbacys", "representative")
AS_MANY = ("random", "round_robin", "power_of_choice", "oort", "balanced", "fedteddi", "representative", "update_norm")
PACKED = ("select_all", "fedcs")


def drift_plus_penalty(r: Rounds, n: Array | int, importance: Array, scale: Array) -> tuple[Array, Array]:
    """Q E~(n) − V I, −I for infinite V, and the size of its terms; with V = auto, Q with the fleet's queue."""
    V = r.phase.V or 0.0
    if np.isinf(V):
        return -importance, scale
    backlog = r.memory["backlog_j"][r.rounds - 1][:, None]
    energy = (r.queue_j + backlog) * r.planned_j(n)
    return energy - V * importance, np.abs(energy) + V * scale


class Chosen(NamedTuple):
    """The allowed set of least total, and that total, against the stored; [R] but for the set [R, K]."""

    best: Array
    wrong: Array
    total: Array
    scale: Array


def _chosen(r: Rounds) -> Chosen:
    """The schedule has the allowed size and the least possible total; ties may fall any way."""
    score, scale = drift_plus_penalty(r, r.n, *r.worth)
    slack = RELATIVE * scale
    # Where rounding alone decides the sign, scores are equal and the stored choice stands.
    ranked = np.where(np.abs(score) <= slack, 0.0, score)
    best = _lowest(ranked, r.planned, r.feasible, prefer=r.scheduled)
    if r.has("cap"):
        best &= (score < -slack) | (r.scheduled & (score < slack))
    size_is_wrong = r.scheduled.sum(axis=1) != best.sum(axis=1)
    chosen_total, chosen_scale = _total(score, scale, r.scheduled & r.feasible)
    total, total_scale = _total(score, scale, best)
    worse = chosen_total > total + RELATIVE * (chosen_scale + total_scale) + ABSOLUTE
    return Chosen(best, size_is_wrong | worse, total, total_scale)


def _other_size(r: Rounds) -> tuple[Array, Array]:
    """Whether another size n with |Π_f(n)| ≥ n has a smaller least total, all recomputed at that n; and which."""
    planned = r.found(_chosen)
    least, least_scale, least_n = (np.zeros_like(planned.total) for _ in range(3))
    for n in range(1, r.phase.size + 1):
        feasible, unsure = r.feasible_at(n)
        score, scale = drift_plus_penalty(r, n, *r.importance_at(feasible))
        total, total_scale = _total(score, scale, _lowest(score, np.array(n), feasible))
        # A set whose members rounding decides proves nothing against the stored choice.
        better = (total < least) & (feasible.sum(axis=1) >= n) & ~unsure.any(axis=1)
        least, least_scale = np.where(better, total, least), np.where(better, total_scale, least_scale)
        least_n = np.where(better, n, least_n)
    return planned.total > least + RELATIVE * (planned.scale + least_scale) + ABSOLUTE, least_n.astype(int)


def _lowest(score: Array, n: Array, feasible: Array, prefer: Array | None = None) -> Array:
    """The n lowest scores of each round's feasible devices, a mask [R, K]; of equals, the preferred first."""
    others = np.zeros_like(feasible) if prefer is None else ~prefer
    order = np.lexsort((others, score, ~feasible), axis=-1)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(score.shape[1])[None, :], axis=-1)
    return feasible & (rank < np.reshape(n, (-1, 1)))


def _total(score: Array, scale: Array, members: Array) -> tuple[Array, Array]:
    return np.where(members, score, 0.0).sum(axis=1), np.where(members, scale, 0.0).sum(axis=1)


def _score(r: Rounds) -> tuple[Array, Array | float]:
    policy = r.run.policy
    return (SCORES.get((policy.name, policy.gain)) or SCORES[policy.name, None])(r)


def _candidates(r: Rounds) -> Array:
    """The feasible devices, of which some policies leave out those without data, or those that did not report."""
    return r.feasible & ((not r.has("with data")) | r.known_to_hold) & ((not r.has("ours, by reports")) | answered(r))


def _left_out_lower(r: Rounds) -> Array:
    """Devices that have a lower stored score than one that was scheduled."""
    who, score = _candidates(r), r.score
    scheduled = r.scheduled & who
    worst = np.where(scheduled, score, -np.inf).max(axis=1, keepdims=True)
    return who & ~scheduled & (score < worst - RELATIVE * np.abs(worst)) & scheduled.any(axis=1, keepdims=True)


def _count(r: Rounds) -> Array:
    return r.scheduled.sum(axis=1)


def _fits(r: Rounds) -> Array:
    """Whether one device more would meet the deadline together with the others. [R]"""
    more = r.planned + 1
    feasible, unsure = r.feasible_at(more[:, None])
    return (feasible & ~unsure).sum(axis=1) >= more


def _scheduled(r: Totals) -> Array:
    """By the devices' rows, where there are such. [R]"""
    return r.scheduled if r.devices is None else _count(r.devices)


PLAN_RULES = (
    within(INPUTS, "planned", "the planned size lies between 0 and the number of devices", 0, lambda r: r.run.devices),
    within(INPUTS, "planned", "no more devices are planned for than the size set", 0, lambda r: r.phase.size,
           "ours, not all that fit"),
    exact(INPUTS, "planned", "the planned size is the size set, unless the policy may plan for as few as one",
          lambda r: r.phase.size, "ours", but=lambda r: r.phase.smallest_plan == 1),
    # Two of three stored counts agree against the planned one, so it is that one which is wrong.
    exact(INPUTS, "planned", "a packed, or freely chosen, schedule has the size that was planned for", _scheduled,
          "packed", but=lambda r: _scheduled(r) != r.scheduled),
)  # fmt: skip

RULES = (
    exact(FEASIBLE, "feasible", "feasible: available, and c/f + T~(planned size) within the round",
          lambda r: r.feasible_at(r.n)[0], "planned by ours", but=lambda r: r.feasible_at(r.n)[1]),
    only(FEASIBLE, "feasible", "feasible: available, and c/f within the round",
         lambda r: r.available & (r.cycles / r.f_hz < r.time_s * (1 + RELATIVE)), "not planned by ours"),
    same(IMPORTANCE, "amount", "amount = |Π_f|·fresh / Σ fresh over Π_f, 0 if nothing is fresh",
         lambda r: r.amount_at(r.feasible)),
    same(IMPORTANCE, "dissimilarity", "dissimilarity = ‖x−y‖²/(‖x‖²+‖y‖²) of centred label counts, with the rules for "
         "empty sets", lambda r: r.unlike[0], scale=lambda r: np.where(r.unlike[1], 0.0, 1.0)),
    same(IMPORTANCE, "importance", "importance by the metric (one that is not ours: some number for every feasible "
         "device), times the device's priority and reliability", lambda r: r.worth[0], scale=lambda r: r.worth[1]),
    same(SCORE, "score", "score: Q·E~ − V·importance of lyapunov (V = auto: Q with the fleet's queue; infinite V: "
         "−importance), E~ of greedy_energy, −importance of importance_greedy, −gain by channel",
         lambda r: _score(r)[0], "scored", scale=lambda r: _score(r)[1]),
    holds(SCORE, "score", "a policy gives all feasible devices a score, or none",
          lambda r: (r.nulls["score"] == (2 * (r.nulls["score"] & r.feasible).sum() > r.feasible.sum())) | ~r.feasible,
          None, "ours, not scored, not priced"),
    only(DECISION, "scheduled", "only feasible devices are scheduled", lambda r: r.feasible),
    only(DECISION, "scheduled", "only devices that hold data, and that reported if they were asked, are scheduled",
         _candidates, "ours"),
    holds(DECISION, "scheduled", "no more devices are scheduled than planned", lambda r: _count(r) <= r.planned,
          lambda r: r.planned, stored=_count),
    exact(DECISION, "scheduled", "as many devices are scheduled as planned, or all candidates if they are fewer",
          lambda r: np.minimum(r.planned, _candidates(r).sum(axis=1)), "as many", stored=_count),
    exact(DECISION, "scheduled", "no device that was left out has a lower score than one that was scheduled",
          lambda r: r.scheduled | _left_out_lower(r), "lowest"),
    holds(DECISION, "score", "a device that did not report has the score 0, others minus a norm",
          lambda r: np.where(answered(r), r.score <= 0, r.score == 0) | ~r.feasible, 0.0, "norms"),
    exact(DECISION, "scheduled",
          "the planned number of lowest scores is scheduled, or all feasible devices (cap: of these, those below 0)",
          lambda r: r.found(_chosen).best, "optimal", but=lambda r: ~r.found(_chosen).wrong[:, None]),
    holds(DECISION, "planned", "free plans for the size whose lowest scores have the least total",
          lambda r: ~r.found(_other_size)[0], lambda r: r.found(_other_size)[1], "optimal, free, metric",
          lambda r: r.planned),
    holds(DECISION, "planned", "no larger set of devices meets the deadline together", lambda r: ~_fits(r),
          lambda r: r.planned + 1, "all that fit", lambda r: r.planned),
)  # fmt: skip


def traits_of(stored: Stored) -> frozenset[str]:
    """What rules of every file ask of a run, as `when` names it: its facts, and more."""
    run, policy, world = stored.run, stored.run.policy, stored.run.world
    ours, law, name = "policy" not in run.own, run.law.kind != "own", policy.name if "policy" not in run.own else ""
    nothing_leaves, since_use = run.data.keeps and not run.data.empties_on_use, run.data.fresh == "since_use"
    scored = (name, policy.gain) in SCORES or (name, None) in SCORES
    free = name in LYAPUNOV and policy.cardinality == "free"
    of_features, always = run.features, run.slot is not None and run.slot.every == 1
    optimal = name == "lyapunov" and law
    # What reports to come can cost is known as long as mean gains stay; without a horizon turns alone are bounded.
    known_costs = run.slot is None or not world.moves or policy.pace == "running"
    holds = {
        "ours": ours,
        "equal": policy.equal_shares,
        "planned by ours": ours or policy.equal_shares,  # with feasible sets and power limits that are known
        "law": law,
        "metric": ours and "policy.metric" not in run.own and policy.metric in METRICS,
        "scored": scored and (law or name not in BY_ENERGY),
        "optimal": optimal,
        "lowest": name == "update_norm" or (policy.by_score and not optimal),
        "as many": name in AS_MANY or (policy.by_score and not optimal),
        "packed": name in PACKED or free,
        "all that fit": name == "select_all",
        "with data": name in WITH_DATA,
        "priced": name == "lyapunov_joint",  # only who can be planned with the band has a score
        "norms": name == "update_norm",
        "by reports": policy.asks,
        "asks everyone": name == "gradient_norm" or (of_features is not None and always and not policy.asks),
        "of model": of_features is not None and of_features.of_model,
        "cap": name in LYAPUNOV and policy.cardinality == "cap",
        "free": free,
        "signed": run.signed_queues,
        "changes": len(run.phases) > 1,
        "moves": world.moves,
        "inputs decide": world.comes_and_goes
        or world.battery_j is not None
        or bool({"deployed", "fallible"} & stored.facts),
        "no fading": run.radio.fading == "none",
        "keeps since use": nothing_leaves and since_use,
        "keeps per round": nothing_leaves and not since_use,
        "empties": run.data.empties_on_use and since_use,
        "limited": run.data.most_held is not None,
        "capacity": "batteries" in stored.facts and world.battery_j is not None,
        "margin": run.radio.link_margin >= 1,
        "keeps to its budget": name == "balanced_joint"
        and known_costs
        and len(run.phases) == 1
        and "deployed" not in stored.facts,
    }
    return stored.facts | {trait for trait, true in holds.items() if true}
