"""Admission: who may still transmit, now that local training is over and the channel is known.

A device of a transmitting set of size n is late if sending its update at a `link_margin`-th of its SNR takes longer
than what its own computing left of the round. With n devices on the band, each has B/n of it, so dropping one
device only ever helps the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feelstream.arrays import Flags, Frozen, Ids, Reals
from feelstream.model.physics import compute_time_s, rate_bit_per_s
from feelstream.model.system import System


def on_time(n: int, ratio: Reals, left_s: Reals, system: System, bits: float | Reals | None = None) -> Flags:
    """S_bits / R(n, |g|²/margin) ≤ time left, asked of the rates so that nothing overflows.

    ratio: |g_k|²/β_k, by which the received power P_k|g_k|² = P0·ratio is above its mean; left_s: T_k − T_cmp;
    bits: of each update; None: those of all.
    Never on time with no time left, nor with a dead channel.
    """
    rate = rate_bit_per_s(
        n, system.received_power_w * ratio / system.link_margin, system.bandwidth_hz, system.noise_w_per_hz
    )
    return (left_s > 0) & (rate * np.maximum(left_s, 0) >= (system.update_bits if bits is None else bits))


def admit_paper(ratio: Reals, left_s: Reals, system: System, bits: float | Reals | None = None) -> Flags:
    """The paper's phase: while anyone is late, drop the late device with the least |g|²/β and test again.

    Equal ratios: the device with the least time left goes first.
    """
    kept = np.ones(len(ratio), dtype=bool)
    order = np.lexsort((left_s, ratio))  # weakest first
    while kept.any():
        late = kept & ~on_time(int(kept.sum()), ratio, left_s, system, bits)
        if not late.any():
            break
        kept[order[np.argmax(late[order])]] = False
    return kept


def admit_largest(ratio: Reals, left_s: Reals, system: System, bits: float | Reals | None = None) -> Flags:
    """The largest admissible set; of several, the one with the strongest channels.

    With n_k the largest size at which k is on time, n = the largest size that at least n devices reach.
    """
    strongest = np.lexsort((left_s, ratio))[::-1]
    kept = np.zeros(len(ratio), dtype=bool)
    for n in range(len(ratio), 0, -1):
        fits = on_time(n, ratio, left_s, system, bits)
        if np.count_nonzero(fits) >= n:
            kept[strongest[fits[strongest]][:n]] = True
            break
    return kept


RULES = {"paper": admit_paper, "largest": admit_largest}


@dataclass(frozen=True)
class Transmission(Frozen):
    """How the scheduled devices spent the round; one entry each, 0 where a device did not send.

    Attributes:
        sent: Who was admitted, Π̄ within Π*.
        bandwidth_share: Of the whole band, 0 to 1.
        power_w: P_k, sent with.
        t_cmp_s: Time of computing.
        t_tr_s: Time of sending.
        e_cmp_j: Energy of computing.
        e_tr_j: Energy of sending.
        lost: Of those that sent, whose update could not be decoded; None: nobody's.
    """

    sent: Flags
    bandwidth_share: Reals
    power_w: Reals
    t_cmp_s: Reals
    t_tr_s: Reals
    e_cmp_j: Reals
    e_tr_j: Reals
    lost: Flags | None = None

    @property
    def arrived(self) -> Flags:
        """Who sent, and was not lost."""
        return self.sent if self.lost is None else self.sent & ~self.lost


def transmit(system: System, ids: Ids, f_hz: Reals, beta: Reals, gain: Reals) -> Transmission:
    """Admission of the devices `ids` with equal shares of the band and P_k = P0/β_k, and its cost at the true gains.

    E_cmp for all that trained, and E_tr = P_k S_bits / R_k(n, |g_k|²) at n = |Π̄| for those that sent.
    """
    cycles = system.device_cycles[ids]
    t_cmp_s = compute_time_s(cycles, f_hz)
    ratio = gain / beta
    bits = system.bits_of(ids)
    sent = RULES[system.admission](ratio, system.time_of(ids) - t_cmp_s, system, bits)
    n = max(int(sent.sum()), 1)
    power_w = np.where(sent, system.received_power_w / beta, 0.0)
    t_tr_s = np.zeros(len(sent))
    rate = rate_bit_per_s(n, system.received_power_w * ratio[sent], system.bandwidth_hz, system.noise_w_per_hz)
    t_tr_s[sent] = np.broadcast_to(bits, len(sent))[sent] / rate
    return Transmission(
        sent=sent,
        bandwidth_share=sent / n,
        power_w=power_w,
        t_cmp_s=t_cmp_s,
        t_tr_s=t_tr_s,
        e_cmp_j=system.compute_energy_j(f_hz, ids),
        e_tr_j=power_w * t_tr_s,
    )
