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
    time_s = observation.compute_time_s + system.away_s
    ids = np.flatnonzero(candidates & observation.available)
    fastest = ids[np.argsort(time_s[ids], kind="stable")]
    fits, fails = 0, min(most, len(fastest)) + 1
    while fails - fits > 1:
        n = (fits + fails) // 2
        if time_s[fastest[n - 1]] + system.surrogate_time_s(n) <= system.round_s:
            fits = n
        else:
            fails = n
    return np.sort(fastest[:fits])
