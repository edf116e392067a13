"""After training: who sends, and how band and power are shared out at the true gains over the time that is left."""

from __future__ import annotations

from typing import Literal

import numpy as np

from feelstream.arrays import Flags, Ids, Reals
from feelstream.model import physics
from feelstream.model.admission import Transmission
from feelstream.model.system import System
from feelstream.policies.base import Observation
from feelstream.policies.solvers.joint.allocation import allocate
from feelstream.policies.solvers.joint.devices import Devices

WEIGHT_FLOOR = 1e-3  # of the largest queue or budget: devices with an empty queue still save energy where it is free


def weights(observation: Observation) -> Reals:
    """w_k = Q_k, but at least a thousandth of the largest queue or budget: (K,), > 0."""
    largest = max(float(observation.queue_j.max()), float(observation.system.energy_budget_j.max()))
    return np.maximum(observation.queue_j, max(WEIGHT_FLOOR * largest, 1e-30))


def power_limit_w(system: System, beta: Reals) -> float:
    """P0/min β: no device ever uses more than equal powers at the receiver ask of the worst placed one."""
    return system.received_power_w / float(beta.min())


def send(observation: Observation, ids: Ids, f_hz: Reals, limit_w: float, gain: Reals) -> Transmission:
    """Least Σ w E_tr at the true gains, each device sending for all of what computing at f_hz left of the round.

    A set can send if at |g|²/link_margin and full power, limit_w, the least shares add up to at most 1. Devices that
    not even the whole band would help are dropped; then `paper` drops the least |g|²/β until the rest can send, and
    `largest` keeps as many as possible, the least shares first. What is spent follows from the true |g|².
    """
    system = observation.system
    cycles = system.device_cycles[ids]
    t_cmp_s = physics.compute_time_s(cycles, f_hz)
    left_s = system.round_s - t_cmp_s
    airtime_s, weight = system.airtime_s, weights(observation)[ids]

    def problem(gain: Reals) -> Devices:
        kappa_w = system.noise_w / np.maximum(gain, np.finfo(float).tiny)
        return Devices.of(weight, kappa_w, left_s, np.full(len(ids), limit_w), system.round_s, 0.0, airtime_s)

    sent = admit(problem(gain / system.link_margin).share_min, gain / observation.beta[ids], system.admission)
    share, power_w, t_tr_s = (np.zeros(len(ids)) for _ in range(3))
    if sent.any():
        allocation = allocate(problem(gain).take(np.flatnonzero(sent)))
        share[sent], power_w[sent], t_tr_s[sent] = allocation.share, allocation.power_w, left_s[sent]
    return Transmission(
        sent=sent,
        bandwidth_share=share,
        power_w=power_w,
        t_cmp_s=t_cmp_s,
        t_tr_s=t_tr_s,
        e_cmp_j=physics.compute_energy_j(system.power_coefficient, cycles, f_hz),
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
