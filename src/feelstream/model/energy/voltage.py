"""c C_eff V(f)²: energy per cycle follows the voltage that a frequency needs, from tables of operating points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from feelstream.arrays import Flags, Reals
from feelstream.model.energy.base import Cpus, EnergyLaw, Pieces
from feelstream.model.energy.cores import Core, lines
from feelstream.plugins import NonNegative


class Voltage(EnergyLaw):
    """E = c C_eff V(f)² + P_leak c/f, with C_eff, V and P_leak of each device's profile.

    Below its lowest operating point a core runs at that point for part of the time, so V stays what it is there; above
    its highest, which only a device that reports a frequency of its own can be, V is that of the highest.
    """

    tag: ClassVar[str] = "voltage"
    needs_cores: ClassVar[bool] = True

    points: Literal["interpolated", "discrete"] = Field(
        default="interpolated",
        description="V between operating points: interpolated: on the straight line; discrete: that of the next higher",
    )
    leakage_w: NonNegative | None = Field(
        default=None, description="static power while a device computes, W; ≥ 0; unset: that of its profile, 0 for ours"
    )

    def energy_j(self, cpus: Cpus, cycles: Reals, f_hz: Reals) -> Reals:
        return self._dynamic_j(cpus, cycles, f_hz) + self._leakage_w(cpus) * (cycles / f_hz)

    def most_j(self, cpus: Cpus, cycles: Reals, slowest_hz: Reals, f_hz: Reals) -> Reals:
        """The voltage of f_hz, leaking for as long as at slowest_hz."""
        return self._dynamic_j(cpus, cycles, f_hz) + self._leakage_w(cpus) * (cycles / np.minimum(slowest_hz, f_hz))

    def pieces(self, cpus: Cpus, cycles: Reals) -> Pieces:
        """On a line V = v + s f:  E = c C (v + s c/t)² + P_leak t,  where that falls in t."""
        tables = [self._stretches(core) for core in cpus.cores]
        most = max(len(table.low_hz) for table in tables)
        which = np.zeros(len(cycles), np.int64) if cpus.core is None else cpus.core

        def column(name: str) -> Reals:
            rows = [getattr(table, name) for table in tables]
            padded = [np.concatenate([row, np.repeat(row[-1:], most - len(row))]) for row in rows]
            return np.array(padded)[which]

        c, offset, slope = cycles[:, None], column("offset_v"), column("slope_v_s")
        farad = np.array([core.capacitance_f for core in cpus.cores])[which][:, None]
        return Pieces(
            low_hz=column("low_hz"),
            high_hz=column("high_hz"),
            falls=column("falls").astype(bool),
            fixed_j=farad * c * offset**2,
            inverse_j_s=2 * farad * c**2 * offset * slope,
            square_j_s2=farad * c**3 * slope**2,
            leakage_w=np.broadcast_to(
                np.array([self._leakage_of(core) for core in cpus.cores])[which][:, None], slope.shape
            ),
        )

    def _stretches(self, core: Core) -> _Stretches:
        leakage_w = self._leakage_of(core)
        return _stretches(core.frequency_hz, core.voltage_v, core.capacitance_f, self.points == "discrete", leakage_w)

    def _dynamic_j(self, cpus: Cpus, cycles: Reals, f_hz: Reals) -> Reals:
        """c C_eff V(f)²."""
        if cpus.core is None or len(cpus.cores) == 1:
            return cpus.cores[0].capacitance_f * cycles * np.square(self._volts(cpus.cores[0], f_hz))
        per_cycle_j = np.empty(np.shape(f_hz))
        for number, core in enumerate(cpus.cores):
            own = cpus.core == number
            per_cycle_j[own] = core.capacitance_f * np.square(self._volts(core, f_hz[own]))
        return cycles * per_cycle_j

    def _volts(self, core: Core, f_hz: Reals) -> Reals:
        return core.stepped_v(f_hz) if self.points == "discrete" else core.interpolated_v(f_hz)

    def _leakage_w(self, cpus: Cpus) -> Reals | float:
        each = np.array([self._leakage_of(core) for core in cpus.cores])
        return float(each[0]) if cpus.core is None or len(each) == 1 else each[cpus.core]

    def _leakage_of(self, core: Core) -> float:
        return core.leakage_w if self.leakage_w is None else self.leakage_w


@dataclass(frozen=True, eq=False)
class _Stretches:
    """The lines of a core, cut where leakage begins to cost more than a lower voltage saves; (M,) each."""

    low_hz: Reals
    high_hz: Reals
    offset_v: Reals
    slope_v_s: Reals
    falls: Flags


@lru_cache(maxsize=1000)
def _stretches(
    points_hz: tuple[float, ...], points_v: tuple[float, ...], farad: float, discrete: bool, leakage_w: float
) -> _Stretches:
    """E falls in t = c/f where 2 C s f² (v + s f) > P_leak: on each sloping line above one frequency."""
    of = lines(np.array(points_hz), np.array(points_v), discrete)
    rows: list[tuple[float, float, float, float, bool]] = []
    for low, high, offset, slope in zip(of.low_hz, of.high_hz, of.offset_v, of.slope_v_s, strict=True):
        if slope == 0:
            rows.append((low, high, offset, slope, False))
            continue
        least = _least_energy_hz(farad, offset, slope, leakage_w, low, high)
        if least > low:
            rows.append((low, least, offset, slope, False))
        if least < high:
            rows.append((least, high, offset, slope, True))
    low_hz, high_hz, offset_v, slope_v_s, falls = (np.array(column) for column in zip(*rows, strict=True))
    return _Stretches(low_hz, high_hz, offset_v, slope_v_s, falls)


def _least_energy_hz(farad: float, offset: float, slope: float, leakage_w: float, low: float, high: float) -> float:
    """The frequency in [low, high] of least energy on a line: bisection, as the left side rises in f while V ≥ 0."""

    def saves(f: float) -> bool:
        return 2 * farad * slope * f**2 * (offset + slope * f) > leakage_w

    if saves(low):
        return low
    if not saves(high):
        return high
    while (middle := 0.5 * (low + high)) not in (low, high):
        low, high = (low, middle) if saves(middle) else (middle, high)
    return high
