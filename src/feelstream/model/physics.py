"""CPU and radio formulas in the paper's symbols. Pure functions over arrays; SI units, named in each argument.

Wherever n devices share the band, each has the share B/n of it.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Ints

RealOrArray = TypeVar("RealOrArray", float, NDArray[np.float64])


def ratio(db: RealOrArray) -> RealOrArray:
    """What a level in dB stands for.

    >>> ratio(20.0)
    100.0
    """
    return 10 ** (db / 10)


def watts(dbm: float) -> float:
    """Power in W of a level in dBm.

    >>> watts(30.0)
    1.0
    """
    return ratio(dbm) / 1000


def compute_time_s(cycles: RealOrArray, f_hz: RealOrArray) -> RealOrArray:
    """T_cmp = c / f."""
    return cycles / f_hz


def rate_bit_per_s(
    n: int | Ints, received_power_w: RealOrArray, bandwidth_hz: float, noise_w_per_hz: float
) -> RealOrArray | NDArray[np.float64]:
    """R = (B/n) log2(1 + n P|g|² / (B N0)), with P|g|² the power that arrives at the base station."""
    snr = n * received_power_w / (bandwidth_hz * noise_w_per_hz)
    return bandwidth_hz / n * np.log1p(snr) / np.log(2)
