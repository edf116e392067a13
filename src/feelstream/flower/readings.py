"""What a meter may charge: one reading, wrong by orders of magnitude, must not fill a queue for ever nor stop others.

With r = reading / the energy of the round by the scenario's model, r_k the lower median of device k's last five, and r̄
that of the other devices' r_j (1 where none has any), a reading counts up to

    LEAP · max(1, r̄, min(r_k, LEAP · max(1, r̄)))    times the model's, LEAP = 10.

A glitch is cut to ten times what is usual, a device that does use more is charged in full after its first turn, and one
that always exaggerates is charged a hundred times what the others use at most.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Nested, Reals

WINDOW = 5
LEAP = 10.0


class Readings:
    """The last readings of every device, relative to the model, by the name of the figure."""

    def __init__(self, devices: int, names: tuple[str, ...]) -> None:
        self._ratios = {name: np.full((devices, WINDOW), np.nan) for name in names}

    def charged(self, name: str, device: int, reading: float, modelled: float) -> float:
        """What counts of a reading, in its unit; all of it where the model has no figure."""
        if modelled <= 0:
            return reading
        usual = _lower_median(self._ratios[name])
        own = float(usual[device])
        usual[device] = np.nan
        others = max(1.0, np.nan_to_num(float(_lower_median(usual[None, :])[0]), nan=1.0))
        most = LEAP * max(others, min(np.nan_to_num(own, nan=1.0), LEAP * others))
        return min(reading, most * modelled)

    def usual(self, name: str) -> float:
        """The lower median over devices of their usual reading, relative to the model; NaN where there is none."""
        return float(_lower_median(_lower_median(self._ratios[name])[None, :])[0])

    def add(self, name: str, readings: Mapping[int, float]) -> None:
        """Remember what devices read this round, relative to the model."""
        table = self._ratios[name]
        for device, ratio in readings.items():
            table[device] = [*table[device, 1:], ratio]

    def snapshot(self) -> Nested:
        return {name: table.copy() for name, table in self._ratios.items()}

    def restore(self, state: Nested) -> None:
        self._ratios = {name: state[name].copy() for name in self._ratios}


def _lower_median(values: Reals) -> NDArray[np.float64]:
    """Of each row, the lower one of two in the middle; NaN is no value, and the median of none."""
    ordered = np.sort(values, axis=1)  # NaN comes last
    number = np.count_nonzero(~np.isnan(values), axis=1)
    return ordered[np.arange(len(values)), np.maximum(number - 1, 0) // 2]
