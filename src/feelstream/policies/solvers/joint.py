"""The joint problem of a round: as planned, the frequencies of its solution, and what is sent once gains are known."""

from __future__ import annotations

import numpy as np

from feelstream.arrays import Flags, Ids, Reals
from feelstream.errors import ScenarioError
from feelstream.model.physics import compute_time_s
from feelstream.model.system import System
from feelstream.model.transmission import Transmission
from feelstream.policies.base import Observation
from feelstream.policies.solvers.allocation import Allocation, allocate
from feelstream.policies.solvers.devices import Devices
from feelstream.policies.solvers.modes import Modes, Problem
from feelstream.resolved import Admission

WEIGHT_FLOOR = 1e-3  # of the largest queue or budget: devices with an empty queue still save energy where it is free
LEAST_SHARE_OF_ROUND = 1e-7  # that computing takes: what is left of the round is then known to 1e-9 or better


def check_plannable(system: System, policy: str) -> None:
    """Refuse rounds of which computing takes so little that T_rd − τ would be all rounding, and laws without pieces."""
    if system.compute_pieces() is None:
        law = system.energy.plugin_name()
        raise ScenarioError(f"cpu.energy.kind: {policy} chooses frequencies, so {law} must state its pieces")
    shortest_s = compute_time_s(float(system.cycles.min()), system.frequency_hz[1])
    if shortest_s < LEAST_SHARE_OF_ROUND * system.round_s:
        raise ScenarioError(
            f"system.round_s: with {policy}, computing at the highest frequency must take at least "
            f"{LEAST_SHARE_OF_ROUND:g} of a round; it takes {shortest_s:.3g} s of {system.round_s:g} s"
        )


def planned_devices(observation: Observation, n: int, weight: Reals, limit_w: Reals, fade_reserve: float) -> Problem:
    """The problem of all devices as it is known when scheduling n of them: h_k = γ β_k.

    The planned power stays `fade_reserve`·link_margin times below limit_w, unless a device at full frequency needs
    more for an n-th of the band: then that, so that all of Π_f(n) can be planned.
    """
    system = observation.system
    sending_s = system.time_s - observation.compute_time_s
    kappa_w, airtime_s = system.noise_w / (system.rate_discount * observation.beta), system.airtime_s
    with np.errstate(over="ignore", divide="ignore"):
        equal_w = kappa_w / n * np.expm1(airtime_s * n / np.maximum(sending_s, 0.0))
    # A rounding more, so that the share of such a device is an n-th and not a hair above it.
    power_w = np.clip(equal_w * (1 + 1e-12), limit_w / (fade_reserve * system.link_margin), limit_w)
    return planned(system, observation.f_hz, weight, kappa_w, power_w)


def planned(system: System, f_hz: Reals, weight: Reals, kappa_w: Reals, power_w: Reals) -> Problem:
    """Every device computes at some frequency from the lowest of the scenario to its own, f_hz; (K,) each.

    A law of one falling piece makes devices with one curve, any other makes devices with modes: on a piece that falls,
    any frequency of it; on one that does not, the highest.
    """
    pieces = system.compute_pieces()
    assert pieces is not None  # check_plannable refused other laws
    one_curve = pieces.falls.shape[1] == 1 and bool(pieces.falls.all())
    ceiling, cycles, time_s = f_hz[:, None], system.cycles[:, None], float(system.time_s[0])
    floor = np.minimum(system.frequency_hz[0], ceiling)
    high, low = np.minimum(pieces.high_hz, ceiling), np.maximum(pieces.low_hz, floor)
    usable = (pieces.low_hz < ceiling) & (high >= floor)
    falls = pieces.falls & usable & ((low < high) | one_curve)
    sending_s = time_s - cycles / high
    fixed_j = pieces.fixed_j
    if not one_curve:
        fixed_j = np.where(falls, fixed_j, np.stack([system.compute_energy_j(column) for column in high.T], axis=1))

    def where_falls(column: Reals) -> Reals:
        return np.where(falls, column, 0.0)

    each = Devices.of(
        weight[:, None],
        kappa_w[:, None],
        np.where(usable, sending_s, 0.0),
        power_w[:, None],
        time_s,
        where_falls(pieces.square_j_s2),
        system.airtime_s,
        np.maximum(np.where(falls, time_s - cycles / low, sending_s), 0.0),
        fixed_j,
        where_falls(pieces.inverse_j_s),
        where_falls(pieces.leakage_w),
    )
    return each.picked(lambda column: column[:, 0]) if one_curve else Modes(each, high)


def frequencies(observation: Observation, devices: Problem, schedule: Ids, allocation: Allocation) -> Reals:
    """f = c/(T − τ) of the scheduled `devices`; rounding must not ask for more than one has, nor less than the lowest.

    On a piece of a law that does not fall the best frequency is its highest, an operating point to the last bit.
    """
    system = observation.system
    f_hz = np.maximum(
        system.cycles[schedule] / (system.time_s[schedule] - allocation.sending_s), system.frequency_hz[0]
    )
    if isinstance(devices, Modes) and allocation.mode is not None:
        f_hz = np.where(devices.in_mode(allocation.mode).falls, f_hz, np.inf)
        f_hz = np.minimum(f_hz, devices.highest_hz(allocation.mode))
    return np.minimum(f_hz, observation.f_hz[schedule])


def weights(observation: Observation) -> Reals:
    """w_k = Q_k, but at least a thousandth of the largest queue or budget: (K,), > 0."""
    largest = max(float(observation.queue_j.max()), float(observation.system.energy_budget_j.max()))
    return np.maximum(observation.queue_j, max(WEIGHT_FLOOR * largest, 1e-30))


def most_power_w(system: System, beta: Reals, most_w: float | None = None) -> Reals:
    """(K,) the power that no device exceeds: most_w, by default P0/min β, or its own limit where that is less.

    P0/min β is what equal powers at the receiver ask of the worst placed device.
    """
    return np.minimum(system.received_power_w / float(beta.min()) if most_w is None else most_w, system.power_max_w)


def send(
    observation: Observation,
    ids: Ids,
    f_hz: Reals,
    limit_w: Reals,
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
    time_s = float(system.time_s[0])  # one for all: other deadlines are refused with the scenario
    t_cmp_s = compute_time_s(system.cycles[ids], f_hz)
    e_cmp_j = system.compute_energy_j(f_hz, ids)
    left_s = time_s - t_cmp_s
    weight = weights(observation)[ids] if weight is None else weight

    def problem(gain: Reals, power_w: Reals) -> Devices:
        kappa_w = system.noise_w / np.maximum(gain, np.finfo(float).tiny)
        return Devices.of(weight, kappa_w, left_s, power_w, time_s, 0.0, system.airtime_s)

    full_w = limit_w[ids]
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


def admit(share_min: Reals, ratio: Reals, rule: Admission) -> Flags:
    """Who sends, given the least share of each and |g|²/β; no set whose least shares exceed the band together.

    paper: whoever not even the whole band would help is dropped, then the least |g|²/β until the rest fits;
    largest: the most devices that fit, so the least shares. Equals: the later one is dropped first.
    """
    order = np.argsort(share_min if rule == "largest" else -ratio, kind="stable")
    order = order[share_min[order] <= 1]
    sent = np.zeros(len(ratio), bool)
    sent[order[np.cumsum(share_min[order]) <= 1]] = True  # sums only grow, so this is the leading part that fits
    return sent
