"""How many devices fit a round together."""

from __future__ import annotations

import numpy as np

from feelstream.arrays import Flags, Ids
from feelstream.policies.base import Observation


def pack(observation: Observation, candidates: Flags, most: int) -> Ids:
    """The largest set of at most `most` candidates that meets the deadline when all of it shares the band.

        n* = max {n ≤ most : n candidates have c/f_k + T~(n) ≤ T_k},      the n* with the least c/f_k − T_k

    As T~(n) grows with n, what holds for n holds for every smaller n, so n* is found by halving. Devices that
    are not available never count. Returns device numbers in ascending order; none where not even one fits.
    """
    system = observation.system
    ids = np.flatnonzero(candidates & observation.available)
    computing_s, time_s = observation.compute_time_s[ids], np.broadcast_to(system.time_of(ids), len(ids))
    order = np.argsort(computing_s if np.ndim(system.time_s) == 0 else computing_s - time_s, kind="stable")
    fastest, computing_s, time_s = ids[order], computing_s[order], time_s[order]
    fits, fails = 0, min(most, len(fastest)) + 1
    while fails - fits > 1:
        n = (fits + fails) // 2
        if (computing_s[:n] + system.surrogate_time_s(n) <= time_s[:n]).all():
            fits = n
        else:
            fails = n
    return np.sort(fastest[:fits])
