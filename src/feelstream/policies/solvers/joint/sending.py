"""After training: who sends, and how band and power are shared out at the true gains over the time that is left."""

from __future__ import annotations

from typing import Literal

import numpy as np

from feelstream.arrays import Flags, Ids, Reals
from feelstream.model import physics
from feelstream.model.system import System
from feelstream.model.transmission import Transmission
from feelstream.policies.base import Observation
from feelstream.policies.solvers.joint.allocation import allocate
from feelstream.policies.solvers.joint.devices import Devices

WEIGHT_FLOOR = 1e-3  # of the largest queue or budget: devices with an empty queue still save energy where it is free


def weights(observation: Observation) -> Reals:
    """w_k = Q_k, but at least a thousandth of the largest queue or budget: (K,), > 0."""
    largest = max(float(observation.queue_j.max()), float(observation.system.energy_budget_j.max()))
    return np.maximum(observation.queue_j, max(WEIGHT_FLOOR * largest, 1e-30))


def power_limit_w(system: System, beta: Reals, most_w: float | None = None) -> float | Reals:
    """The power that no device exceeds: most_w, by default P0/min β, or its own limit, (K,), where that is less.

    P0/min β is what equal powers at the receiver ask of the worst placed device.
    """
    limit_w = system.received_power_w / float(beta.min()) if most_w is None else most_w
    return np.minimum(limit_w, system.power_max_w) if system.limits_power else limit_w


def send(
    observation: Observation,
    ids: Ids,
    f_hz: Reals,
    limit_w: float | Reals,
    gain: Reals,
    weight: Reals | None = None,
    allowance_j: Reals | None = None,
) -> Transmission:
    """Least Σ w E_tr at the true gains, each device sending for all of what computing at f_hz left of the round.

    A set can send if at |g|²/link_margin and full power, limit_w, the least shares add up to at most 1. Devices that
    not even the whole band would help are dropped; then `paper` drops the least |g|²/β until the rest can send, and
    `largest` keeps as many as possible, the least shares first. What is spent follows from the true |g|².

    weight: (scheduled,), by default `weights`. allowance_j: (scheduled,), what each may spend in the round: nobody
    sends with more power than (allowance − E_cmp)/T_tr at the true gain, and a least share is then what that takes.
    """
    system = observation.system
    cycles = system.device_cycles[ids]
    t_cmp_s = physics.compute_time_s(cycles, f_hz)
    e_cmp_j = system.compute_energy_j(f_hz, ids)
    left_s = system.time_s - t_cmp_s
    weight = weights(observation)[ids] if weight is None else weight

    def problem(gain: Reals, power_w: Reals) -> Devices:
        kappa_w = system.noise_w / np.maximum(gain, np.finfo(float).tiny)
        return Devices.of(weight, kappa_w, left_s, power_w, float(system.time_s), 0.0, system.airtime_s)

    full_w = np.broadcast_to(limit_w, system.devices)[ids]
    tested, true = problem(gain / system.link_margin, full_w), problem(gain, full_w)
    share_min = tested.share_min
    if allowance_j is not None:
        affordable_w = np.divide(allowance_j - e_cmp_j, left_s, out=np.zeros(len(ids)), where=left_s > 0)
        true = problem(gain, np.clip(affordable_w * (1 - 1e-9), np.finfo(float).tiny, full_w))
        share_min = np.maximum(share_min, true.share_min)
    sent = admit(share_min, gain / observation.beta[ids], system.admission)
    share, power_w, t_tr_s = (np.zeros(len(ids)) for _ in range(3))
    if sent.any():
        allocation = allocate(true.take(np.flatnonzero(sent)))
        share[sent], power_w[sent], t_tr_s[sent] = allocation.share, allocation.power_w, left_s[sent]
    return Transmission(
        sent=sent,
        bandwidth_share=share,
        power_w=power_w,
        t_cmp_s=t_cmp_s,
        t_tr_s=t_tr_s,
        e_cmp_j=e_cmp_j,
        e_tr_j=power_w * t_tr_s,
    )


def admit(share_min: Reals, ratio: Reals, rule: Literal["paper", "largest"]) -> Flags:
    """Who sends, given the least share of each and |g|²/β; no set whose least shares exceed the band together.

    paper: whoever not even the whole band would help is dropped, then the least |g|²/β until the rest fits;
    largest: the most devices that fit, so the least shares. Equals: the later one is dropped first.
    """
    order = np.argsort(share_min if rule == "largest" else -ratio, kind="stable")
    order = order[share_min[order] <= 1]
    sent = np.zeros(len(ratio), bool)
    sent[order[np.cumsum(share_min[order]) <= 1]] = True  # sums only grow, so this is the leading part that fits
    return sent
