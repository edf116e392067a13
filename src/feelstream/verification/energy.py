"""Times, energies, what reports cost, the queue step, and the bound on the queues' drift.

Where the scenario's admission decides who sends, n of them get 1/n of the band each at the power P0/β. Any other
allocation is held to physics: rate·time carries the update, E = E_cmp(f) + P·T, no share twice, no frequency above the
device's, and all of it before the deadline.
"""

from __future__ import annotations

import numpy as np

from feelstream.resolved import Slot
from feelstream.verification.findings import ABSOLUTE, RELATIVE, Array, Stage, close
from feelstream.verification.rounds import Rounds
from feelstream.verification.rules import exact, holds, same

ENERGY = Stage.ENERGY


def _once_s(r: Rounds) -> Array:
    """T_tr on an equal share, without any repeat."""
    return r.sending_s(np.maximum(r.n_sent, 1), r.gain / r.beta)


def _repeats(r: Rounds) -> tuple[Array, Array, Array]:
    """How often blocks were sent again, how often that would have fitted the deadline, and what each took, s."""
    radio, once = r.run.radio, _once_s(r)
    information = r.update_bits / (1 + radio.code_overhead)
    each = once / np.maximum(np.ceil(information / radio.block_bits * (1 - 1e-9)), 1)
    spare = np.maximum(np.floor((r.time_s - r.cycles / r.used_hz - once) / each + 1e-9), 0.0)
    return np.clip(np.rint((r.t_tr_s - once) / each), 0.0, spare), spare, each


def _sending_s(r: Rounds) -> Array:
    """With a whole number of blocks that were sent again."""
    if not r.has("packet_errors"):
        return _once_s(r)
    repeats, _, each = r.found(_repeats)
    return _once_s(r) + repeats * each


def _carried_bits(r: Rounds) -> Array:
    """R·T_tr with the share and the power that are stored."""
    radio = r.run.radio
    share_hz = np.where(r.sent & (r.bandwidth_share > 0), r.bandwidth_share, 1.0) * radio.bandwidth_hz
    rate = share_hz * np.log1p(r.power_w * r.gain / (share_hz * radio.noise_w_per_hz)) / np.log(2.0)
    return rate * r.t_tr_s


def _end_s(r: Rounds) -> Array:
    return np.where(r.sent, r.t_cmp_s + r.t_tr_s, 0.0)


def _planned_s(r: Rounds) -> Array:
    return np.where(r.scheduled, r.cycles / r.used_hz + r.surrogate_s(r.n), 0.0)


def _step(r: Rounds) -> tuple[Array, Array]:
    """max(Q + E − E^avg, 0), without max where queues are signed, and the size of its terms."""
    after = r.queue_j + r.energy_j - r.budget_j
    return after if r.has("signed") else np.maximum(after, 0.0), np.abs(r.queue_j) + r.energy_j + r.budget_j


def _drift(r: Rounds) -> tuple[Array, Array, Array]:
    """L(t+1) − L(t), its bound ½Σu² + ΣQu, and what rounding may add. [R] each"""
    change = r.energy_j - r.budget_j
    drift = 0.5 * (np.square(r.queue_next_j) - np.square(r.queue_j)).sum(axis=1)
    slack = RELATIVE * np.square(r.found(_step)[1]).sum(axis=1) + ABSOLUTE
    return drift, (0.5 * np.square(change) + r.queue_j * change).sum(axis=1), slack


def _promised(r: Rounds) -> tuple[Array, Array]:
    """What each device has spent so far, and the most that a policy that keeps to its budgets lets it spend.

    By the horizon T·E^avg; else what it was granted so far, t·E^avg, and its dearest turn.
    """
    turn_j, horizon = r.e_cmp_j + r.e_tr_j, r.run.policy.pace == "horizon"
    spent, dearest = r.memory.get("turns_j", (np.zeros(r.K), np.zeros(r.K)))
    spent = spent + np.cumsum(turn_j + (r.e_report_j if horizon else 0.0), axis=0)
    dearest = np.maximum(dearest, np.maximum.accumulate(turn_j))
    r.memory["turns_j"] = spent[-1], dearest[-1]
    granted = np.broadcast_to(r.run.rounds * r.budget_j, spent.shape)
    return spent, granted if horizon else r.t * r.budget_j + dearest


# Reports before scheduling: who may have answered, and what each answer cost


def _slot(r: Rounds) -> Slot:
    assert r.run.slot is not None
    return r.run.slot


def answered(r: Rounds) -> Array:
    """Who paid for a report. [R, K]"""
    return r.e_report_j > 0


