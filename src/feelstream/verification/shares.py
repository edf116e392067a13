"""Policies that split the band as they like: is the split lawful, and the one that the policy promises?"""

from __future__ import annotations

import numpy as np

from feelstream.verification.findings import RELATIVE, Array, Stage
from feelstream.verification.formulas import computing_time_s, sending_time_s
from feelstream.verification.importance import Case
from feelstream.verification.reading import Block
from feelstream.verification.settings import StoredSettings

OWN_SHARES = ("ocean",)


def check_own_transmission(case: Case) -> None:
    """A user's own `transmit` decides who sends: of the scheduled, and of no one else."""
    sent, scheduled = case.block["transmitted"], case.block["scheduled"]
    case.at(Stage.ADMISSION).flag("transmitted", sent & ~scheduled, scheduled, "only scheduled devices transmit")


def check_own_energy(case: Case) -> None:
    """And what it costs them: nothing is negative, who is idle spends nothing, and the band is there once."""
    block, check = case.block, case.at(Stage.ENERGY)
    sent, scheduled = block["transmitted"], block["scheduled"]
    for name in ("bandwidth_share", "power_w", "t_cmp_s", "t_tr_s", "e_cmp_j", "e_tr_j"):
        check.flag(name, ~(block[name] >= 0), 0.0, f"{name} is not negative")
        idle = (block[name] != 0) & ~scheduled
        check.flag(name, idle, 0.0, f"{name} is 0 for a device that is not scheduled")
    share, rule = block["bandwidth_share"], "a device has a share of the band if it transmits, and only then"
    check.flag("bandwidth_share", (share > 0) != sent, sent, rule)
    total, rule = share.sum(axis=1), "no more than the whole band is shared out"
    check.flag("bandwidth_share", total > 1 + RELATIVE, 1.0, rule, stored=total)


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
    sent, share, ratio = block["transmitted"], block["bandwidth_share"], block["gain"] / block["beta"]
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
    left_s = s.round_s - computing_time_s(s, block["f_hz"])
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
