"""Packet errors: updates are sent in blocks of finite length, each of which may fail and be sent again in time.

An update of S bits on the air carries S/(1 + overhead) bits of information in m blocks of L = S/((1 + overhead) m) bits
and n = ρ B T_tr/m channel uses. By the normal approximation a block fails with probability

    ε = Q((n C − L + ½ log2 n)/√(n V)),     C = log2(1 + γ),     V = (1 − (1 + γ)^−2) log2² e,     γ = P|g|²/(ρ B N0)

A block that fails is sent again as long as another fits before the deadline. An update arrives if all its blocks do.

Reference: Y. Polyanskiy, H. V. Poor, S. Verdú, "Channel Coding Rate in the Finite Blocklength Regime", IEEE Trans. Inf.
Theory 56(5), 2010.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from feelstream.arrays import Ids, Ints, Reals
from feelstream.model.admission import Transmission
from feelstream.model.system import System

SLACK = 1e-9  # of a block: what rounding may take from the time for another one
MOST_REPEATS = 2**31 - 1


def blocks(update_bits: float, block_bits: float, overhead: float) -> int:
    """m = ⌈S/((1 + overhead) L)⌉."""
    return max(int(np.ceil(update_bits / (1 + overhead) / block_bits * (1 - SLACK))), 1)


def block_error(uses: Reals, bits: float, snr: Reals) -> Reals:
    """ε of blocks of so many channel uses and bits at the SNR γ; 1 where nothing arrives.

    >>> block_error(np.array([1000.0]), 900.0, np.array([1.0])).round(4)
    array([0.0039])
    """
    from scipy.special import ndtr  # here: slow to import, and few scenarios need it

    snr = np.maximum(snr, np.finfo(float).tiny)
    capacity = np.log1p(snr) / np.log(2)
    dispersion = snr * (snr + 2) / np.square(1 + snr) / np.log(2) ** 2
    margin = uses * capacity - bits + 0.5 * np.log2(np.maximum(uses, 1.0))
    spread = np.sqrt(np.maximum(uses * dispersion, np.finfo(float).tiny))
    return ndtr(-margin / spread)


def sent_in_blocks(system: System, ids: Ids, gain: Reals, spent: Transmission, lot: Reals) -> Transmission:
    """What becomes of a transmission where blocks fail: who is lost, and what repeating took.

    gain: (scheduled,); lot: (scheduled,), uniform on (0, 1): with it a device has as many failures as the quantile of
    their number, the negative binomial law of m successes.
    """
    sent = np.flatnonzero(spent.sent)
    m = blocks(system.update_bits, system.block_bits, system.code_overhead)
    share_hz = spent.bandwidth_share[sent] * system.bandwidth_hz
    snr = spent.power_w[sent] * gain[sent] / (share_hz * system.noise_w_per_hz)
    block_s = spent.t_tr_s[sent] / m
    bits = system.update_bits / (1 + system.code_overhead) / m
    error = block_error(share_hz * block_s, bits, snr)
    deadline_s = np.broadcast_to(system.time_s, system.devices)[ids[sent]]
    left_s = np.maximum(deadline_s - spent.t_cmp_s[sent] - spent.t_tr_s[sent], 0.0)
    spare = np.floor(np.minimum(left_s / block_s + SLACK, MOST_REPEATS)).astype(np.int64)
    repeats = failures(lot[sent], m, error, spare)
    lost = np.zeros(len(ids), bool)
    lost[sent] = repeats > spare
    t_tr_s = spent.t_tr_s.copy()
    t_tr_s[sent] += np.minimum(repeats, spare) * block_s
    return replace(spent, t_tr_s=t_tr_s, e_tr_j=spent.power_w * t_tr_s, lost=lost)


def failures(lot: Reals, m: int, error: Reals, most: Ints) -> Ints:
    """The least F with P(at most F failures before m successes) ≥ lot; most + 1 where that is more than `most`."""
    from scipy.special import nbdtr

    low, high = np.zeros(len(lot), np.int64), most + 1
    while (low < high).any():  # by halving: the distribution function rises in F
        middle = (low + high) // 2
        enough = nbdtr(middle, m, 1 - error) >= lot
        low, high = np.where(enough | (low >= high), low, middle + 1), np.where(enough, middle, high)
    return low