def _reporting_s(r: Rounds) -> Array:
    """b/R(K, |g|²): everyone has the K-th part of the band."""
    return r.sending_s(r.K, r.gain / r.beta, _slot(r).bits)


def _may(r: Rounds, edge: bool) -> Array:
    """Available devices that hold data and are in time for the slot; those at its edge count if `edge`."""
    asked = _slot(r)
    needed = (asked.cycles + (r.cycles if asked.trains else 0.0)) / r.f_hz + _reporting_s(r)
    unsure = close(needed, np.full_like(needed, asked.slot_s))
    shallow = r.gain / r.beta >= asked.least_fading * (1 + (-RELATIVE if edge else RELATIVE))
    return r.available & (r.stored > 0) & shallow & np.where(unsure, edge, needed <= asked.slot_s)


def _own_report_j(r: Rounds, sending_s: Array | float, at_most: bool = False) -> Array | float:
    """E_cmp(c_r), at f, or at the least frequency that leaves this time for sending; at_most: or at any below that."""
    asked, f_hz = _slot(r), r.f_hz
    if not asked.cycles:
        return 0.0
    if not asked.slow:
        return r.law_j(asked.cycles, f_hz) * r.factor
    lowest_hz = r.constants["frequency_low_hz"].min()
    left_s = asked.slot_s - (r.cycles / f_hz if asked.trains else 0.0) - sending_s
    f_hz = np.minimum(f_hz, np.maximum(asked.cycles / np.maximum(left_s, asked.cycles / f_hz), lowest_hz))
    return r.law_j(asked.cycles, f_hz, np.minimum(f_hz, lowest_hz) if at_most else None) * r.factor


def _report_j(r: Rounds) -> Array:
    """E_cmp(c_r) + (P0/β)·b/R; with E_cmp of training where it took that and the device was not scheduled; else 0."""
    asked = _slot(r)
    own = _own_report_j(r, _reporting_s(r))
    trained = np.where(r.scheduled, 0.0, r.computing_j(r.f_hz)) if asked.trains else 0.0
    return np.where(answered(r), own + r.equal_power_w * _reporting_s(r) + trained, 0.0)


def worst_report_j(r: Rounds) -> Array | float:
    """What no report exceeds: sending at the least fading, or through the slot; training where it takes that."""
    if r.run.slot is None:
        return 0.0
    asked = r.run.slot
    longest_s = asked.slot_s
    if asked.least_fading:
        longest_s = np.minimum(longest_s, r.sending_s(r.K, asked.least_fading, asked.bits))
    own = _own_report_j(r, longest_s, at_most=True)
    return own + (r.computing_j(r.f_hz) if asked.trains else 0.0) + r.equal_power_w * longest_s


ALLOCATIONS = (
    # What the scenario's admission gives
    same(ENERGY, "bandwidth_share", "n transmitters get 1/n of the band each, others none",
         lambda r: 1.0 / np.maximum(r.n_sent, 1), "equal"),
    same(ENERGY, "power_w", "P = P0/β for a transmitter, else 0", lambda r: r.equal_power_w, "equal"),
    same(ENERGY, "t_tr_s", "T_tr = S/R(|g|²) on the transmitter's share of the band, else 0", _sending_s, "equal"),
    same(ENERGY, "e_tr_j", "E_tr = P·T_tr for a transmitter, else 0",
         lambda r: r.equal_power_w * _sending_s(r), "equal"),
    holds(ENERGY, "lost", "an update is lost only after its blocks were sent again for as long as they fitted the "
          "deadline", lambda r: ~(r.lost & (r.found(_repeats)[0] < r.found(_repeats)[1])), True,
          "equal, packet_errors"),
    # What physics gives
    holds(ENERGY, "t_cmp_s", "a scheduled device computes for some time",
          lambda r: ~r.scheduled | (r.t_cmp_s > 0) | r.t_cmp_s_measured, 0.0, "not equal"),
    holds(ENERGY, "t_cmp_s", "no device computes faster than it can: c/t_cmp ≤ f",
          lambda r: r.used_hz <= r.f_hz * (1 + r.tolerance), lambda r: r.cycles / r.f_hz),
    holds(ENERGY, "t_cmp_s", "no device computes more slowly than the lowest frequency",
          lambda r: r.used_hz >= r.constants["frequency_low_hz"].min() * (1 - RELATIVE),
          lambda r: r.cycles / r.constants["frequency_low_hz"].min(), "ours, not equal"),
    exact(ENERGY, "bandwidth_share", "a device has a share of the band if it transmits, and only then",
          lambda r: r.sent, "not equal", stored=lambda r: r.bandwidth_share > 0),
    same(ENERGY, "t_tr_s", "T_tr = S/R(P·|g|²) on the transmitter's share of the band, else 0",
         lambda r: r.t_tr_s * r.update_bits / _carried_bits(r), "ours, not equal, not packet_errors"),
    holds(ENERGY, "t_tr_s", "a transmitter sends the whole update: R·T_tr ≥ S",
          lambda r: ~(r.sent & ~r.t_tr_s_measured & ~(_carried_bits(r) >= r.update_bits * (1 - r.tolerance))),
          lambda r: r.update_bits, "not equal", stored=_carried_bits),
    same(ENERGY, "e_tr_j", "E_tr = P·T_tr for a transmitter, else 0", lambda r: r.power_w * r.t_tr_s, "not equal",
         by=lambda r: r.tolerance, where=lambda r: ~r.t_tr_s_measured),
    holds(ENERGY, "power_w", "no device sends with more than its power_max_w, or than the policy allows",
          lambda r: ~(r.sent & ~(r.power_w <= r.most_power_w * (1 + r.tolerance))), lambda r: r.most_power_w,
          "not equal"),
    holds(Stage.ROUND, "bandwidth_share", "no more than the whole band is shared out",
          lambda r: r.bandwidth_share.sum(axis=1) <= 1 + RELATIVE, 1.0, "not equal",
          stored=lambda r: r.bandwidth_share.sum(axis=1)),
    holds(Stage.ROUND, "bandwidth_share", "the shares add up to 1 if anyone transmits",
          lambda r: (r.bandwidth_share.sum(axis=1) >= 1 - RELATIVE) | (r.n_sent[:, 0] == 0), 1.0, "ours, not equal",
          stored=lambda r: r.bandwidth_share.sum(axis=1)),
)  # fmt: skip

