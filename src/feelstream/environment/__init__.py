"""What changes around the devices: CPU frequencies, channels, places, who is there, what fails, energy harvested."""

from feelstream.environment.availability import Always, Availability, ComesAndGoes, Diurnal, RecordedAvailability
from feelstream.environment.channel import AutoregressiveChannel, Channel, IndependentChannel, JakesChannel
from feelstream.environment.clusters import ClusterChannel
from feelstream.environment.faults import Breakdowns, Faults, NoFaults, RandomFaults
from feelstream.environment.frequency import Frequency, FrequencyLevels, RecordedFrequency, UniformFrequency
from feelstream.environment.harvest import Harvest, NoHarvest, PacketHarvest, SolarHarvest
from feelstream.environment.mobility import Mobility, RandomDirection, Static
from feelstream.environment.tr38901 import TR38901
from feelstream.plugins import Kind

FREQUENCIES = Kind("frequency", "frequencies", Frequency, (UniformFrequency, FrequencyLevels, RecordedFrequency))
CHANNELS = Kind(
    "channel", "channels", Channel, (IndependentChannel, AutoregressiveChannel, JakesChannel, ClusterChannel)
)
MOBILITIES = Kind("mobility", "mobilities", Mobility, (Static, RandomDirection, TR38901))
AVAILABILITIES = Kind(
    "availability", "availabilities", Availability, (Always, ComesAndGoes, Diurnal, RecordedAvailability)
)
FAULTS = Kind("faults", "faults", Faults, (NoFaults, RandomFaults, Breakdowns))
HARVESTS = Kind("harvest", "harvests", Harvest, (NoHarvest, PacketHarvest, SolarHarvest))
