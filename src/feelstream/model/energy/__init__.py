"""Energy laws: what computing costs at a frequency. Each is picked by name, `[cpu.energy] kind = "…"`."""

from feelstream.model.energy.base import Cpus, EnergyLaw, Pieces
from feelstream.model.energy.cores import Core
from feelstream.model.energy.cubic import Cubic
from feelstream.model.energy.voltage import Voltage
from feelstream.plugins import Kind

ENERGY_LAWS = Kind("energy law", "energy_laws", EnergyLaw, (Cubic, Voltage))

__all__ = ["ENERGY_LAWS", "Core", "Cpus", "Cubic", "EnergyLaw", "Pieces", "Voltage"]
