"""The joint policy: its frequencies, its scores at the price of the band, and that no better set is found."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from feelstream.verification.band import Radio, cost_at_time, settle
from feelstream.verification.computing import Stretch, least_j, stretches
from feelstream.verification.findings import RELATIVE, Array, Checker, Stage
from feelstream.verification.formulas import amounts, computing_energy_j, dissimilarities
from feelstream.verification.importance import Case, check_null_outside, feasible_at, importance_at
from feelstream.verification.joint_sets import OPTIMAL, Sets, members
from feelstream.verification.lyapunov import check_lyapunov_decision, check_lyapunov_planned
from feelstream.verification.reading import Block
from feelstream.verification.stored import StoredSettings
from feelstream.verification.stretched import Stretched, alone_j, best_stretches, costs_at, totals_of

check_joint_planned = check_lyapunov_planned


def weights(s: StoredSettings, block: Block) -> Array:
    """w = Q, at least a thousandth of the round's largest queue or of the largest budget. [R, K]"""
    largest = np.maximum(block["queue_j"].max(axis=1, keepdims=True), s.budget_j.max())
    return np.maximum(block["queue_j"], np.maximum(1e-3 * largest, 1e-30))


def limit_w(s: StoredSettings, block: Block) -> Array:
    """The power that no device exceeds, W: power_max_w, or P0 over the least β of the round; or less,
    where the device can do no more. [R, 1] or [R, K]
    """
    least_beta = block["beta"].min(axis=1, keepdims=True)
    limit = s.received_power_w / least_beta if s.power_max_w is None else np.full_like(least_beta, s.power_max_w)
    return np.minimum(limit, s.costs.power_max_w)


def airtime_s(s: StoredSettings) -> float:
    return float(s.update_bits) * math.log(2) / s.bandwidth_hz


def planned_radio(s: StoredSettings, block: Block, n: Array, weight: Array | None = None) -> tuple[Stretched, Array]:
    """All devices as known when scheduling n [R, 1], and who can be planned with an n-th of the band. [R, K]

    weight: [R, K], what a joule of each counts; by default by the queues.
    """
    kappa = s.bandwidth_hz * s.noise_w_per_hz / (s.rate_discount * block["beta"])
    longest = s.time_s - s.cycles / block["f_hz"]
    top, a = limit_w(s, block), airtime_s(s)
    needed = kappa / n * np.expm1(a * n / np.where(longest > 0, longest, np.nan))
    cap = np.clip(np.nan_to_num(needed, nan=np.inf) * (1 + 1e-12), top / (s.fade_reserve * s.link_margin), top)
    ceiling, cycles = block["f_hz"], np.asarray(s.cycles)
    cycles = np.broadcast_to(cycles, s.K) if cycles.ndim < 2 else cycles
    weight = weights(s, block) if weight is None else weight
    floor = np.minimum(s.frequency_hz[0].min(), ceiling)

    def on(each: Stretch, only: bool) -> Radio:
        """Every device on one stretch of the law; longest 0 where it cannot be there."""
        high, low = np.minimum(each.high_hz, ceiling), np.maximum(each.low_hz, floor)
        usable = only | ((each.low_hz < ceiling) & (high >= floor))
        longest = np.where(usable, s.time_s - cycles / high, 0.0)
        shortest = np.maximum(s.time_s - cycles / low, 0.0)
        curve = (np.broadcast_to(each.fixed, kappa.shape), np.broadcast_to(each.inverse, kappa.shape))
        work, leakage = np.broadcast_to(each.square, kappa.shape), np.broadcast_to(each.leakage, kappa.shape)
        return Radio(weight, kappa, longest, cap, float(s.time_s), work, a, shortest, *curve, leakage)

    parts = stretches(s.law, cycles)
    radio = Stretched(tuple(on(each, len(parts) == 1) for each in parts))
    return radio, radio.least_share <= (1 + RELATIVE) / n


def stored_stretch(s: StoredSettings, block: Block, radio: Stretched) -> Array:
    """On which stretch each device computed, by t_cmp_s: the one whose times are nearest. [R, K]"""
    sending = s.time_s - block["t_cmp_s"]
    off = [
        np.where(each.longest_s > 0, np.abs(np.clip(sending, each.shortest_s, each.longest_s) - sending), np.inf)
        for each in radio.each
    ]
    return np.argmin(off, axis=0)


