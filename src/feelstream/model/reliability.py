"""How likely each device is to deliver, learned from its turns; the server's part against devices that report and fail.

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

FORGETTING = 0.9  # γ
LONGEST_REST = 32  # rounds


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
