"""CPU cores: operating points, and the voltage that a frequency needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from feelstream.arrays import Reals
from feelstream.plugins import NonNegative, Positive, Settings

AT_A_POINT = 1e-9  # a frequency this much above an operating point, relatively, is that point: c/(c/f) is not quite f
PICOFARAD = 1e-12  # µW/(MHz·V²) in J/V²


class Core(Settings):
    """One kind of CPU core. Voltages must not fall as frequencies rise."""

    core: str = Field(default="", description="what it is, for people")
    source: tuple[str, ...] = Field(default=(), description="where the numbers are from")
    dynamic_power_coefficient: Positive = Field(
        description="C_eff in P = C_eff·f·V², µW/(MHz·V²), which is pF; > 0; a property of that name in a device tree"
    )
    frequency_hz: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=100)] = Field(
        description="frequencies of the operating points, Hz; > 0, rising"
    )
    voltage_v: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=100)] = Field(
        description="voltages of the operating points, V; > 0, not falling; as many as frequencies"
    )
    leakage_w: NonNegative = Field(default=0.0, description="static power while the core computes, W; ≥ 0")

    @model_validator(mode="after")
    def _table(self) -> Self:
        if len(self.frequency_hz) != len(self.voltage_v):
            raise ValueError(
                f".voltage_v: must be as many as the {len(self.frequency_hz)} frequencies, not {len(self.voltage_v)}"
            )
        if (np.diff(self.frequency_hz) <= 0).any():
            raise ValueError(".frequency_hz: each must be above the one before")
        if (np.diff(self.voltage_v) < 0).any():
            raise ValueError(".voltage_v: none may be below the one before")
        return self

    @property
    def capacitance_f(self) -> float:
        """C_eff, in J/V² per cycle."""
        return self.dynamic_power_coefficient * PICOFARAD

    @cached_property
    def points(self) -> tuple[Reals, Reals]:
        """(Hz, V) of the operating points, as arrays."""
        return np.array(self.frequency_hz), np.array(self.voltage_v)

    def interpolated_v(self, f_hz: Reals) -> Reals:
        """V between the points on the straight line, below the lowest and above the highest that of the point."""
        return np.interp(f_hz, *self.points)

    def stepped_v(self, f_hz: Reals) -> Reals:
        """V of the lowest point whose frequency is at least f_hz, above the highest that of the highest."""
        points_hz, points_v = self.points
        above = np.searchsorted(points_hz * (1 + AT_A_POINT), f_hz)
        return points_v[np.minimum(above, len(points_v) - 1)]


@dataclass(frozen=True, eq=False)
class Lines:
    """V = offset_v + slope_v_s·f on each of M intervals low_hz < f ≤ high_hz, which cover (0, ∞); (M,) each."""

    low_hz: Reals
    high_hz: Reals
    offset_v: Reals
    slope_v_s: Reals


def lines(points_hz: Reals, points_v: Reals, discrete: bool) -> Lines:
    """The intervals of V(f): flat up to the lowest point and beyond the highest; between, steps or slopes."""
    low, high = np.append(0.0, points_hz), np.append(points_hz, np.inf)
    if discrete:
        return Lines(low, high, np.append(points_v, points_v[-1]), np.zeros(len(low)))
    slope = np.concatenate([[0.0], np.diff(points_v) / np.diff(points_hz), [0.0]])
    offset = np.concatenate([points_v[:1], points_v[:-1] - slope[1:-1] * points_hz[:-1], points_v[-1:]])
    return Lines(low, high, offset, slope)
