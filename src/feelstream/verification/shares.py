"""Policies that split the band as they like: is the split lawful, and the one that the policy promises?"""

from __future__ import annotations

import numpy as np

from feelstream.verification.findings import RELATIVE, Array, Findings, Stage
from feelstream.verification.formulas import computing_energy_j, computing_time_s, sending_time_s
from feelstream.verification.importance import Case
from feelstream.verification.ours import OUR_POLICIES
from feelstream.verification.reading import Block
from feelstream.verification.stored import StoredSettings

OWN_SHARES = ("ocean",)
LAW = 2e-6  # relative, within which a user's figures must agree with physics


def check_own_transmission(case: Case) -> None:
    """A user's own `transmit` decides who sends: of the scheduled, and of no one else."""
    sent, scheduled = case.block.sent, case.block["scheduled"]
    case.at(Stage.ADMISSION).flag("transmitted", sent & ~scheduled, scheduled, "only scheduled devices transmit")


def check_own_energy(case: Case) -> None:
    """And what it costs them: nothing is negative, who is idle spends nothing, and the band is there once."""
    block, check = case.block, case.at(Stage.ENERGY)
    sent, scheduled = block.sent, block["scheduled"]
    for name in ("bandwidth_share", "power_w", "t_cmp_s", "t_tr_s", "e_cmp_j", "e_tr_j"):
        check.flag(name, ~(block[name] >= 0), 0.0, f"{name} is not negative")
        idle = (block[name] != 0) & ~scheduled
        check.flag(name, idle, 0.0, f"{name} is 0 for a device that is not scheduled")
    share, rule = block["bandwidth_share"], "a device has a share of the band if it transmits, and only then"
    check.flag("bandwidth_share", (share > 0) != sent, sent, rule)
    _check_laws(case)
    total, rule = share.sum(axis=1), "no more than the whole band is shared out"
    check.flag("bandwidth_share", total > 1 + RELATIVE, 1.0, rule, stored=total)


def check_own_feasible(found: Findings, s: StoredSettings, block: Block, n: Array) -> None:
    """A policy that splits the band itself says who can be in time; computing must leave some of the round."""
    may = block["available"] & (computing_time_s(s, block["f_hz"]) < s.time_s * (1 + RELATIVE))
    rule = "feasible: available, and c/f within the round"
    found.at(Stage.FEASIBLE, block).flag("feasible", block["feasible"] & ~may, may, rule)


def chosen_hz(s: StoredSettings, block: Block) -> Array:
    """The frequency of computing [R, K]: c/t_cmp for the scheduled of a user's policy, which may choose it; else f."""
    if s.policy in OUR_POLICIES:
        return block["f_hz"]
    chose = block["scheduled"] & (block["t_cmp_s"] > 0) & ~block["t_cmp_s_measured"]
    return np.where(chose, s.cycles / np.where(chose, block["t_cmp_s"], 1.0), block["f_hz"])


def check_frequency(case: Case) -> None:
    f_hz, rule = chosen_hz(case.s, case.block), "no device computes faster than it can: c/t_cmp ≤ f"
    fast = ~(f_hz <= case.block["f_hz"] * (1 + RELATIVE))
    case.at(Stage.ENERGY).flag("t_cmp_s", fast, case.s.cycles / case.block["f_hz"], rule)


