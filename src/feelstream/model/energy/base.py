"""The contract of an energy law.

A law is a frozen settings object. It is asked for arrays with one entry per device, of all devices or of some:

    energy_j = law.energy_j(cpus, cycles, f_hz)

with `cpus` what is known of the CPUs of these devices. Everything that computes the energy of computing asks the law
of the scenario: what policies plan with, what a round costs, what a battery must cover.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from feelstream.arrays import Flags, Frozen, Ids, Reals
from feelstream.guard import Array, One, Out
from feelstream.model.energy.cores import Core
from feelstream.plugins import Plugin


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

    def take(self, ids: Ids) -> Cpus:
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
        """With so many times the energy, (n,)."""
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
    plugin_flags: ClassVar[tuple[str, ...]] = ("needs_cores",)

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
