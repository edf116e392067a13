"""balanced_joint: rations, how many and who, and what each may spend, worked out a second time from the stored rounds.

What the policy remembers follows from the trace: what each device has spent, when it first held data, and the label
mix of those who transmitted. Its lots come from the run's seed, so equals are ordered as they were.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from feelstream.verification.balance import Choice
from feelstream.verification.band import energy_j, settle
from feelstream.verification.findings import RELATIVE, Array, Findings, Stage
from feelstream.verification.formulas import computing_energy_j, computing_time_s, surrogate_time_s
from feelstream.verification.importance import Case, feasible_at
from feelstream.verification.joint import check_computing_times, check_time_by_witnesses, planned_radio, stored_stretch
from feelstream.verification.joint_sending import ALLOWANCE
from feelstream.verification.joint_sets import members
from feelstream.verification.reading import Block, Table
from feelstream.verification.stored import Rationed, StoredSettings
from feelstream.verification.stretched import Stretched, alone_j, best_stretches

POLICY = 5  # the number of the policy's own stream of random numbers, in the key of its generator
LEEWAY = 1e-6  # of a turn: what an update may cost beyond the plan, so that rounding never decides about one as planned
NEAR = 1e-6  # of a turn: where a number of turns is that near to a whole one, rounding decides which


def fields(s: StoredSettings) -> Rationed:
    assert s.rationed is not None
    return s.rationed


def labels_of(s: StoredSettings, block: Block) -> Array:
    """[R, K, m], or the sizes as counts of one class, [R, K, 1]."""
    return block["stored_labels"] if fields(s).knows == "labels" else block["stored"][..., None]


class Memory(NamedTuple):
    """What the policy knew before every round of a block."""

    spent_j: Array  # [R, K]
    first: Array  # [R, K] the round in which each first held data, 0: none yet
    seen: Array  # [R, m]
    longest_j: Array  # [R, K] the dearest turn so far


def remembered(s: StoredSettings, block: Block) -> Memory:
    """From one block to the next the state goes on in columns of its own, as that of the batteries does."""
    labels, energy = labels_of(s, block), block["e_cmp_j"] + block["e_tr_j"]
    R, K, m = labels.shape
    holds, eta = np.asarray(labels.any(axis=-1)), fields(s).memory
    spent, first, longest = (np.zeros((R + 1, K)) for _ in range(3))
    seen = np.full((R + 1, m), 1 / m)
    for name, column in (("spent", spent), ("first", first), ("longest", longest), ("seen", seen)):
        column[0] = block.last.get(f"{name}_next", column[0])
    for r in range(R):
        spent[r + 1], longest[r + 1] = spent[r] + energy[r], np.maximum(longest[r], energy[r])
        first[r + 1] = np.where(holds[r] & (first[r] == 0), block.rounds[r], first[r])
        pooled = labels[r][block["transmitted"][r]].sum(axis=0)
        mix = pooled / pooled.sum() if pooled.any() else seen[r]
        seen[r + 1] = (1 - eta) * seen[r] + eta * mix
    for name, column in (("spent", spent), ("first", first), ("longest", longest), ("seen", seen)):
        block.values[f"{name}_next"] = column[1:]
    return Memory(spent[:-1], first[:-1], seen[:-1], longest[:-1])


class Budgets(NamedTuple):
    """[R, K] each, J."""

    granted: Array  # what may be spent in all: T·E, or t·E without a horizon
    left: Array  # the most that a turn may cost now
    due: Array


def budgets(s: StoredSettings, block: Block, known: Memory) -> Budgets:
    t = block.rounds[:, None]
    if fields(s).pace == "running":
        granted = t * s.budget_j
        return Budgets(granted, np.where(granted > known.spent_j, np.inf, 0.0), granted)
    horizon = np.maximum(s.T, t)
    holds = labels_of(s, block).any(axis=-1)
    since = np.where(known.first > 0, known.first, t)
    due = horizon * s.budget_j * np.minimum(fields(s).haste * (t - since + 1) / (horizon - since + 1), 1.0)
    granted = horizon * s.budget_j
    return Budgets(granted, np.maximum(granted - known.spent_j, 0.0), np.where(holds, due, 0.0))


def check_rationed_planned(found: Findings, s: StoredSettings, rounds: Table, scheduled: Array) -> None:
    rule = "no more devices are planned for than the size set"
    found.at(Stage.INPUTS, rounds).within("planned", 0, s.size or 0, rule)


def check_rationed_score(case: Case) -> None:
    """No score; frequencies of least Σ e of the scheduled, and from them what each may spend: the column ALLOWANCE."""
    s, block, check = case.s, case.block, case.at(Stage.SCORE)
    check.flag("score", ~block.nulls["score"], np.array(None), "this policy has no score, so none is stored")
    check_time_by_witnesses(check, s, block)
    radio, able = planned_radio(s, block, case.n, np.ones(block["beta"].shape))
    check_computing_times(check, s, block, radio, case.importance.feasible & able)
    known = remembered(s, block)
    left = budgets(s, block, known).left
    chosen = block["scheduled"] & case.importance.feasible & able
    tau, energy, _ = _allocated(radio, chosen, stored_stretch(s, block, radio))
    computing = computing_energy_j(s, s.cycles / (s.time_s - tau))
    block.values[ALLOWANCE] = np.minimum(left, (computing + energy) * (1 + LEEWAY))


def _allocated(radio: Stretched, chosen: Array, at: Array | None = None) -> tuple[Array, Array, Array]:
    """τ and e of least Σ e of the sets chosen [R, K], 0 for others, [R, K] each; where they are known to be it [R].

    at: on which stretch of the law each device computes [R, K]; by default the best that are found.
    """
    tau, energy, least = np.zeros(chosen.shape), np.zeros(chosen.shape), np.ones(len(chosen), bool)
    rows = np.flatnonzero(chosen.any(axis=1))
    if rows.size:
        index, member = members(chosen[rows])
        several = radio.rows(rows).of(index)
        if at is None:
            own, _, _, least[rows] = best_stretches(several, member)
        else:
            own = np.take_along_axis(at[rows], index, axis=1)
        part = several.at(own)
        _, sending, share = settle(part, member)
        for whole, values in ((tau, sending), (energy, energy_j(part, sending, share))):
            some = np.zeros((rows.size, chosen.shape[1]))
            np.put_along_axis(some, index, np.where(member, values, 0.0), axis=1)
            whole[rows] = some
    return tau, energy, least


def check_rationed_decision(case: Case) -> None:
    """How many were planned for and who was taken; where rounding decides, any set of candidates that is no larger."""
    s, block, check = case.s, case.block, case.at(Stage.DECISION)
    known = remembered(s, block)
    money = budgets(s, block, known)
    alone, fits_alone = planned_radio(s, block, np.ones((len(block.rounds), 1)), np.ones(block["beta"].shape))
    turn = np.maximum(alone_j(alone), np.finfo(float).tiny)
    holds = np.asarray(labels_of(s, block).any(axis=-1))
    able = holds & feasible_at(s, block, 1)[0] & (turn <= money.left) & fits_alone
    ahead = (known.spent_j + turn - money.due) / turn
    lead = _lead(s, money, turn)
    near_lead = np.asarray((able & (np.abs(ahead - lead) <= NEAR * np.maximum(lead, 1.0))).any(axis=1))
    able &= ahead <= lead
    most, unsure_most = _most(s, able, turn)
    sizes, unsure_size = _planned_sizes(s, block, able, turn, holds, known, money, most)
    unsure_size |= unsure_most
    rule = "as many are planned for as the rations of those with data leave, at least `least`, if so many are on time"
    check.flag("planned", (case.planned != sizes) & ~(unsure_size | near_lead), sizes, rule, stored=case.planned)

    radio, fits = planned_radio(s, block, case.n, np.ones(block["beta"].shape))
    candidates = able & case.importance.feasible & fits & (case.planned > 0)[:, None]
    had = known.spent_j / turn + np.maximum(ahead, 0.0)
    fewest = np.where(candidates, had, np.inf).min(axis=1, keepdims=True)
    cost = fields(s).price * (had - np.where(np.isfinite(fewest), fewest, 0.0))
    if fields(s).pace == "horizon":
        cost = cost + fields(s).scarcity * turn / np.maximum(money.granted, np.finfo(float).tiny)
    expected, unsure = _chosen(s, block, case.planned, candidates, cost, known.seen)
    expected, unsure = _worth(s, block, expected, unsure | near_lead | unsure_most, most)
    expected, unsure = _afforded(radio, expected, money.left, unsure)
    scheduled = block["scheduled"]
    rule = "the set of least imbalance + spread/N + cost as far as all can afford to share the band, if balanced enough"
    check.flag("scheduled", (scheduled != expected) & ~unsure[:, None], expected, rule)
    rule = "only feasible devices with data that can afford a turn and are not too far ahead are scheduled"
    check.flag("scheduled", scheduled & ~candidates & ~near_lead[:, None], scheduled & candidates, rule)
    _check_promise(case, known, money)


def _lead(s: StoredSettings, money: Budgets, turn: Array) -> Array:
    """How many turns each may be ahead of its ration: `lead`, or a part of the whole budget, if there is one. [R, K]"""
    if fields(s).pace == "running":
        return np.full(turn.shape, fields(s).lead)
    return np.maximum(fields(s).lead, fields(s).lead_part * money.granted / turn)


def check_rationed_subset(case: Case) -> None:
    """What can be said where the energy law is not known: who may be scheduled, and that no budget is exceeded."""
    s, block, check = case.s, case.block, case.at(Stage.DECISION)
    allowed = labels_of(s, block).any(axis=-1) & case.importance.feasible
    scheduled = block["scheduled"]
    check.flag("scheduled", scheduled & ~allowed, allowed, "only feasible devices with data are scheduled")
    count, rule = scheduled.sum(axis=1), "no more devices are scheduled than planned"
    check.flag("scheduled", count > case.planned, case.planned, rule, stored=count)
    known = remembered(s, block)
    _check_promise(case, known, budgets(s, block, known))


def _worth(s: StoredSettings, block: Block, chosen: Array, unsure: Array, most: Array) -> tuple[Array, Array]:
    """The sets, none where labels are worse balanced than all data and the best that may be by more than tolerated."""
    labels, limit = labels_of(s, block).astype(float), fields(s).tolerance
    chosen, unsure = chosen.copy(), unsure.copy()
    for r in np.flatnonzero(chosen.any(axis=1)):
        own = _from_balance(labels[r][chosen[r]])
        worse = [own - _from_balance(labels[r])]
        held = labels[r][labels[r].any(axis=1)]
        if worse[0] > limit * (1 - NEAR) and len(held) > most[r]:
            choice = Choice(held, np.zeros(len(held)), np.zeros(held.shape[1]), 1.0, 0.0)
            worse.append(own - _from_balance(held[choice.best(int(most[r]))]))
            unsure[r] |= choice.unsure
        unsure[r] |= any(abs(each - limit) <= RELATIVE * (1 + limit) for each in worse)
        chosen[r] &= min(worse) <= limit
    return chosen, unsure


def _from_balance(labels: Array) -> float:
    """m ‖p − 1/m‖² of the pooled labels of devices, [devices, m], in another form: m Σ p² − 1."""
    pooled = labels.sum(axis=0)
    return float(len(pooled) * np.square(pooled / pooled.sum()).sum() - 1)


def _afforded(radio: Stretched, chosen: Array, left: Array, unsure: Array) -> tuple[Array, Array]:
    """The sets without those whom sharing the band costs more than they have left, and where that is unsure [R].

    Other stretches of a law might share out the energy differently where ours are not known to be the best; whoever
    has twice the energy left can afford any that are nearly as good.
    """
    while True:
        _, energy, least = _allocated(radio, chosen)
        unsure = unsure | (~least & (chosen & (2 * energy > left)).any(axis=1))
        over = chosen & (energy > left)
        if not over.any():
            return chosen, unsure
        chosen = chosen & ~over


def _most(s: StoredSettings, able: Array, turn: Array) -> tuple[Array, Array]:
    """How many devices any round may have, and where rounding decides it. [R] each"""
    most, unsure = np.full(len(able), s.size or 0), np.zeros(len(able), bool)
    if fields(s).pace == "horizon":
        for r in np.flatnonzero(able.any(axis=1)):
            carried = min(fields(s).peak * s.budget_j.sum() / turn[r][able[r]].mean(), s.K) + 0.5
            most[r] = min(max(fields(s).least, int(carried)), s.size or 0)
            unsure[r] = abs(carried - round(carried)) <= NEAR * max(carried, 1.0)
    return most, unsure


def _planned_sizes(
    s: StoredSettings, block: Block, able: Array, turn: Array, holds: Array, known: Memory, money: Budgets, most: Array
) -> tuple[Array, Array]:
    """n of every round, and where rounding decides it. [R] each"""
    sizes, unsure = np.zeros(len(able), int), np.zeros(len(able), bool)
    needed = computing_time_s(s, block["f_hz"])
    for r in np.flatnonzero(able.any(axis=1)):
        behind = (money.due[r] - known.spent_j[r])[holds[r]].sum()
        turns = min(max(behind, 0.0) / turn[r][able[r]].mean(), s.K)
        n = min(max(fields(s).least, int(turns)), int(most[r]), int(able[r].sum()))
        times = np.sort(needed[r][able[r]])[:n] + surrogate_time_s(s, np.arange(1, n + 1))
        sizes[r] = np.count_nonzero(times <= s.time_s)
        unsure[r] = abs(turns - round(turns)) <= NEAR * max(turns, 1.0)
        unsure[r] |= bool((np.abs(times - s.time_s) <= RELATIVE * s.time_s).any())
    return sizes, unsure


def _lots(seed: int, round: int) -> np.random.Generator:
    """The generator that the policy had in a round: keyed by seed, purpose and round."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(POLICY, round))))


