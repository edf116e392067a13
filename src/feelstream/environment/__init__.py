"""What changes around the devices: CPU frequencies, channels, places, who is there, energy that is harvested."""

from feelstream.environment.availability import Always, Availability, ComesAndGoes, Diurnal, RecordedAvailability
from feelstream.environment.channel import AutoregressiveChannel, Channel, IndependentChannel, JakesChannel
from feelstream.environment.frequency import Frequency, FrequencyLevels, RecordedFrequency, UniformFrequency
from feelstream.environment.harvest import Harvest, NoHarvest, PacketHarvest, SolarHarvest
from feelstream.environment.mobility import Mobility, RandomDirection, Static
from feelstream.plugins import plugin_registry

FREQUENCIES = plugin_registry("frequencies", Frequency, UniformFrequency, FrequencyLevels, RecordedFrequency)
CHANNELS = plugin_registry("channels", Channel, IndependentChannel, AutoregressiveChannel, JakesChannel)
MOBILITIES = plugin_registry("mobilities", Mobility, Static, RandomDirection)
AVAILABILITIES = plugin_registry("availabilities", Availability, Always, ComesAndGoes, Diurnal, RecordedAvailability)
HARVESTS = plugin_registry("harvests", Harvest, NoHarvest, PacketHarvest, SolarHarvest)
