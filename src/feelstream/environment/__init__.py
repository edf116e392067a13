"""What changes around the devices: CPU frequencies, channels, places, who is there, what fails, energy harvested."""

from feelstream.environment.availability import Always, Availability, ComesAndGoes, Diurnal, RecordedAvailability
from feelstream.environment.channel import AutoregressiveChannel, Channel, IndependentChannel, JakesChannel
from feelstream.environment.clusters import ClusterChannel
from feelstream.environment.faults import Breakdowns, Faults, NoFaults, RandomFaults
from feelstream.environment.frequency import Frequency, FrequencyLevels, RecordedFrequency, UniformFrequency
from feelstream.environment.harvest import Harvest, NoHarvest, PacketHarvest, SolarHarvest
from feelstream.environment.mobility import Mobility, RandomDirection, Static
from feelstream.environment.tr38901 import TR38901
from feelstream.plugins import PluginRegistry

FREQUENCIES = PluginRegistry(Frequency, UniformFrequency, FrequencyLevels, RecordedFrequency)
CHANNELS = PluginRegistry(Channel, IndependentChannel, AutoregressiveChannel, JakesChannel, ClusterChannel)
MOBILITIES = PluginRegistry(Mobility, Static, RandomDirection, TR38901)
AVAILABILITIES = PluginRegistry(Availability, Always, ComesAndGoes, Diurnal, RecordedAvailability)
FAULTS = PluginRegistry(Faults, NoFaults, RandomFaults, Breakdowns)
HARVESTS = PluginRegistry(Harvest, NoHarvest, PacketHarvest, SolarHarvest)