def _check_laws(case: Case) -> None:
    """E_cmp at c/t_cmp, E_tr = P·t_tr, enough bits, and all of it within the round."""
    s, block, check = case.s, case.block, case.at(Stage.ENERGY)
    sent, scheduled = block.sent, block["scheduled"]
    check.flag("t_cmp_s", scheduled & ~(block["t_cmp_s"] > 0), 0.0, "a scheduled device computes for some time")
    check_frequency(case)
    computed = computing_energy_j(s, chosen_hz(s, block))
    modelled = scheduled & ~block["e_cmp_j_measured"] & ~block["t_cmp_s_measured"] & s.law.known
    rule = f"E_cmp = {s.law.formula} at f = c/t_cmp for a scheduled device"
    check.flag("e_cmp_j", modelled & ~_near(block["e_cmp_j"], computed), computed, rule)
    for name in ("power_w", "t_tr_s", "e_tr_j"):
        check.flag(name, ~sent & (block[name] != 0), 0.0, f"{name} is 0 for a device that does not transmit")
    paid = block["power_w"] * block["t_tr_s"]
    modelled = sent & ~block["e_tr_j_measured"] & ~block["t_tr_s_measured"]
    check.flag("e_tr_j", modelled & ~_near(block["e_tr_j"], paid), paid, "E_tr = P·T_tr for a transmitter")
    share_hz = np.where(sent & (block["bandwidth_share"] > 0), block["bandwidth_share"], 1.0) * s.bandwidth_hz
    rate = share_hz * np.log1p(block["power_w"] * block["gain"] / (share_hz * s.noise_w_per_hz)) / np.log(2.0)
    bits = rate * block["t_tr_s"]
    few = sent & ~block["t_tr_s_measured"] & ~(bits >= s.update_bits * (1 - LAW))
    check.flag("t_tr_s", few, s.update_bits, "a transmitter sends the whole update: R·T_tr ≥ S_bits", stored=bits)
    if s.link_margin >= 1:
        taken = np.where(sent, block["t_cmp_s"] + block["t_tr_s"], 0.0)
        rule = "a transmitter meets the true deadline: T_cmp + T_tr ≤ T_k"
        check.flag("t_tr_s", sent & ~(taken <= s.time_s * (1 + LAW)), s.time_s, rule, stored=taken)
    strong = sent & (block["power_w"] > s.costs.power_max_w * (1 + LAW))
    check.flag("power_w", strong, s.costs.power_max_w, "no device sends with more than its power_max_w")


def _near(left: Array, right: Array) -> Array:
    return np.abs(left - right) <= LAW * np.abs(right)


def no_known_power_w(s: StoredSettings, block: Block) -> Array:
    """What no device is known to exceed: nothing can be said of a user's own, so batteries cover computing at least."""
    return np.zeros((1, 1))


# Prices are derivatives taken as differences, and at the split a change of 1e-6 in a share changes the cost by 1e-12.
PRICE_TOLERANCE, STEP = 1e-5, 1e-4


def check_split(case: Case) -> None:
    """Every transmitter has at least its least share, and no band could be moved to lower Σ Q_k P_k T_k.

    The last band that device k got saves it the price p_k = −Q_k P_k dT_k/db_k per unit. A split is cheapest if all
    above their least share have one price, and nobody at the least share a higher one.
    """
    s, block, check = case.s, case.block, case.at(Stage.ENERGY)
    sent, share, ratio = block.sent, block["bandwidth_share"], block["gain"] / block["beta"]
    n = np.maximum(sent.sum(axis=1, keepdims=True), 1)
    least = (s.least_share or 0.0) / n
    rule = "a transmitter has at least its least share of the band"
    small = sent & (share < least * (1 - RELATIVE))
    check.flag("bandwidth_share", small, least, rule)

    share = np.where(sent & (share > 0), share, 1.0)
    weight = np.where(sent, block["queue_j"] / block["beta"], 0.0)

    def time_s(b: Array) -> Array:
        return sending_time_s(s, 1.0 / b, ratio)

    price = weight * (time_s(share * (1 - STEP)) - time_s(share * (1 + STEP))) / (2 * STEP * share)
    left_s = s.time_s - computing_time_s(s, block["f_hz"])
    needed_s = sending_time_s(s, 1.0 / share, ratio / s.link_margin)
    at_least = (share <= least * (1 + 1e-6)) | (needed_s >= left_s * (1 - 1e-6))
    free = sent & ~at_least
    weighed = weight.sum(axis=1, keepdims=True) > 0  # else every split costs the same: equal shares
    highest = np.where(sent, price, 0.0).max(axis=1, keepdims=True)
    cheap = weighed & free & (price < highest * (1 - PRICE_TOLERANCE))
    rule = "the band is split so that Σ Q·E is least: whoever could give some up saves as much by it as anyone would"
    check.flag("bandwidth_share", cheap, highest, rule, stored=price)
    unequal = sent & ~weighed & (np.abs(share * n - 1) > RELATIVE)
    check.flag("bandwidth_share", unequal, 1.0 / n, "with all queues of the transmitters at 0 the shares are equal")
