"""Server updates by name, as in `kind` of [learning.server]."""

from feelstream.learning.server.averages import Equal, FedAvg, InverseProbability
from feelstream.learning.server.base import SERVER_UPDATES, ServerUpdate, UpdateContext
from feelstream.learning.server.fedopt import FedAdagrad, FedAdam, FedAvgM, FedYogi
from feelstream.learning.server.limits import Limited
from feelstream.learning.server.memory import Remembered
from feelstream.learning.server.robust import Median, TrimmedMean
from feelstream.learning.server.smoothing import Smoothed
from feelstream.learning.server.wrappers import Gaussian, Quantise, TopK

SERVER_UPDATES.add(
    FedAvg, Equal, InverseProbability, Remembered, FedAvgM, FedAdam, FedYogi, FedAdagrad, TrimmedMean, Median, Gaussian,
    Quantise, TopK, Smoothed, Limited,
)  # fmt: skip

__all__ = ["SERVER_UPDATES", "FedAvg", "ServerUpdate", "UpdateContext"]
