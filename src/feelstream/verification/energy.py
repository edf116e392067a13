"""Times, energies, the queue step, and the bound on the queues' drift."""

from __future__ import annotations

import numpy as np

from feelstream.columns import MEASURED
from feelstream.verification.findings import ABSOLUTE, RELATIVE, Array, Findings, Stage, close
from feelstream.verification.formulas import computing_energy_j, computing_time_s, sending_time_s, surrogate_time_s
from feelstream.verification.importance import Case
from feelstream.verification.ours import OUR_POLICIES
from feelstream.verification.reading import Block
from feelstream.verification.shares import OWN_SHARES, check_frequency, check_split, chosen_hz
from feelstream.verification.stored import StoredSettings


def check_energy(case: Case) -> None:
    """Every time and energy follows from f, β, |g|² and who computed and sent; deadlines are met."""
    s, block, check = case.s, case.block, case.at(Stage.ENERGY)
    scheduled, sent = block["scheduled"], block.sent
    n = sent.sum(axis=1, keepdims=True)
    power = s.received_power_w / block["beta"]
    share = 1.0 / np.maximum(n, 1)
    share_rule = "n transmitters get 1/n of the band each, others none"
    if s.policy in OWN_SHARES:
        share, share_rule = block["bandwidth_share"], "only a transmitter has a share of the band"
        check_split(case)
    sending = sending_time_s(s, 1.0 / np.where(sent, share, 1.0), block["gain"] / block["beta"])
    check_frequency(case)
    f_hz = chosen_hz(s, block)
    computing = computing_time_s(s, f_hz)
    if s.costs.block_bits:
        sending = sending + check_repeats(case, computing, sending)
    expected = {
        "t_cmp_s": (scheduled, computing, "T_cmp = c/f for a scheduled device, else 0"),
        "e_cmp_j": (
            scheduled,
            computing_energy_j(s, f_hz),
            f"E_cmp = {s.law.formula} for a scheduled device, else 0",
        ),
        "bandwidth_share": (sent, share, share_rule),
        "power_w": (sent, power, "P = P0/β for a transmitter, else 0"),
        "t_tr_s": (sent, sending, "T_tr = S_bits/R(|g|²) on the transmitter's share of the band, else 0"),
        "e_tr_j": (sent, power * sending, "E_tr = P·T_tr for a transmitter, else 0"),
    }
    for name, (who, value, rule) in expected.items():
        own = block[f"{name}_measured"] & who if name in MEASURED else np.zeros_like(who)
        if name == "e_cmp_j":  # nor is the frequency known where a device measured its time under a user's policy
            own |= who & (not s.law.known)
            own |= block["t_cmp_s_measured"] & (s.policy not in OUR_POLICIES)
        check.compare(name, np.where(who, value, 0.0), rule, where=~own)
    check_measured(case)
    planned_s = np.where(scheduled, computing + surrogate_time_s(s, case.n), 0.0)
    rule = "a scheduled device meets the deadline at the surrogate rate: T_cmp + T~ ≤ T_k"
    check.flag("t_cmp_s", scheduled & ~(planned_s <= s.time_s * (1 + RELATIVE)), s.time_s, rule, stored=planned_s)
    # Where one device's share is wrong, that device is named instead.
    unfair = ~close(block["bandwidth_share"], np.where(sent, share, 0.0))
    share, wanted = block["bandwidth_share"].sum(axis=1), (n[:, 0] > 0).astype(float)
    rule = "the shares add up to 1 if anyone transmits"
    check.compare("bandwidth_share", wanted, rule, where=unfair.sum(axis=1) == 0, stored=share)


