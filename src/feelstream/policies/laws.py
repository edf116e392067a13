"""What every policy is held to beyond the form of what it returns: the plan, the deadline, and physics.

A policy with a `transmit` of its own may split the band as it likes. With f the frequency at which a device computes, ρ
its share of the band and P its power, whoever made the allocation,

    c/f ≤ T_cmp for f the device's own,  E_cmp by the energy law at c/T_cmp
    ρ B log2(1 + P |g|²/(ρ B N0)) T_tr ≥ S_bits,  E_tr = P T_tr,  T_cmp + T_tr ≤ T_k,  Σ ρ ≤ 1,  P ≤ P_max,k

Not 1/n of the band and P0/β: these are the default allocation, and only that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from feelstream.arrays import Reals
from feelstream.columns import DEVICE_COLUMNS
from feelstream.guard import Array
from feelstream.model.transmission import Transmission
from feelstream.plugins import MOST

if TYPE_CHECKING:
    from feelstream.policies.base import Decision, Observation, Policy, State
    from feelstream.policies.ranking import Ranking

OWN_COLUMN = Array(kind="fiub", nan=True)
TOLERANCE = 1e-6  # relative; far above rounding, far below anything that matters


def has_the_plan(policy: Policy, found: Decision, state: State, known: Observation, rng: Any) -> str | None:
    """The schedule is of different devices, and the plan is one for so many or more.

    That feasible and energy_j are right is for `verify` to find.
    """
    chosen, plan, devices = np.asarray(found.schedule), found.plan, known.system.devices
    right = chosen.ndim == 1 and (chosen.dtype.kind in "iu" or not chosen.size)
    if not right or not ((chosen >= 0) & (chosen < devices)).all() or not np.diff(np.sort(chosen)).all():
        return f"must schedule a list of different device numbers from 0 to {devices - 1}, not {chosen.tolist()!r:.100}"
    right = isinstance(plan.n, int | np.integer) and 0 <= plan.n <= devices
    if not right or not np.array_equal(plan.transmit_time_s, known.system.planned_time_s(max(int(plan.n), 1))):
        return "must decide with a plan from observation.plan(n)"
    if not np.isfinite(plan.energy_j[plan.feasible]).all():
        return "must decide with a plan from observation.plan(n), whose energies are finite"
    if len(chosen) > plan.n:
        return f"planned for {plan.n} devices and scheduled {len(chosen)}"
    return None


def adds_columns(policy: Policy, found: Decision, state: State, known: Observation, rng: Any) -> str | None:
    """Columns of its own have names that no other column has, and a number, or NaN, for each device."""
    for name, values in found.columns.items():
        if not str(name).isidentifier() or name in DEVICE_COLUMNS:
            return f"must name its columns by words that no other column has, not {name!r:.60}"
        if why := OWN_COLUMN.problem(np.asarray(values), {"K": known.system.devices}):
            return f"must give the column '{name}' as {why}"
    return None


def is_feasible(policy: Policy, found: Decision, state: State, known: Observation, rng: Any) -> str | None:
    """Who is scheduled is available and in time: at the planned rate, or, with a split of its own, at all."""
    chosen, system = np.asarray(found.schedule, np.int64), known.system
    needed_s = known.compute_time_s[chosen]
    if (f_hz := found.f_hz) is not None:
        right = isinstance(f_hz, np.ndarray) and f_hz.shape == chosen.shape and f_hz.dtype.kind in "fiu"
        if not right or not ((f_hz > 0) & (f_hz <= known.f_hz[chosen] * (1 + 1e-9))).all():
            return "must choose one frequency above 0 per scheduled device, at most its own f_hz, or None"
        needed_s = system.cycles[chosen] / f_hz
    if policy.equal_shares:
        sending_s = np.broadcast_to(found.plan.transmit_time_s, system.devices)[chosen]
        in_time = needed_s + sending_s <= system.time_s[chosen]
    else:
        in_time = needed_s < system.time_s[chosen]
    return None if (known.available[chosen] & in_time).all() else "scheduled a device that is not feasible"


def says_why(policy: Policy, found: Decision, state: State, known: Observation, rng: Any) -> str | None:
    """Of feasible devices importances are finite, scores finite or NaN; of the scheduled, probabilities are above 0."""
    feasible = found.plan.feasible
    if found.importance is not None and not (np.abs(found.importance[feasible]) <= MOST).all():
        return (
            f"must give each feasible device a finite importance, of a magnitude of at most {MOST:g}, or None for all"
        )
    if found.score is not None and np.isinf(found.score[feasible]).any():
        return "must give each feasible device a finite score or NaN, or None for all"
    if found.probability is not None and not (found.probability[np.asarray(found.schedule, np.int64)] > 0).all():
        return "must give those that it scheduled a probability above 0"
    return None


def shares_the_band(
    policy: Policy, spent: Transmission, known: Observation, decision: Decision, gain: Reals
) -> str | None:
    """Shares of the band are at most 1 in all, of those who send and of nobody else."""
    share, sent = spent.bandwidth_share, spent.sent
    if share.sum() <= 1 + 1e-9 and not share[~sent].any() and (share[sent] > 0).all():
        return None
    return (
        f"must give each scheduled device that sends, and no other, a share of the band, at most 1 in all, not {share}"
    )


def obeys_physics(
    policy: Policy, spent: Transmission, known: Observation, decision: Decision, gain: Reals
) -> str | None:
    """An allocation of a policy's own; that of the scenario does by construction."""
    if policy.equal_shares or not (law := broken_law(known, decision, spent, gain)):
        return None
    return f"returned a transmission that cannot be: {law}"


