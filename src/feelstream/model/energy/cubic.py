"""λ c f²: the paper's law."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from feelstream.arrays import Reals
from feelstream.model import physics
from feelstream.model.energy.base import Cpus, EnergyLaw, Pieces


class Cubic(EnergyLaw):
    """E = λ c f², λ = cpu.power_coefficient: power grows as f³, as if voltage were proportional to frequency."""

    tag: ClassVar[str] = "cubic"

    def energy_j(self, cpus: Cpus, cycles: Reals, f_hz: Reals) -> Reals:
        return physics.compute_energy_j(cpus.power_coefficient, cycles, f_hz)

    def pieces(self, cpus: Cpus, cycles: Reals) -> Pieces:
        """One, E = λ c³/t²."""
        square = (cpus.power_coefficient * cycles**3)[:, None]
        none, all_of_it = np.zeros_like(square), np.full_like(square, np.inf)
        return Pieces(none, all_of_it, np.ones_like(square, bool), none, none, square, none)
