"""Sending updates: who is admitted, what the round then costs, what packet errors do to it, and the energy queues.

Admission: local training is over and the channel is known. A device of a transmitting set of size n is late if sending
its update at a `link_margin`-th of its SNR takes longer than what its own computing left of the round. With n devices
on the band, each has B/n of it, so dropping one device only ever helps the others.

Packet errors: updates are sent in blocks of finite length, each of which may fail and be sent again in time. An update
of S bits on the air carries S/(1 + overhead) bits of information in m blocks of L = S/((1 + overhead) m) bits and
n = ρ B T_tr/m channel uses. By the normal approximation a block fails with probability

    ε = Q((n C − L + ½ log2 n)/√(n V)),     C = log2(1 + γ),     V = (1 − (1 + γ)^−2) log2² e,     γ = P|g|²/(ρ B N0)

A block that fails is sent again as long as another fits before the deadline. An update arrives if all its blocks do.

Reference: Y. Polyanskiy, H. V. Poor, S. Verdú, "Channel Coding Rate in the Finite Blocklength Regime", IEEE Trans. Inf.
Theory 56(5), 2010.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from feelstream.arrays import Flags, Frozen, Ids, Ints, Reals
from feelstream.model.physics import compute_time_s, rate_bit_per_s
from feelstream.model.system import System

SLACK = 1e-9  # of a block: what rounding may take from the time for another one
MOST_REPEATS = 2**31 - 1


def on_time(n: int | Ints, ratio: Reals, left_s: Reals, system: System, bits: Reals) -> Flags:
    """S_bits / R(n, |g|²/margin) ≤ time left, asked of the rates so that nothing overflows.

    ratio: |g_k|²/β_k, by which the received power P_k|g_k|² = P0·ratio is above its mean; left_s: T_k − T_cmp;
    bits: of each update. Never on time with no time left, nor with a dead channel.
    """
    rate = rate_bit_per_s(
        n, system.received_power_w * ratio / system.link_margin, system.bandwidth_hz, system.noise_w_per_hz
    )
    return (left_s > 0) & (rate * np.maximum(left_s, 0) >= bits)


def most_on_time(n: int, ratio: Reals, left_s: Reals, system: System, bits: Reals) -> Ints:
    """(devices,) the largest size of a set, up to n, in which each is on time; 0: late even alone. By halving."""
    most, fails = np.zeros(len(ratio), np.int64), np.full(len(ratio), n + 1)
    while (unsure := fails - most > 1).any():
        middle = np.maximum((most + fails) // 2, 1)
        fits = on_time(middle, ratio, left_s, system, bits)
        most, fails = np.where(unsure & fits, middle, most), np.where(unsure & ~fits, middle, fails)
    return most


def admit_paper(ratio: Reals, left_s: Reals, system: System, bits: Reals) -> Flags:
    """The paper's phase: while anyone is late, drop the late device with the least |g|²/β and test again.

    Equal ratios: the device with the least time left goes first. Who is on time in a set is on time in every smaller
    one, so one pass from the weakest to the strongest finds whom the phase drops.
    """
    n = len(ratio)
    kept = on_time(max(n, 1), ratio, left_s, system, bits)
    late = np.flatnonzero(~kept)
    if not len(late):
        return kept
    most = most_on_time(n, ratio[late], left_s[late], system, bits[late])
    kept[late] = True
    for at in np.lexsort((left_s[late], ratio[late])).tolist():
        if most[at] < n:
            kept[late[at]] = False
            n -= 1
    return kept


def admit_largest(ratio: Reals, left_s: Reals, system: System, bits: Reals) -> Flags:
    """The largest admissible set; of several, the one with the strongest channels.

    With n_k the largest size at which k is on time, n = the largest size that at least n devices reach.
    """
    most = most_on_time(len(ratio), ratio, left_s, system, bits)
    n = np.count_nonzero(np.sort(most)[::-1] > np.arange(len(most)))
    strongest = np.lexsort((left_s, ratio))[::-1]
    kept = np.zeros(len(ratio), dtype=bool)
    kept[strongest[most[strongest] >= n][:n]] = True
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
    t_cmp_s = compute_time_s(system.cycles[ids], f_hz)
    ratio = gain / beta
    bits = system.device_bits[ids]
    sent = RULES[system.admission](ratio, system.time_s[ids] - t_cmp_s, system, bits)
    n = max(int(sent.sum()), 1)
    power_w = np.where(sent, system.received_power_w / beta, 0.0)
    t_tr_s = np.zeros(len(sent))
    rate = rate_bit_per_s(n, system.received_power_w * ratio[sent], system.bandwidth_hz, system.noise_w_per_hz)
    t_tr_s[sent] = bits[sent] / rate
    return Transmission(
        sent=sent,
        bandwidth_share=sent / n,
        power_w=power_w,
        t_cmp_s=t_cmp_s,
        t_tr_s=t_tr_s,
        e_cmp_j=system.compute_energy_j(f_hz, ids),
        e_tr_j=power_w * t_tr_s,
    )


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
    deadline_s = system.time_s[ids[sent]]
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


def next_queue_j(queue_j: Reals, energy_j: Reals, budget_j: Reals, signed: bool = False) -> Reals:
    """Q_k(t+1) = max(Q_k(t) + E_k(t) − E_k^avg, 0), all (K,), J: devices that spend nothing drain by their budget.

    signed: without max[·, 0], as line 14 of the paper's Algorithm 1 prints it: below 0 a queue is credit.

    >>> next_queue_j(np.array([0.0, 3.0]), np.array([2.0, 0.0]), np.array([0.5, 0.5])).tolist()
    [1.5, 2.5]
    """
    after_j = queue_j + energy_j - budget_j
    return after_j if signed else np.maximum(after_j, 0.0)
