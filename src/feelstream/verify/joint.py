"""The joint policy: its frequencies, its scores at the price of the band, and that no better set is found."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np

from feelstream.verify.band import Radio, answer, energy_j, least_share, settle
from feelstream.verify.findings import RELATIVE, Array, Findings, Stage
from feelstream.verify.formulas import amounts, dissimilarities
from feelstream.verify.lyapunov import check_lyapunov_decision, check_lyapunov_planned
from feelstream.verify.merit import Merit, check_null_outside, feasible_at, merit_at
from feelstream.verify.reading import Block
from feelstream.verify.settings import Settings

# Both sides find the optimum by a root search, which leaves differences near 1e-9 in what is flat around it.
OPTIMAL = 1e-6
MOST_SUBSETS = 200

check_joint_planned = check_lyapunov_planned


def weights(s: Settings, block: Block) -> Array:
    """w = Q, at least a thousandth of the round's largest queue or of the largest budget. [R, K]"""
    largest = np.maximum(block["queue_j"].max(axis=1, keepdims=True), s.budget_j.max())
    return np.maximum(block["queue_j"], np.maximum(1e-3 * largest, 1e-30))


def limit_w(s: Settings, block: Block) -> float:
    return s.power_max_w if s.power_max_w is not None else float(s.received_power_w / block["beta"][0].min())


def airtime_s(s: Settings) -> float:
    return s.update_bits * math.log(2) / s.bandwidth_hz


def planned_radio(s: Settings, block: Block, n: Array) -> tuple[Radio, Array]:
    """All devices as known when scheduling n [R, 1], and who can be planned with an n-th of the band. [R, K]"""
    kappa = s.bandwidth_hz * s.noise_w_per_hz / (s.rate_discount * block["beta"])
    longest = s.round_s - s.cycles / block["f_hz"]
    top, a = limit_w(s, block), airtime_s(s)
    needed = kappa / n * np.expm1(a * n / np.where(longest > 0, longest, np.nan))
    cap = np.clip(np.nan_to_num(needed, nan=np.inf) * (1 + 1e-12), top / (s.fade_reserve * s.link_margin), top)
    work = s.power_coefficient * s.cycles**3
    radio = Radio(weights(s, block), kappa, longest, cap, s.round_s, work, a)
    return radio, least_share(radio) <= (1 + RELATIVE) / n


def check_joint_score(found: Findings, s: Settings, block: Block, planned: Array, merit: Merit) -> None:
    """Frequencies and scores at the price at which the scheduled ones fill the band."""
    check_null_outside(found, Stage.SCORE, block, "score")
    radio, able = planned_radio(s, block, np.maximum(planned, 1)[:, None])
    scheduled, candidates = block["scheduled"], merit.feasible & able
    index, member = _members(scheduled & candidates)
    rows = np.flatnonzero(member.any(axis=1))
    finite = s.V is not None and math.isfinite(s.V)
    if not finite:
        rule = "score = −importance for infinite V"
        _compare(found, block, "score", -merit.importance, merit.scale, candidates, rule)
    if rows.size:
        part = radio.rows(rows)
        log_price, tau, _ = settle(part.of(index[rows]), member[rows])
        computing = np.zeros_like(block["t_cmp_s"])
        some = np.zeros((rows.size, scheduled.shape[1]))
        np.put_along_axis(some, index[rows], np.where(member[rows], s.round_s - tau, 0.0), axis=1)
        computing[rows] = np.where(scheduled[rows] & candidates[rows], some, 0.0)
        bad = scheduled & candidates & ~(np.abs(block["t_cmp_s"] - computing) <= OPTIMAL * s.round_s)
        rule = "a scheduled device computes for T_rd − τ, τ of least Σ(w·e) over times and shares of the band"
        found.flag(Stage.SCORE, "t_cmp_s", block.rounds, bad, block["t_cmp_s"], computing, rule)
        if finite:
            cost, _ = costs_at(part, log_price)
            score, size = np.full(scheduled.shape, np.nan), np.zeros(scheduled.shape)
            score[rows] = cost - s.V * merit.importance[rows]
            size[rows] = cost + s.V * merit.scale[rows]
            where = candidates & np.isin(np.arange(len(scheduled)), rows)[:, None]
            rule = "score = least w·e + μ·ρ − V·importance at the price μ at which the scheduled fill the band"
            _compare(found, block, "score", score, size, where, rule)
    idle = np.flatnonzero(~scheduled.any(axis=1))
    if idle.size and finite:
        alone = _alone(radio.rows(idle))
        score, size = np.full(scheduled.shape, np.nan), np.zeros(scheduled.shape)
        score[idle] = alone - s.V * merit.importance[idle]
        size[idle] = alone + s.V * merit.scale[idle]
        where = candidates & np.isin(np.arange(len(scheduled)), idle)[:, None]
        rule = "with nobody scheduled, score = w·e − V·importance of each device alone on the band"
        _compare(found, block, "score", score, size, where, rule)