def _chosen(
    s: StoredSettings, block: Block, planned: Array, candidates: Array, cost: Array, seen: Array
) -> tuple[Array, Array]:
    """The set of every round [R, K], and where rounding decides it [R]."""
    chosen, unsure = np.zeros_like(candidates), np.zeros(len(candidates), bool)
    labels, rule = labels_of(s, block), fields(s)
    for r in np.flatnonzero(candidates.any(axis=1)):
        lot = _lots(rule.seed, int(block.rounds[r])).permutation(s.K)
        ids = lot[candidates[r][lot]]
        choice = Choice(labels[r][ids], cost[r][ids], seen[r], rule.memory, rule.spread)
        chosen[r, ids[choice.best(int(planned[r]))]] = True
        unsure[r] = choice.unsure
    return chosen, unsure


def _check_promise(case: Case, known: Memory, money: Budgets) -> None:
    """No device has ever spent more than T·E; without a horizon, never more than t·E and one turn."""
    if case.s.changes or "deployed" in case.s.facts:
        return  # budgets that changed on the way, and devices that measure, keep no promise of the plan
    energy = case.block["e_cmp_j"] + case.block["e_tr_j"]
    spent, most = known.spent_j + energy, money.granted
    if fields(case.s).pace == "running":
        most = most + np.maximum(known.longest_j, energy)
    rule = {
        "horizon": "no device ever spends more than its budget for the whole run",
        "running": "no device is ever ahead of its budget so far by more than one turn",
    }[fields(case.s).pace]
    case.at(Stage.WHOLE_RUN).flag("e_tr_j", ~(spent <= most * (1 + RELATIVE)), most, rule, stored=spent)