RULES = (
    same(ENERGY, "t_cmp_s", "T_cmp = c/f for a scheduled device, else 0", lambda r: r.cycles / r.used_hz, "equal"),
    *ALLOCATIONS,
    same(ENERGY, "e_cmp_j", "E_cmp = λ·c·f², or c·C·V(f)² + P_leak·c/f by operating points; f = c/t_cmp where chosen",
         lambda r: r.computing_j(r.used_hz), "law", by=lambda r: r.tolerance,
         where=lambda r: ~r.t_cmp_s_measured | r.has("ours")),
    holds(ENERGY, "t_tr_s", "a transmitter meets the true deadline: T_cmp + T_tr ≤ T_k",
          lambda r: ~(r.sent & ~(_end_s(r) <= r.time_s * (1 + r.tolerance))), lambda r: r.time_s, "margin", _end_s),
    holds(ENERGY, "t_cmp_s", "a scheduled device meets the deadline at the surrogate rate: T_cmp + T~ ≤ T_k",
          lambda r: ~(r.scheduled & ~(_planned_s(r) <= r.time_s * (1 + RELATIVE))), lambda r: r.time_s, "equal",
          _planned_s),
    same(ENERGY, "t_down_s", "T_down = bits/rate of the download, or what the cost rule says, for a scheduled device",
         lambda r: r.download_s, "downloads"),
    same(ENERGY, "e_down_j", "E_down = P_receive·T_down, or what the cost rule says, for a scheduled device",
         lambda r: r.download_j, "downloads"),
    holds(ENERGY, "e_report_j",
          "only an available device that holds data and is in time for the slot pays for a report",
          lambda r: ~answered(r) | _may(r, edge=True), 0.0, "asks"),
    holds(ENERGY, "e_report_j", "every device that may report does", lambda r: answered(r) | ~_may(r, edge=False),
          "above 0", "asks everyone"),
    same(ENERGY, "e_report_j", "E_report = E_cmp of the report's cycles + (P0/β)·b/R on the K-th part of the band",
         _report_j, "asks, law"),
    holds(Stage.WHOLE_RUN, "e_tr_j",
          "no device spends more than its budget for the whole run (pace = running: than that so far and one turn)",
          lambda r: r.found(_promised)[0] <= r.found(_promised)[1] * (1 + RELATIVE), lambda r: r.found(_promised)[1],
          "keeps to its budget", lambda r: r.found(_promised)[0]),
    same(Stage.QUEUE, "queue_next_j", "Q(t+1) = max(Q(t) + E − budget, 0); signed: without max",
         lambda r: r.found(_step)[0], scale=lambda r: r.found(_step)[1]),
    holds(Stage.DRIFT, "queue_next_j", "the drift of ½ΣQ² is at most ½Σu² + ΣQu, u = E − budget",
          lambda r: r.found(_drift)[0] <= r.found(_drift)[1] + r.found(_drift)[2], lambda r: r.found(_drift)[1],
          stored=lambda r: r.found(_drift)[0]),
)  # fmt: skip
