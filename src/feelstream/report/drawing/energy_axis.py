"""The axis of energies in a Pareto plot: linear, or logarithmic with a place of its own for arms that spend nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

WIDE = 8.0  # energies that differ by more than this factor get a logarithmic axis
ROOM = 0.08  # beside the outermost points, as a part of the axis
GAP = 0.12  # between 0 and the least energy above it, as a part of the axis
MOST_TICKS = 7


@dataclass(frozen=True)
class EnergyAxis:
    """Limits and ticks; `zero` is where a logarithmic axis shows 0, None where it need not, or the axis is linear."""

    low: float
    high: float
    logarithmic: bool = False
    zero: float | None = None

    def place(self, energy: float) -> float:
        """Where an energy is shown."""
        return self.zero if self.zero is not None and energy <= 0 else energy

    @property
    def break_at(self) -> float | None:
        """Between the place of 0 and the energies above it, where the scale is interrupted."""
        return None if self.zero is None else (self.zero * self._least) ** 0.5

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Place and text of the ticks of a logarithmic axis."""
        shown = [(tick, f"{tick:g}") for tick in log_ticks(self._least if self.zero else self.low, self.high)]
        return shown if self.zero is None else [(self.zero, "0"), *shown]

    @property
    def _least(self) -> float:
        """The least energy above 0 that the axis has room for."""
        return self.low if self.zero is None else self.zero * (self.zero / self.low) ** (GAP / ROOM)


def log_ticks(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis between two positive values: 1, 2, 5 of each decade, or decades if they are many.

    >>> log_ticks(0.3, 7.0), log_ticks(0.03, 70.0)
    ([0.5, 1.0, 2.0, 5.0], [0.1, 1.0, 10.0])
    """
    steps = (1, 2, 5) if high < 100 * low else (1,)
    decades = range(floor(log10(low)), floor(log10(high)) + 1)
    ticks = [tick for power in decades for step in steps if low <= (tick := step * 10.0**power) <= high]
    return ticks[:: -(-len(ticks) // MOST_TICKS) if len(steps) == 1 and ticks else 1]


def energy_axis(energies: Sequence[float], halves: Sequence[float | None]) -> EnergyAxis:
    """An axis for points with error bars; on a logarithmic one, bars that reach far down run out of it."""
    bars = [(energy - (half or 0.0), energy + (half or 0.0)) for energy, half in zip(energies, halves, strict=True)]
    top, spent = max(high for _, high in bars), [energy for energy in energies if energy > 0]
    if not spent or max(spent) <= WIDE * min(spent):
        low = min(low for low, _ in bars)
        room = ROOM * (top - low) or ROOM * top or 1.0
        return EnergyAxis(max(low - room, 0.0), top + room)
    ratio = max(spent) / min(spent)
    room = ratio**ROOM
    least = min([*(low for low, _ in bars if low > min(spent) / room**2), *spent])
    if len(spent) == len(energies):
        return EnergyAxis(least / room, top * room, logarithmic=True)
    zero = least / ratio**GAP
    return EnergyAxis(zero / room, top * room, logarithmic=True, zero=zero)
