"""Energy laws: what computing costs at a frequency. Each is picked by name, `[cpu.energy] kind = "…"`.

A law is a frozen settings object. It is asked for arrays with one entry per device, of all devices or of some:

    energy_j = law.energy_j(cpus, cycles, f_hz)

with `cpus` what is known of the CPUs of these devices. Everything that computes the energy of computing asks the law
of the scenario: what policies plan with, what a round costs, what a battery must cover.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from feelstream.arrays import Flags, Frozen, Ids, Reals
from feelstream.guard import Array, One, Out
from feelstream.plugins import Kind, NonNegative, Plugin, Positive, Settings

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

    def volts(self, f_hz: Reals, discrete: bool) -> Reals:
        """V between the points on the straight line, or that of the next higher; beyond them that of the last point."""
        points_hz, points_v = self.points
        if not discrete:
            return np.interp(f_hz, points_hz, points_v)
        above = np.searchsorted(points_hz * (1 + AT_A_POINT), f_hz)
        return points_v[np.minimum(above, len(points_v) - 1)]


@dataclass(frozen=True, eq=False)
class Cpus(Frozen):
    """What a law knows of the CPUs of some devices: n of them, in the order of the other arrays.

    Attributes:
        power_coefficient: λ of [cpu].
        cores: The profiles that occur.
        core: (n,) which of them each device has; None: all the first.
    """

    power_coefficient: float
    cores: tuple[Core, ...] = ()
    core: Ids | None = None

    def take(self, ids: Ids | slice) -> Cpus:
        """Of the devices with these numbers."""
        return self if self.core is None else replace(self, core=self.core[ids])


@dataclass(frozen=True, eq=False)
class Pieces:
    """The law in a form that can be minimised: intervals low_hz < f ≤ high_hz that cover all frequencies, (n, M) each.

    Where `falls`, computing more slowly saves energy, which with t = c/f, in seconds, is convex and falls in t:

        E(t) = fixed_j + inverse_j_s/t + square_j_s2/t² + leakage_w·t

    Elsewhere it saves nothing, so that of the interval only its highest frequency matters, and the four are not used.
    Devices with fewer pieces than others repeat one.

    Attributes:
        low_hz, high_hz: Ends of each interval.
        falls: Whether computing more slowly saves energy there.
        fixed_j, inverse_j_s, square_j_s2, leakage_w: The four numbers of E(t).
    """

    low_hz: Reals
    high_hz: Reals
    falls: Flags
    fixed_j: Reals
    inverse_j_s: Reals
    square_j_s2: Reals
    leakage_w: Reals

    def times(self, factor: Reals) -> Pieces:
        """With the energy multiplied by a factor of each device, (n,)."""
        numbers = ("fixed_j", "inverse_j_s", "square_j_s2", "leakage_w")
        return replace(self, **{name: factor[:, None] * getattr(self, name) for name in numbers})


class EnergyLaw(Plugin, ABC):
    """E_cmp as a function of cycles and frequency, for every device."""

    plugin_field: ClassVar[str] = "cpu.energy"
    contract: ClassVar[Mapping[str, Out]] = {
        "energy_j": Out(Array(("n",), least=0)),
        "most_j": Out(Array(("n",), least=0)),
        "pieces": Out(One(Pieces, none=True)),
    }
    plugin_traits: ClassVar[tuple[str, ...]] = ("needs_cores",)

    needs_cores: ClassVar[bool] = False  # whether every device must have a profile

    @abstractmethod
    def energy_j(self, cpus: Cpus, cycles: Reals, f_hz: Reals) -> Reals:
        """(n,) J that computing takes; finite and not negative for every f_hz > 0."""

    def most_j(self, cpus: Cpus, cycles: Reals, slowest_hz: Reals, f_hz: Reals) -> Reals:
        """(n,) J that computing at no frequency from slowest_hz to f_hz exceeds; a battery must cover it.

        As it stands for laws that rise in f: the energy at f_hz.
        """
        return self.energy_j(cpus, cycles, f_hz)

    def pieces(self, cpus: Cpus, cycles: Reals) -> Pieces | None:
        """The law piece by piece, for policies that choose frequencies; None: they refuse to run under this law."""
        return None


class Cubic(EnergyLaw):
    """E = λ c f², λ = cpu.power_coefficient: power grows as f³, as if voltage were proportional to frequency."""

    def energy_j(self, cpus: Cpus, cycles: Reals, f_hz: Reals) -> Reals:
        return cpus.power_coefficient * cycles * f_hz * f_hz

    def pieces(self, cpus: Cpus, cycles: Reals) -> Pieces:
        """One, E = λ c³/t²."""
        square = (cpus.power_coefficient * cycles**3)[:, None]
        none, all_of_it = np.zeros_like(square), np.full_like(square, np.inf)
        return Pieces(none, all_of_it, np.ones_like(square, bool), none, none, square, none)


class Voltage(EnergyLaw):
    """E = c C_eff V(f)² + P_leak c/f, with C_eff, V and P_leak of each device's profile.

    Below its lowest operating point a core runs at that point for part of the time, so V stays what it is there; above
    its highest, which only a device that reports a frequency of its own can be, V is that of the highest.
    """

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
        discrete, leakages_w = self.points == "discrete", [self._leakage_of(core) for core in cpus.cores]
        tables = [
            _lines(core.frequency_hz, core.voltage_v, core.capacitance_f, discrete, leakage_w)
            for core, leakage_w in zip(cpus.cores, leakages_w, strict=True)
        ]
        most = max(map(len, tables))
        which = np.zeros(len(cycles), np.int64) if cpus.core is None else cpus.core
        padded = np.array([np.pad(table, ((0, most - len(table)), (0, 0)), mode="edge") for table in tables])
        low_hz, high_hz, offset, slope, falls = np.moveaxis(padded[which], 2, 0)
        farads = [core.capacitance_f for core in cpus.cores]
        farad, leakage_w = (np.array(each)[which][:, None] for each in (farads, leakages_w))
        c = cycles[:, None]
        return Pieces(
            low_hz=low_hz,
            high_hz=high_hz,
            falls=falls.astype(bool),
            fixed_j=farad * c * offset**2,
            inverse_j_s=2 * farad * c**2 * offset * slope,
            square_j_s2=farad * c**3 * slope**2,
            leakage_w=np.broadcast_to(leakage_w, slope.shape),
        )

    def _dynamic_j(self, cpus: Cpus, cycles: Reals, f_hz: Reals) -> Reals:
        """c C_eff V(f)²."""
        discrete = self.points == "discrete"
        if cpus.core is None or len(cpus.cores) == 1:
            return cpus.cores[0].capacitance_f * cycles * np.square(cpus.cores[0].volts(f_hz, discrete))
        per_cycle_j = np.empty(np.shape(f_hz))
        for number, core in enumerate(cpus.cores):
            own = cpus.core == number
            per_cycle_j[own] = core.capacitance_f * np.square(core.volts(f_hz[own], discrete))
        return cycles * per_cycle_j

    def _leakage_w(self, cpus: Cpus) -> Reals | float:
        each = np.array([self._leakage_of(core) for core in cpus.cores])
        return float(each[0]) if cpus.core is None or len(each) == 1 else each[cpus.core]

    def _leakage_of(self, core: Core) -> float:
        return core.leakage_w if self.leakage_w is None else self.leakage_w


@lru_cache(maxsize=1000)
def _lines(
    points_hz: tuple[float, ...], points_v: tuple[float, ...], farad: float, discrete: bool, leakage_w: float
) -> Reals:
    """(M, 5): V = offset + slope·f on each of M intervals low < f ≤ high, which cover (0, ∞), as (low, high, offset,
    slope, whether E falls in t = c/f).

    V(f) is flat up to the lowest point and beyond the highest; between, it has steps or slopes. E falls in t where
    2 C s f² (v + s f) > P_leak: on each sloping line above one frequency, at which the line is cut.
    """
    hz, v = np.array(points_hz), np.array(points_v)
    offsets, slopes = np.append(v, v[-1]), np.zeros(len(v) + 1)
    if not discrete:
        slopes[1:-1] = np.diff(v) / np.diff(hz)
        offsets[1:-1] = v[:-1] - slopes[1:-1] * hz[:-1]
    rows: list[tuple[float, float, float, float, bool]] = []
    for low, high, offset, slope in zip(np.append(0.0, hz), np.append(hz, np.inf), offsets, slopes, strict=True):
        least = high if slope == 0 else _least_energy_hz(farad, offset, slope, leakage_w, low, high)
        if least > low:
            rows.append((low, least, offset, slope, False))
        if least < high:
            rows.append((least, high, offset, slope, True))
    return np.array(rows)


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


ENERGY_LAWS = Kind("energy law", "energy_laws", EnergyLaw, {"cubic": Cubic, "voltage": Voltage})