def check_joint_decision(found: Findings, s: Settings, block: Block, planned: Array, merit: Merit) -> None:
    """Only candidates, as many as the cardinality says, and no set that we find has a smaller total."""
    n = np.maximum(planned, 1)
    radio, able = planned_radio(s, block, n[:, None])
    candidates, scheduled = merit.feasible & able, block["scheduled"]
    rule = "only feasible devices that an n-th of the band would suffice are scheduled"
    stray = scheduled & ~candidates
    found.flag(Stage.DECISION, "scheduled", block.rounds, stray, scheduled, scheduled & candidates, rule)
    if s.V is None or math.isinf(s.V):
        if s.power_max_w is None and s.rate_discount <= 1:
            check_lyapunov_decision(found, s, block, planned, replace(merit, feasible=candidates))
        return
    count = scheduled.sum(axis=1)
    most = np.minimum(planned, candidates.sum(axis=1))
    wrong = count > most if s.cardinality == "cap" else count != most
    rule = "as many devices are scheduled as planned (cap: at most), or all candidates if they are fewer"
    found.flag(Stage.DECISION, "scheduled", block.rounds, wrong, count, most, rule)
    worth = s.V * merit.importance
    best, size = np.full(len(n), np.inf), np.zeros(len(n))
    for r in range(len(n)):
        own = _Round(radio.rows([r]), worth[r], candidates[r], int(planned[r]), s.cardinality != "cap")
        chosen = scheduled[r] & candidates[r]
        total, log_price = own.total(chosen)
        size[r] = abs(total) + np.abs(worth[r][chosen]).sum()
        best[r] = own.challenge(chosen, total, log_price, size[r])
        if s.cardinality == "free":
            best[r] = min(best[r], _other_sizes(s, block, r, int(planned[r])))
        bad = np.arange(len(n)) == r
        bad &= ~(total <= best[r] + OPTIMAL * size[r])
        rule = "no allowed set has a smaller total of w·e − V·importance than the scheduled one"
        found.flag(Stage.DECISION, "scheduled", block.rounds, bad, np.array(total), best, rule)


class _Round:
    """One round's choice of a set: exactly n (all, where there are fewer), or at most n where not `fill`."""

    def __init__(self, radio: Radio, worth: Array, candidates: Array, n: int, fill: bool) -> None:
        self.radio, self.worth, self.candidates, self.fill = radio, worth, candidates, fill
        self.n = min(n, int(candidates.sum()))

    def total(self, chosen: Array) -> tuple[float, float]:
        """(Σ w e − worth of a set, log of its price); 0 and NaN for the empty set."""
        ids = np.flatnonzero(chosen)
        if ids.size == 0:
            return 0.0, math.nan
        part = self.radio.of(ids[None])
        log_price, tau, share = settle(part, np.ones((1, ids.size), dtype=bool))
        cost = part.weight * energy_j(part, tau, share)
        return float(cost.sum() - self.worth[ids].sum()), float(log_price[0, 0])

    def lowest(self, score: Array) -> Array:
        order = np.argsort(np.where(self.candidates, score, np.inf), kind="stable")[: self.n]
        chosen = np.zeros(score.size, dtype=bool)
        chosen[order] = True
        return chosen if self.fill else chosen & (score < 0)

    def challenge(self, chosen: Array, total: float, log_price: float, size: float) -> float:
        """The least total found: lowest scores from price to price, then all subsets that can still be better."""
        best = min(total, math.inf if self.fill else 0.0)
        if not self.candidates.any() or self.n == 0:
            return best
        if not chosen.any():
            alone = np.where(self.candidates, _alone(self.radio)[0] - self.worth, np.inf)
            return min(best, float(alone.min()))
        for _ in range(6):
            cost, _ = costs_at(self.radio, np.array([[log_price]]))
            score = cost[0] - self.worth
            rival = self.lowest(score)
            bound = float(score[rival].sum() - math.exp(log_price))
            if best <= bound + OPTIMAL * size or not rival.any():
                return best
            rival_total, log_price = self.total(rival)
            best = min(best, rival_total)
        return min(best, self.exhaust(score, rival, best - bound))

    def exhaust(self, score: Array, lowest: Array, room: float) -> float:
        """The least total of the subsets that the bound leaves in doubt, if they are few; else infinity."""
        entry = score[lowest].max() if lowest.sum() == self.n else 0.0
        outside = np.where(self.candidates & ~lowest, score, np.inf).min()
        replacement = outside if self.fill else min(outside, 0.0)
        certain = np.flatnonzero(lowest & (replacement - score > room))
        doubtful = np.flatnonzero(
            (lowest & (replacement - score <= room)) | (self.candidates & ~lowest & (score - entry <= room))
        )
        most = self.n - certain.size
        sizes = [most] if self.fill else range(0, most + 1)
        if sum(comb(doubtful.size, k) for k in sizes) > MOST_SUBSETS:
            return math.inf
        least = math.inf
        for subset in (subset for k in sizes for subset in combinations(doubtful.tolist(), k)):
            chosen = np.zeros(score.size, dtype=bool)
            chosen[[*certain.tolist(), *subset]] = True
            least = min(least, self.total(chosen)[0])
        return least


