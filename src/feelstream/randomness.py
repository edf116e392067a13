"""Streams of randomness: every draw comes from a generator keyed by (seed, purpose, round[, device]).

Because the key, and not the order of the calls, decides the numbers, any round can be replayed alone, two
policies with one seed meet the same world, and the outcome does not depend on how the work is spread.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """What a stream is for. The numbers are part of every result: never reuse or renumber one."""

    PARTITION = 0
    ARRIVALS = 1
    LARGE_SCALE_FADING = 2
    CPU_FREQUENCY = 3
    SMALL_SCALE_FADING = 4
    POLICY = 5
    MODEL_INIT = 7
    MINI_BATCHES = 8
    BUFFER = 9
    SYNTHETIC_DATA = 10
    AVAILABILITY = 11
    HARVEST = 12
    COLLECTION = 13
    LOCAL_TRAINING = 14
    SERVER_UPDATE = 15
    FAULTS = 16
    REPORTS = 17
    PACKET_ERRORS = 18
    COSTS = 19
    FEATURES = 20
    FEATURE_NOISE = 21


def generator(seed: int, purpose: Purpose, round: int = 0, device: int | None = None) -> np.random.Generator:
    """The generator of one purpose in one round (0: before the first), for one device or for all.

    >>> generator(7, Purpose.POLICY, 3).integers(100) == generator(7, Purpose.POLICY, 3).integers(100)
    np.True_
    """
    key = (int(purpose), round) if device is None else (int(purpose), round, device)
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=key)))
