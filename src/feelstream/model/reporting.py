"""The reporting slot, who answers in it at which cost; and who delivers what was scheduled.

The slot is the first slot_s of the round, and each of the K devices has the K-th part of the band in it. A device that
is asked computes at the frequency of this round, then sends with P_k = P0/β_k:

    T_report = c_r/f + b/R(K, |g|²),   E_report = E_cmp(c_r, f_r) + P_k · b/R(K, |g|²)

It answers where T_report ≤ slot_s and |g|²/β ≥ least_fading. A device knows its own link, so one that would be late
does not begin and pays nothing. f_r is f, or with reports.pace = slow the least frequency that is in time, at least the
lowest there is. Where the report is the norm of an update, the device trains for it: that takes c more cycles, which
are charged with the report unless the device is scheduled, since then they are charged as its training.

Reliability: how likely each device is to deliver, learned from its turns, against devices that report and fail.

    d ← γ d + 1{its update could be received},  f ← γ f + 1{it could not}     after each turn of a device, γ = 0.9
    p = (1 + d) / (1 + d + f)                   the mean of the Beta posterior (1 + d, f), with forgetting
    after the r-th failure in a row the device rests for min(2^(r−1), 32) rounds; its next turn is a probe

A device that has never failed has p = 1 exactly: the prior is optimistic, so where nothing fails nothing changes.
Without this, data that is never used stays fresh, and a device that never delivers would gain importance with every
round. A weak channel is no failure: it is part of the model, and admission deals with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feelstream.arrays import Flags, Ids, Ints, Nested, Reals, read_only
from feelstream.model import physics
from feelstream.model.system import System
from feelstream.resolved import Slot

FORGETTING = 0.9  # γ
LONGEST_REST = 32  # rounds


@dataclass(frozen=True, eq=False)
class Reporting:
    """Who answered in a round, and at which cost; (K,) each, 0 for those who did not answer."""

    answered: Flags
    own_j: Reals  # of the report itself
    training_j: Reals  # of training for it

    def energy_j(self, schedule: Ids) -> Reals:
        """(K,) E_report; a scheduled device has trained once, and pays for that as for any training."""
        training_j = self.training_j.copy()
        training_j[schedule] = 0.0
        return self.own_j + training_j


def needed_s(slot: Slot, system: System, f_hz: Reals, ratio: Reals) -> Reals:
    """(K,) T_report. ratio: |g_k|²/β_k, by which the received power is above its mean."""
    cycles = slot.cycles + system.cycles if slot.trains else slot.cycles
    with np.errstate(divide="ignore"):  # a dead channel: for ever
        return cycles / f_hz + slot.bits / _rate(system, ratio)


def reporting(slot: Slot, system: System, f_hz: Reals, beta: Reals, gain: Reals, asked: Flags) -> Reporting:
    """Of the devices that were asked, who answers, and at which cost."""
    ratio = gain / beta
    answered = asked & (needed_s(slot, system, f_hz, ratio) <= slot.slot_s) & (ratio >= slot.least_fading)
    ids = np.flatnonzero(answered)
    own_j, training_j = np.zeros(system.devices), np.zeros(system.devices)
    sending_s = slot.bits / np.asarray(_rate(system, ratio[ids]))
    computing_j = system.compute_energy_j(_computing_hz(slot, system, f_hz[ids], sending_s, ids), ids, slot.cycles)
    own_j[ids] = computing_j + system.received_power_w / beta[ids] * sending_s
    if slot.trains:
        training_j[ids] = system.compute_energy_j(f_hz[ids], ids)
    return Reporting(answered, own_j, training_j)


def worst_case_j(slot: Slot, system: System, f_hz: Reals, beta: Reals, slowest_hz: float | None = None) -> Reals:
    """(K,) what no report exceeds: that of sending at least_fading, and E_cmp of training where it takes that.

    Without a least fading that is sending through the whole slot. Of a device that is scheduled, training is in its own
    worst case already; so this is more than enough. slowest_hz: where f_hz is not known, but lies from there to f_hz.
    """
    longest_s = slot.slot_s
    if slot.least_fading:
        longest_s = min(longest_s, slot.bits / float(_rate(system, np.array(slot.least_fading))))
    fastest_hz = _computing_hz(slot, system, f_hz, longest_s)
    lowest_hz = system.frequency_hz[0] if slot.slow else slowest_hz
    least_hz = fastest_hz if lowest_hz is None else np.minimum(lowest_hz, fastest_hz)
    own_j = system.most_compute_energy_j(fastest_hz, least_hz, slot.cycles)  # a core that leaks takes more when slow
    own_j = own_j + system.received_power_w / beta * longest_s
    return own_j + system.compute_energy_j(f_hz) if slot.trains else own_j


def _computing_hz(
    slot: Slot, system: System, f_hz: Reals, sending_s: float | Reals, ids: Ids | slice = slice(None)
) -> Reals:
    """f_r, where sending takes so long. Training for a report is at f."""
    if not slot.slow or not slot.cycles:
        return f_hz
    training_s = system.cycles[ids] / f_hz if slot.trains else 0.0
    left_s = np.maximum(slot.slot_s - training_s - sending_s, slot.cycles / f_hz)
    return np.minimum(f_hz, np.maximum(slot.cycles / left_s, system.frequency_hz[0]))


def _rate(system: System, ratio: Reals) -> Reals:
    received_w = system.received_power_w * ratio
    return physics.rate_bit_per_s(system.devices, received_w, system.bandwidth_hz, system.noise_w_per_hz)


@dataclass(frozen=True)
class Reliability:
    """What the server remembers of every device's turns, (K,) each."""

    delivered: Reals  # d
    failed: Reals  # f
    in_a_row: Ints  # r, failures since it last delivered
    rests_until: Ints  # the last round of its rest; 0: none

    @staticmethod
    def first(devices: int) -> Reliability:
        whole = np.zeros(devices, np.int64)
        return Reliability(np.zeros(devices), np.zeros(devices), whole, whole.copy())

    @property
    def expected(self) -> Reals:
        """(K,) p, above 0 and at most 1."""
        return read_only((1 + self.delivered) / (1 + self.delivered + self.failed))

    def ready(self, able: Flags, round: int) -> Flags:
        """(K,) of those who may be scheduled, the ones that do not rest; all of them where that would be nobody."""
        awake = able & (self.rests_until < round)
        return awake if awake.any() else able

    def after(self, round: int, schedule: Ids, arrived: Flags) -> Reliability:
        """After a round in which these devices had a turn; arrived: of those, whose update could be received."""
        delivered, failed = self.delivered.copy(), self.failed.copy()
        in_a_row, rests_until = self.in_a_row.copy(), self.rests_until.copy()
        delivered[schedule] = FORGETTING * delivered[schedule] + arrived
        failed[schedule] = FORGETTING * failed[schedule] + ~arrived
        in_a_row[schedule] = np.where(arrived, 0, in_a_row[schedule] + 1)
        rest = np.minimum(2.0 ** (np.minimum(in_a_row[schedule], 60) - 1), LONGEST_REST).astype(np.int64)
        rests_until[schedule] = np.where(arrived, 0, round + rest)
        return Reliability(delivered, failed, in_a_row, rests_until)

    def snapshot(self) -> Nested:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}
