"""Data: sets, partitions, arrival processes and buffers, each picked by name in the scenario."""

from feelstream.data.streaming.arrivals import Arrivals, Bursts, Poisson, TruncatedNormal, Uniform
from feelstream.data.streaming.buffers import Buffer, Fifo, Keep, Reservoir, UseOnce, Window
from feelstream.data.streaming.partition import IID, Digits, Dirichlet, Minority, Natural, Partition
from feelstream.data.streaming.recorded import RecordedArrivals, Trace
from feelstream.plugins import Kind

PARTITIONS = Kind("partition", "partitions", Partition, (IID, Digits, Minority, Dirichlet, Natural))
ARRIVALS = Kind("arrivals", "arrivals", Arrivals, (TruncatedNormal, Uniform, Poisson, Bursts, Trace, RecordedArrivals))
BUFFERS = Kind("buffer", "buffers", Buffer, (Keep, Window, Fifo, Reservoir, UseOnce))