def check_joint_score(case: Case) -> None:
    """Frequencies and scores at the price at which the scheduled ones fill the band."""
    s, block, importance, check = case.s, case.block, case.importance, case.at(Stage.SCORE)
    check_null_outside(check, "score")
    check_time_by_witnesses(check, s, block)
    radio, able = planned_radio(s, block, case.n)
    scheduled, candidates = block["scheduled"], importance.feasible & able
    finite = s.V is not None and math.isfinite(s.V)
    if not finite:
        rule = "score = −importance for infinite V"
        _compare(check, "score", -importance.importance, importance.scale, candidates, rule)
    rows, log_price = check_computing_times(check, s, block, radio, candidates)
    if rows.size and finite:
        rule = "score = least w·e + μ·ρ − V·importance at the price μ at which the scheduled fill the band"
        _compare_scores(case, rows, costs_at(radio.rows(rows), log_price), candidates, rule)
    idle = np.flatnonzero(~scheduled.any(axis=1))
    if idle.size and finite:
        rule = "with nobody scheduled, score = w·e − V·importance of each device alone on the band"
        _compare_scores(case, idle, alone_j(radio.rows(idle)), candidates, rule)


def check_computing_times(
    check: Checker, s: StoredSettings, block: Block, radio: Stretched, candidates: Array
) -> tuple[Array, Array]:
    """Frequencies of least Σ w·e for the scheduled; which rounds have any, and log μ of their band [rows, 1]."""
    scheduled = block["scheduled"]
    index, member = members(scheduled & candidates)
    rows = np.flatnonzero(member.any(axis=1))
    if not rows.size:
        return rows, np.zeros((0, 1))
    at = stored_stretch(s, block, radio)[rows]
    own = radio.rows(rows).at(at)
    log_price, tau, _ = settle(own.of(index[rows]), member[rows])
    computing = np.zeros_like(block["t_cmp_s"])
    some = np.zeros((rows.size, scheduled.shape[1]))
    np.put_along_axis(some, index[rows], np.where(member[rows], s.time_s - tau, 0.0), axis=1)
    computing[rows] = np.where(scheduled[rows] & candidates[rows], some, 0.0)
    bad = scheduled & candidates & ~(np.abs(block["t_cmp_s"] - computing) <= OPTIMAL * s.time_s)
    bad &= ~block["t_cmp_s_measured"]
    # Where the energy hardly depends on the time, any time of the stretch that costs no more is as good.
    sending = s.time_s - block["t_cmp_s"][rows]
    taken, least = np.clip(sending, own.shortest_s, own.longest_s), costs_at(Stretched((own,)), log_price)
    off = (len(radio.each) > 1) & (np.abs(taken - sending) > OPTIMAL * s.time_s)
    bad[rows] &= off | ~(cost_at_time(own, log_price, taken) - least <= OPTIMAL * least)
    rule = "a scheduled device computes for T_rd − τ, τ of least Σ(w·e) over times and shares of the band"
    check.flag("t_cmp_s", bad, computing, rule)
    if len(radio.each) > 1:
        _check_stretches(check, block, radio, scheduled & candidates, at)
    return rows, log_price


def _check_stretches(check: Checker, block: Block, radio: Stretched, chosen: Array, at: Array) -> None:
    """No stretches of the law that we find have a smaller Σ w·e than the stored, `at` [rows with any chosen, K]."""
    rows = np.flatnonzero(chosen.any(axis=1))
    index, member = members(chosen[rows])
    part, own = radio.rows(rows).of(index), np.take_along_axis(at, index, axis=1)
    stored, found = totals_of(part, member, own)[0], best_stretches(part, member)
    worse = ~(stored <= found.total * (1 + OPTIMAL))[:, None] & member & (own != found.at)
    better_s = part.each[0].round_s - settle(part.at(found.at), member)[1]
    bad, computing = np.zeros(chosen.shape, bool), np.zeros(chosen.shape)
    bad[rows[:, None], index], computing[rows[:, None], index] = worse, better_s
    rule = "no other operating points of the scheduled have a smaller Σ(w·e)"
    check.flag("t_cmp_s", bad & ~block["t_cmp_s_measured"], computing, rule)


def _compare_scores(case: Case, rows: Array, cost: Array, candidates: Array, rule: str) -> None:
    """score = cost − V·importance in these rows, of the candidates."""
    V, importance = case.s.V or 0.0, case.importance
    score, size = np.full(candidates.shape, np.nan), np.zeros(candidates.shape)
    score[rows] = cost - V * importance.importance[rows]
    size[rows] = cost + V * importance.scale[rows]
    where = candidates & np.isin(np.arange(len(candidates)), rows)[:, None]
    _compare(case.at(Stage.SCORE), "score", score, size, where, rule)


