"""Data: sets, partitions, arrival processes and buffers, each picked by name in the scenario."""

from feelstream.data.streaming.arrivals import Arrivals, Bursts, Poisson, TruncatedNormal, Uniform
from feelstream.data.streaming.buffers import Buffer, Fifo, Keep, Reservoir, UseOnce, Window
from feelstream.data.streaming.natural import Natural
from feelstream.data.streaming.partition import IID, Digits, Dirichlet, Minority, Partition
from feelstream.data.streaming.recorded import RecordedArrivals
from feelstream.data.streaming.replay import Trace
from feelstream.plugins import PluginRegistry

PARTITIONS = PluginRegistry(Partition, IID, Digits, Minority, Dirichlet, Natural)
ARRIVALS = PluginRegistry(Arrivals, TruncatedNormal, Uniform, Poisson, Bursts, Trace, RecordedArrivals)
BUFFERS = PluginRegistry(Buffer, Keep, Window, Fifo, Reservoir, UseOnce)
