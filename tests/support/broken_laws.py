"""Energy laws that break one promise of their contract each."""

from __future__ import annotations

import numpy as np

from feelstream.arrays import Reals
from feelstream.model.energy import Cpus, Cubic, EnergyLaw, Pieces, Voltage


class Negative(Cubic):
    def energy_j(self, cpus: Cpus, cycles: Reals, f_hz: Reals) -> Reals:
        return super().energy_j(cpus, cycles, f_hz) - 1.0


class Moody(Cubic):
    def energy_j(self, cpus: Cpus, cycles: Reals, f_hz: Reals) -> Reals:
        return super().energy_j(cpus, cycles, f_hz) * np.random.default_rng().uniform(1, 2, len(f_hz))


class Shared(Cubic):
    """The devices asked about share out what all of them take."""

    def energy_j(self, cpus: Cpus, cycles: Reals, f_hz: Reals) -> Reals:
        return np.full(len(f_hz), super().energy_j(cpus, cycles, f_hz).mean())


class Idling(EnergyLaw):
    """Waiting costs too, so that the energy falls in f; it says nothing of most_j, which then is too little."""

    def energy_j(self, cpus: Cpus, cycles: Reals, f_hz: Reals) -> Reals:
        return cycles / f_hz


class Halved(Cubic):
    def pieces(self, cpus: Cpus, cycles: Reals) -> Pieces:
        return super().pieces(cpus, 0.5 * cycles)


class Flat(Voltage):
    """Says of the discrete law what is true of the interpolated one."""

    def pieces(self, cpus: Cpus, cycles: Reals) -> Pieces:
        return Voltage(points="interpolated").pieces(cpus, cycles)


BROKEN_LAWS = [
    (Negative(), "contract"),
    (Moody(), "repeatable"),
    (Shared(), "own"),
    (Idling(), "most"),
    (Halved(), "pieces"),
    (Flat(points="discrete"), "pieces"),
]