def costs_at(radio: Radio, log_price: Array) -> tuple[Array, Array]:
    """w e + μ ρ and ρ of every device at the price of its round [R, 1]."""
    tau, share = answer(radio, log_price)
    return radio.weight * energy_j(radio, tau, share) + np.exp(log_price) * share, share


def least_joint_energy_j(s: Settings, beta: Array) -> Array:
    """Computing through the whole round, sending free: no planned energy is less. [K]"""
    return np.full(beta.shape, s.power_coefficient * s.cycles**3 / s.round_s**2)


def _other_sizes(s: Settings, block: Block, r: int, planned: int) -> float:
    """The least total found at any other size that `free` could have planned for in one round."""
    one = Block(
        block.rounds[[r]],
        {name: column[[r]] for name, column in block.values.items()},
        {name: column[[r]] for name, column in block.nulls.items()},
        block.last,
    )
    dissimilarity, exactly_zero = dissimilarities(one["used_labels"], one["fresh_labels"])
    best = 0.0  # nobody
    for n in (n for n in range(1, (s.size or 0) + 1) if n != planned):
        feasible, unsure = feasible_at(s, one, n)
        radio, able = planned_radio(s, one, np.array([[n]]))
        candidates = (feasible & able)[0]
        if unsure.any() or candidates.sum() < n:
            continue
        merit = merit_at(s, amounts(one["fresh"], feasible), dissimilarity, exactly_zero, feasible)
        own = _Round(radio, (s.V or 0.0) * merit.importance[0], candidates, n, True)
        first = own.lowest(_alone(radio)[0] - own.worth)
        total, log_price = own.total(first)
        size = abs(total) + np.abs(own.worth[first]).sum()
        best = min(best, own.challenge(first, total, log_price, size))
    return best


def _alone(radio: Radio) -> Array:
    """w e of every device with the whole band to itself. [R, K]"""
    shape = radio.weight.shape

    def column(values: Array) -> Array:
        return values.reshape(-1, 1)

    single = replace(
        radio,
        weight=column(radio.weight),
        kappa_w=column(radio.kappa_w),
        longest_s=column(radio.longest_s),
        limit_w=column(radio.limit_w),
    )
    _, tau, share = settle(single, np.ones((radio.weight.size, 1), dtype=bool))
    return (single.weight * energy_j(single, tau, share)).reshape(shape)


def _members(chosen: Array) -> tuple[Array, Array]:
    """A mask [R, K] as device numbers [R, n] of the fullest round's width, and which of them count."""
    width = max(1, int(chosen.sum(axis=1).max(initial=0)))
    index = np.argsort(~chosen, axis=1, kind="stable")[:, :width]
    return index, np.take_along_axis(chosen, index, axis=1)


def _compare(
    found: Findings, block: Block, name: str, expected: Array, scale: Array, where: Array, rule: str
) -> None:
    stored = block[name]
    size = np.maximum(np.maximum(np.abs(stored), np.abs(expected)), scale)
    bad = where & ~(np.abs(stored - expected) <= OPTIMAL * size)
    found.flag(Stage.SCORE, name, block.rounds, bad, stored, expected, rule, block.nulls[name])
