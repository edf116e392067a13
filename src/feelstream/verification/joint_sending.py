"""The joint policy after training: who was let through, and how band and power were shared out at the true gains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from feelstream.columns import MEASURED
from feelstream.verification.band import Radio, least_share, power_w, settle
from feelstream.verification.energy import check_measured
from feelstream.verification.findings import RELATIVE, Array, Checker, Stage
from feelstream.verification.formulas import computing_energy_j
from feelstream.verification.importance import Case
from feelstream.verification.joint import airtime_s, limit_w, weights
from feelstream.verification.joint_sets import OPTIMAL, members
from feelstream.verification.reading import Block
from feelstream.verification.stored import StoredSettings

ALLOWANCE = "allowance_j"  # a column that a rule of the policy adds: the most that each may spend in the round
RULES = {
    "paper": "while the scheduled do not fit the band at |g|²/margin, the one with the least |g|²/β is dropped",
    "largest": "as many as fit the band at |g|²/margin transmit, the least shares first",
}


def sending_radio(s: StoredSettings, block: Block, margin: float) -> Radio:
    """All devices over the time that their computing left, at |g|²/margin. [R, K]

    Where each may spend no more than an allowance, a joule of all counts alike, and at the true gains, margin 1, nobody
    has more power than what its computing left of the allowance can pay, less a rounding.
    """
    gain = np.maximum(block["gain"], np.finfo(float).tiny) / margin
    left = np.where(block["scheduled"], np.maximum(s.time_s - block["t_cmp_s"], 0.0), 0.0)
    limit = np.broadcast_to(limit_w(s, block), left.shape)
    kappa = s.bandwidth_hz * s.noise_w_per_hz / gain
    nothing = np.zeros_like(left)
    weight = np.ones_like(left) if ALLOWANCE in block.values else weights(s, block)
    if ALLOWANCE in block.values and margin == 1:
        rest = (block[ALLOWANCE] - block["e_cmp_j"]) / np.where(left > 0, left, np.inf)
        limit = np.clip(rest * (1 - 1e-9), np.finfo(float).tiny, limit)
    return Radio(weight, kappa, left, limit, float(s.time_s), nothing, airtime_s(s), nothing)


def check_joint_admission(case: Case) -> None:
    """Repeat the rule; where rounding alone decides whether a set fits, the stored choice stands."""
    s, block = case.s, case.block
    scheduled, sent = block["scheduled"], block.sent
    least = least_share(sending_radio(s, block, s.link_margin))
    if ALLOWANCE in block.values:
        least = np.maximum(least, least_share(sending_radio(s, block, 1.0)))
    ratio = np.nan_to_num(block["gain"] / block["beta"])
    expected = np.zeros_like(sent)
    for r in range(len(scheduled)):
        stored = np.flatnonzero(sent[r])
        kept = [k for k in np.flatnonzero(scheduled[r]) if _fits(least[r, k], bool(sent[r, k]))]
        if s.admission == "paper":
            while kept and not _fits(least[r, kept].sum(), list(stored) == kept):
                weakest = min(ratio[r, kept])
                tied = [k for k in kept if ratio[r, k] <= weakest * (1 + RELATIVE)]
                kept.remove(min(tied, key=lambda k: bool(sent[r, k])))
        else:
            kept.sort(key=lambda k: (least[r, k], not sent[r, k]))
            while kept and not _fits(least[r, kept].sum(), sorted(kept) == list(stored)):
                kept.pop()
        expected[r, kept] = True
    case.at(Stage.ADMISSION).flag("transmitted", sent != expected, expected, RULES[s.admission])


def _fits(share: float, stored: bool) -> bool:
    return stored if abs(share - 1) <= 1e-7 else share < 1


def check_joint_energy(case: Case) -> None:
    """Times, powers and energies follow from t_cmp_s and the shares; the shares are those of least Σ w·E_tr."""
    s, block, check = case.s, case.block, case.at(Stage.ENERGY)
    scheduled, sent = block["scheduled"], block.sent
    computing, share = block["t_cmp_s"], block["bandwidth_share"]
    check.flag("t_cmp_s", (computing != 0) & ~scheduled, 0.0, "an unscheduled device does not compute")
    frequency = s.cycles / np.where(scheduled, computing, np.inf)
    modelled = ~block["t_cmp_s_measured"]  # a device's own clock may say what it likes, but for the deadline
    fast = modelled & ~(frequency <= block["f_hz"] * (1 + RELATIVE))
    check.flag("t_cmp_s", fast, s.cycles / block["f_hz"], "no device computes faster than it can: c/t_cmp ≤ f")
    lowest_hz = s.frequency_hz[0].min()
    slow = modelled & scheduled & ~(frequency >= lowest_hz * (1 - RELATIVE))
    check.flag("t_cmp_s", slow, s.cycles / lowest_hz, "no device computes more slowly than the lowest frequency")
    radio = sending_radio(s, block, 1.0)
    _check_shares(check, block, radio)  # before the powers, which follow from them
    left = s.time_s - computing
    power = power_w(radio.kappa_w, radio.airtime_s, np.where(sent, left, 1.0), np.where(sent, share, 1.0))
    expected = {
        "e_cmp_j": (
            scheduled,
            # Where a device's own clock says how long it took, within the frequencies that it has.
            computing_energy_j(s, np.where(modelled, frequency, np.clip(frequency, lowest_hz, block["f_hz"]))),
            f"E_cmp = {s.law.formula} at f = c/t_cmp for a scheduled device, else 0",
        ),
        "t_tr_s": (sent, left, "a transmitter sends for all the time that is left, others not at all"),
        "power_w": (sent, power, "P = ρ·B·N0/|g|²·(2^(S/(ρ·B·T_tr)) − 1) for a transmitter, else 0"),
        "e_tr_j": (sent, block["power_w"] * left, "E_tr = P·T_tr for a transmitter, else 0"),
    }
    for name, (who, value, rule) in expected.items():
        own = block[f"{name}_measured"] & who if name in MEASURED else np.zeros_like(who)
        if name == "e_cmp_j":
            own |= scheduled & (not s.law.known)
        check.compare(name, np.where(who, value, 0.0), rule, where=~own)
    check_measured(case)
    over = sent & ~(block["power_w"] <= radio.limit_w * (1 + RELATIVE))
    check.flag("power_w", over, radio.limit_w, "no device sends with more than the greatest power")


def _check_shares(check: Checker, block: Block, radio: Radio) -> None:
    sent, share = block.sent, block["bandwidth_share"]
    idle = ~sent & (share != 0)
    check.flag("bandwidth_share", idle, 0.0, "a device that does not transmit has no band")
    expected = _best_shares(block, radio)
    bad = sent & ~(np.abs(share - expected) <= OPTIMAL * np.maximum(expected, 1e-3))
    rule = "the band is shared so that Σ w·E_tr is least: one marginal worth for all not at full power"
    check.flag("bandwidth_share", bad, expected, rule)
    # Where one device's share is wrong, that device is named instead.
    total, wanted, fair = share.sum(axis=1), sent.any(axis=1).astype(float), ~(bad | idle).any(axis=1)
    check.compare("bandwidth_share", wanted, "the shares add up to 1 if anyone transmits", where=fair, stored=total)


def _best_shares(block: Block, radio: Radio) -> Array:
    """The shares of the band of least Σ w·E_tr for those who transmitted, 0 for others. [R, K]"""
    sent = block.sent
    expected = np.zeros_like(block["bandwidth_share"])
    rows = np.flatnonzero(sent.any(axis=1))
    if rows.size:
        index, member = members(sent[rows])
        part = radio.rows(rows).of(index)
        part = replace(part, longest_s=np.where(member, part.longest_s, 1.0))
        _, _, best = settle(part, member)
        some = np.zeros((rows.size, sent.shape[1]))
        np.put_along_axis(some, index, np.where(member, best, 0.0), axis=1)
        expected[rows] = some
    return expected
