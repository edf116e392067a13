"""What changes around the devices: CPU frequencies, channels, places, who is there, what fails, energy harvested."""

from feelstream.environment.availability import Always, Availability, ComesAndGoes, Diurnal, RecordedAvailability
from feelstream.environment.channel import AutoregressiveChannel, ClusterChannel, JakesChannel
from feelstream.environment.faults import Breakdowns, Faults, NoFaults, RandomFaults
from feelstream.environment.frequency import FrequencyLevels, RecordedFrequency
from feelstream.environment.harvest import Harvest, NoHarvest, PacketHarvest, SolarHarvest
from feelstream.environment.mobility import RandomDirection
from feelstream.environment.paper import Channel, Frequency, IndependentChannel, Mobility, Static, UniformFrequency
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