def check_repeats(case: Case, computing: Array, once: Array) -> Array:
    """What sending blocks again took of those that sent: a whole number of blocks, all that fit where it was lost.

    once: T_tr without any repeat. [R, K] each
    """
    s, block = case.s, case.block
    information = s.update_bits / (1 + s.costs.code_overhead)
    each = once / max(np.ceil(information / s.costs.block_bits * (1 - 1e-9)), 1)
    spare = np.maximum(np.floor((s.time_s - computing - once) / each + 1e-9), 0.0)
    repeats = np.clip(np.rint((block["t_tr_s"] - once) / each), 0.0, spare)
    early = block["lost"] & (repeats < spare)
    rule = "an update is lost only after its blocks were sent again for as long as they fitted the deadline"
    case.at(Stage.ENERGY).flag("lost", early, spare, rule, stored=repeats)
    return np.where(block.sent, repeats * each, 0.0)


def check_lost(found: Findings, block: Block) -> None:
    check, lost = found.at(Stage.ADMISSION, block), block["lost"]
    check.flag("lost", lost & block["transmitted"], ~block["transmitted"], "an update that was lost did not arrive")
    check.flag("lost", lost & ~block["scheduled"], block["scheduled"], "only scheduled devices send, and are lost")


def check_measured(case: Case) -> None:
    """What a device measured is no formula's to say, but nothing is less than nothing, and the deadline holds."""
    s, block, check = case.s, case.block, case.at(Stage.ENERGY)
    for name in MEASURED:
        negative = block[f"{name}_measured"] & ~(block[name] >= 0)
        check.flag(name, negative, 0.0, f"a measured {name} is not negative")
    check.flag("e_cmp_j", ~(block["e_cmp_j"] >= 0), 0.0, "the energy of computing is not negative")
    if s.link_margin >= 1:
        true_s = np.where(block.sent, block["t_cmp_s"] + block["t_tr_s"], 0.0)
        rule = "a transmitter meets the true deadline: T_cmp + T_tr ≤ T_k"
        check.flag("t_tr_s", block.sent & ~(true_s <= s.time_s * (1 + RELATIVE)), s.time_s, rule, stored=true_s)


def check_downloads(found: Findings, s: StoredSettings, block: Block) -> None:
    """Receiving the model takes S_down/R_down seconds and the receiver's power for so long."""
    if "downloads" not in s.facts:
        return
    check, scheduled = found.at(Stage.ENERGY, block), block["scheduled"]
    own = "what the cost rule says" if s.costs.own else ""
    for name, value, rule in (
        (
            "t_down_s",
            s.costs.download_s,
            f"T_down = {own or 'bits/rate of the download'} for a scheduled device, else 0",
        ),
        ("e_down_j", s.costs.download_j, f"E_down = {own or 'P_receive·T_down'} for a scheduled device, else 0"),
    ):
        check.compare(name, np.where(scheduled, value, 0.0), rule)


def check_queues(found: Findings, s: StoredSettings, block: Block) -> None:
    """Q(t+1) = max(Q + E − E^avg, 0), and L(t+1) − L(t) ≤ ½Σu² + ΣQu with u = E − E^avg, L = ½ΣQ²."""
    queue, after = block["queue_j"], block["queue_next_j"]
    energy = block.energy_j
    change = energy - s.budget_j
    scale = queue + energy + s.budget_j
    stepped = np.maximum(queue + change, 0.0)
    check = found.at(Stage.QUEUE, block)
    check.compare("queue_next_j", stepped, "Q(t+1) = max(Q(t) + E − budget, 0)", scale)
    check.flag("queue_next_j", ~(after >= 0), stepped, "a queue is never negative")

    drift = 0.5 * (np.square(after) - np.square(queue)).sum(axis=1)
    bound = (0.5 * np.square(change) + queue * change).sum(axis=1)
    slack = RELATIVE * np.square(scale).sum(axis=1) + ABSOLUTE
    rule = "the drift of ½ΣQ² is at most ½Σu² + ΣQu, u = E − budget"
    found.at(Stage.DRIFT, block).flag("queue_next_j", ~(drift <= bound + slack), bound, rule, stored=drift)