def has_terms(policy: Policy, found: Ranking | None, state: State, known: Observation, *more: Any) -> str | None:
    """A ranking has one number per device in each of its terms."""
    if found is None or (found.terms and all(np.shape(term.values) == known.f_hz.shape for term in found.terms)):
        return None
    return "must rank by terms with one number per device, or return None"


def broken_law(observation: Observation, decision: Decision, spent: Transmission, gain: Reals) -> str | None:
    """The first law that a transmission breaks, in words with the device that does; gain: (scheduled,)."""
    system, ids, sent = observation.system, decision.schedule, spent.sent
    cycles, ceiling_hz = system.cycles[ids], observation.f_hz[ids]
    with np.errstate(over="ignore"):  # in no time at all
        used_hz = cycles / np.maximum(spent.t_cmp_s, np.finfo(float).tiny)
    share_hz = np.where(sent, spent.bandwidth_share, 1.0) * system.bandwidth_hz
    snr = spent.power_w * gain / (share_hz * system.noise_w_per_hz)
    carried = share_hz * np.log1p(snr) / np.log(2) * spent.t_tr_s
    power_max_w = system.power_max_w[ids]
    energy_j = system.compute_energy_j(np.minimum(used_hz, ceiling_hz), ids)
    laws = (
        (used_hz > ceiling_hz * (1 + TOLERANCE), "computes faster than its CPU allows: t_cmp_s is below c/f"),
        (~np.isclose(spent.e_cmp_j, energy_j, TOLERANCE, 0), "has an e_cmp_j that the energy law does not give"),
        (
            ~sent & ((spent.power_w > 0) | (spent.t_tr_s > 0) | (spent.e_tr_j > 0)),
            "spends on sending and does not send",
        ),
        (sent & (carried < system.device_bits[ids] * (1 - TOLERANCE)), "sends fewer bits than the update has"),
        (~np.isclose(spent.e_tr_j, spent.power_w * spent.t_tr_s, TOLERANCE, 0), "has an e_tr_j that is not P·t_tr_s"),
        (
            sent & (spent.t_cmp_s + spent.t_tr_s > system.time_s[ids] * (1 + TOLERANCE)) & (system.link_margin >= 1),
            "ends after the round" if (system.away_s == 0).all() else "ends after its deadline",
        ),
        (sent & (spent.power_w > power_max_w * (1 + TOLERANCE)), "sends with more power than its power_max_w"),
    )
    for bad, what in laws:
        if bad.any():
            return f"device {ids[np.argmax(bad)]} {what}"
    return None