def check_time_by_witnesses(check: Checker, s: StoredSettings, block: Block) -> None:
    """Where energy and time of sending tell one computing time and t_cmp_s another, t_cmp_s is the wrong one.

    What follows from t_cmp_s, such as the shares of the band, is checked later, and would be blamed for it.
    """
    own = block["t_cmp_s_measured"] | block["e_cmp_j_measured"] | block["t_tr_s_measured"]
    sent, stored = block.sent & (block["e_cmp_j"] > 0) & ~own, block["t_cmp_s"]
    by_sending = s.time_s - block["t_tr_s"]
    expected = computing_energy_j(s, s.cycles / np.where(sent, by_sending, 1.0))
    alike = np.abs(expected - block["e_cmp_j"]) <= RELATIVE * block["e_cmp_j"]
    bad = sent & alike & ~(np.abs(stored - by_sending) <= RELATIVE * s.time_s)
    rule = "computing takes the time that its energy at c/t_cmp and the time left for sending both tell"
    check.flag("t_cmp_s", bad, by_sending, rule)


def check_joint_decision(case: Case) -> None:
    """Only candidates, as many as the cardinality says, and no set that we find has a smaller total."""
    s, block, planned, importance, check = case.s, case.block, case.planned, case.importance, case.at(Stage.DECISION)
    radio, able = planned_radio(s, block, case.n)
    candidates, scheduled = importance.feasible & able, block["scheduled"]
    rule = "only feasible devices that an n-th of the band would suffice are scheduled"
    check.flag("scheduled", scheduled & ~candidates, scheduled & candidates, rule)
    if s.V is None or math.isinf(s.V):
        if s.power_max_w is None and s.rate_discount <= 1:
            check_lyapunov_decision(replace(case, importance=replace(importance, feasible=candidates)))
        return
    count = scheduled.sum(axis=1)
    most = np.minimum(planned, candidates.sum(axis=1))
    wrong = count > most if s.cardinality == "cap" else count != most
    rule = "as many devices are scheduled as planned (cap: at most), or all candidates if they are fewer"
    check.flag("scheduled", wrong, most, rule, stored=count)
    own = Sets(radio, s.V * importance.importance, candidates, planned, s.cardinality != "cap")
    chosen = scheduled & candidates
    total, log_price = own.totals(chosen, stored_stretch(s, block, radio))
    size = np.abs(total) + np.where(chosen, np.abs(own.worth), 0.0).sum(axis=1)
    best = own.challenge(chosen, total, log_price, total, OPTIMAL * size)
    if s.cardinality == "free":
        best = np.minimum(best, _other_sizes(s, block, planned, total, OPTIMAL * size))
    rule = "no allowed set has a smaller total of w·e − V·importance than the scheduled one"
    check.flag("scheduled", ~(total <= best + OPTIMAL * size), best, rule, stored=total)


def least_joint_energy_j(s: StoredSettings, beta: Array) -> Array:
    """Computing through the whole round or at the lowest frequency, sending free: no planned energy is less. [K]"""
    slowest_hz = np.maximum(s.cycles / s.time_s, s.frequency_hz[0].min())
    return np.broadcast_to(least_j(s.law, s.cycles, slowest_hz, s.frequency_hz[1]), beta.shape)


def _other_sizes(s: StoredSettings, block: Block, planned: Array, beat: Array, slack: Array) -> Array:
    """The least total found at any other size that `free` could have planned for. [R]"""
    dissimilarity, fixed = dissimilarities(s, block.rounds, block["used_labels"], block["fresh_labels"])
    best = np.zeros(len(planned))  # nobody
    for n in range(1, (s.size or 0) + 1):
        feasible, unsure = feasible_at(s, block, n)
        radio, able = planned_radio(s, block, np.array([[n]]))
        candidates = feasible & able
        rows = np.flatnonzero((planned != n) & ~unsure.any(axis=1) & (candidates.sum(axis=1) >= n))
        if rows.size == 0:
            continue
        importance = importance_at(s, block, amounts(block["fresh"], feasible), dissimilarity, fixed, feasible)
        worth = (s.V or 0.0) * importance.importance
        own = Sets(radio, worth, candidates, np.full(len(planned), n), True).rows(rows)
        first = own.lowest(alone_j(own.radio) - own.worth)
        total, log_price = own.totals(first)
        best[rows] = np.minimum(best[rows], own.challenge(first, total, log_price, beat[rows], slack[rows]))
    return best


def _compare(check: Checker, name: str, expected: Array, scale: Array, where: Array, rule: str) -> None:
    stored = check.table[name]
    size = np.maximum(np.maximum(np.abs(stored), np.abs(expected)), scale)
    check.flag(name, where & ~(np.abs(stored - expected) <= OPTIMAL * size), expected, rule)
