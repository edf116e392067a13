"""Times, energies, the queue step, and the bound on the queues' drift."""

from __future__ import annotations

import numpy as np

from feelstream.verification.findings import ABSOLUTE, RELATIVE, Array, Findings, Stage, close
from feelstream.verification.formulas import computing_energy_j, computing_time_s, sending_time_s, surrogate_time_s
from feelstream.verification.reading import MEASURED, Block
from feelstream.verification.settings import StoredSettings
from feelstream.verification.shares import OWN_SHARES, check_split


def check_energy(found: Findings, s: StoredSettings, block: Block, planned: Array) -> None:
    """Every time and energy follows from f, β, |g|² and who computed and sent; deadlines are met."""
    scheduled, sent = block["scheduled"], block["transmitted"]
    n = sent.sum(axis=1, keepdims=True)
    power = s.received_power_w / block["beta"]
    share = 1.0 / np.maximum(n, 1)
    share_rule = "n transmitters get 1/n of the band each, others none"
    if s.policy in OWN_SHARES:
        share, share_rule = block["bandwidth_share"], "only a transmitter has a share of the band"
        check_split(found, s, block)
    sending = sending_time_s(s, 1.0 / np.where(sent, share, 1.0), block["gain"] / block["beta"])
    computing = computing_time_s(s, block["f_hz"])
    expected = {
        "t_cmp_s": (scheduled, computing, "T_cmp = c/f for a scheduled device, else 0"),
        "e_cmp_j": (
            scheduled,
            computing_energy_j(s, block["f_hz"]),
            "E_cmp = λ·c·f² for a scheduled device, else 0",
        ),
        "bandwidth_share": (
            sent,
            share,
            share_rule,
        ),
        "power_w": (sent, power, "P = P0/β for a transmitter, else 0"),
        "t_tr_s": (sent, sending, "T_tr = S_bits/R(|g|²) on the transmitter's share of the band, else 0"),
        "e_tr_j": (sent, power * sending, "E_tr = P·T_tr for a transmitter, else 0"),
    }
    for name, (who, value, rule) in expected.items():
        own = block[f"{name}_measured"] & who if name in MEASURED else np.zeros_like(who)
        found.compare(Stage.ENERGY, name, block.rounds, block[name], np.where(who, value, 0.0), rule, where=~own)
    check_measured(found, s, block)
    _check_planned_deadline(found, s, block, np.maximum(planned, 1)[:, None])
    # Where one device's share is wrong, that device is named instead.
    unfair = ~close(block["bandwidth_share"], np.where(sent, share, 0.0))
    share, wanted = block["bandwidth_share"].sum(axis=1), (n[:, 0] > 0).astype(float)
    rule = "the shares add up to 1 if anyone transmits"
    found.compare(Stage.ENERGY, "bandwidth_share", block.rounds, share, wanted, rule, where=unfair.sum(axis=1) == 0)


def check_measured(found: Findings, s: StoredSettings, block: Block) -> None:
    """What a device measured is no formula's to say, but nothing is less than nothing, and the deadline holds."""
    for name in MEASURED:
        negative = block[f"{name}_measured"] & ~(block[name] >= 0)
        rule = f"a measured {name} is not negative"
        found.flag(Stage.ENERGY, name, block.rounds, negative, block[name], np.array(0.0), rule)
    if s.link_margin >= 1:
        true_s = np.where(block["transmitted"], block["t_cmp_s"] + block["t_tr_s"], 0.0)
        rule = "a transmitter meets the true deadline: T_cmp + T_tr ≤ T_rd"
        late = ~(true_s <= s.round_s * (1 + RELATIVE))
        found.flag(Stage.ENERGY, "t_tr_s", block.rounds, late, true_s, np.array(s.round_s), rule)


def _check_planned_deadline(found: Findings, s: StoredSettings, block: Block, n: Array) -> None:
    limit = s.round_s * (1 + RELATIVE)
    planned_s = np.where(block["scheduled"], computing_time_s(s, block["f_hz"]) + surrogate_time_s(s, n), 0.0)
    rule = "a scheduled device meets the deadline at the surrogate rate: T_cmp + T~ ≤ T_rd"
    found.flag(Stage.ENERGY, "t_cmp_s", block.rounds, ~(planned_s <= limit), planned_s, np.array(s.round_s), rule)


def check_queues(found: Findings, s: StoredSettings, block: Block) -> None:
    """Q(t+1) = max(Q + E − E^avg, 0), and L(t+1) − L(t) ≤ ½Σu² + ΣQu with u = E − E^avg, L = ½ΣQ²."""
    queue, after = block["queue_j"], block["queue_next_j"]
    energy = block["e_cmp_j"] + block["e_tr_j"]
    change = energy - s.budget_j
    scale = queue + energy + s.budget_j
    stepped = np.maximum(queue + change, 0.0)
    rule = "Q(t+1) = max(Q(t) + E − budget, 0)"
    found.compare(Stage.QUEUE, "queue_next_j", block.rounds, after, stepped, rule, scale)
    found.flag(Stage.QUEUE, "queue_next_j", block.rounds, ~(after >= 0), after, stepped, "a queue is never negative")

    drift = 0.5 * (np.square(after) - np.square(queue)).sum(axis=1)
    bound = (0.5 * np.square(change) + queue * change).sum(axis=1)
    slack = RELATIVE * np.square(scale).sum(axis=1) + ABSOLUTE
    rule = "the drift of ½ΣQ² is at most ½Σu² + ΣQu, u = E − budget"
    found.flag(Stage.DRIFT, "queue_next_j", block.rounds, ~(drift <= bound + slack), drift, bound, rule)
