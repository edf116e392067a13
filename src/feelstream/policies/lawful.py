"""The physics that every allocation obeys, whoever made it: what a policy with a `transmit` of its own is held to.

With f the frequency at which a device computes, ρ its share of the band and P its power:

    c/f ≤ T_cmp for f the device's own,  E_cmp by the energy law at c/T_cmp
    ρ B log2(1 + P |g|²/(ρ B N0)) T_tr ≥ S_bits,  E_tr = P T_tr,  T_cmp + T_tr ≤ T_k,  Σ ρ ≤ 1,  P ≤ P_max,k

Not 1/n of the band and P0/β: these are the default allocation, and only that.
"""

from __future__ import annotations

import numpy as np

from feelstream.arrays import Reals
from feelstream.model.admission import Transmission
from feelstream.policies.base import Decision, Observation

TOLERANCE = 1e-6  # relative; far above rounding, far below anything that matters


def broken_law(observation: Observation, decision: Decision, spent: Transmission, gain: Reals) -> str | None:
    """The first law that a transmission breaks, in words with the device that does; gain: (scheduled,)."""
    system, ids, sent = observation.system, decision.schedule, spent.sent
    cycles, ceiling_hz = system.device_cycles[ids], observation.f_hz[ids]
    with np.errstate(over="ignore"):  # in no time at all
        used_hz = cycles / np.maximum(spent.t_cmp_s, np.finfo(float).tiny)
    share_hz = np.where(sent, spent.bandwidth_share, 1.0) * system.bandwidth_hz
    snr = spent.power_w * gain / (share_hz * system.noise_w_per_hz)
    carried = share_hz * np.log1p(snr) / np.log(2) * spent.t_tr_s
    power_max_w = np.broadcast_to(system.power_max_w, system.devices)[ids]
    energy_j = system.compute_energy_j(np.minimum(used_hz, ceiling_hz), ids)
    laws = (
        (used_hz > ceiling_hz * (1 + TOLERANCE), "computes faster than its CPU allows: t_cmp_s is below c/f"),
        (~np.isclose(spent.e_cmp_j, energy_j, TOLERANCE, 0), "has an e_cmp_j that the energy law does not give"),
        (
            ~sent & ((spent.power_w > 0) | (spent.t_tr_s > 0) | (spent.e_tr_j > 0)),
            "spends on sending and does not send",
        ),
        (sent & (carried < system.bits_of(ids) * (1 - TOLERANCE)), "sends fewer bits than the update has"),
        (~np.isclose(spent.e_tr_j, spent.power_w * spent.t_tr_s, TOLERANCE, 0), "has an e_tr_j that is not P·t_tr_s"),
        (
            sent & (spent.t_cmp_s + spent.t_tr_s > system.time_of(ids) * (1 + TOLERANCE)) & (system.link_margin >= 1),
            "ends after the round" if np.all(system.away_s == 0) else "ends after its deadline",
        ),
        (sent & (spent.power_w > power_max_w * (1 + TOLERANCE)), "sends with more power than its power_max_w"),
    )
    for bad, what in laws:
        if bad.any():
            return f"device {ids[np.argmax(bad)]} {what}"
    return None
