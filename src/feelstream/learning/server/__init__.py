"""Server updates by name, as in `kind` of [learning.server]."""

from feelstream.learning.server.base import (
    SERVER_UPDATES,
    Equal,
    FedAvg,
    InverseProbability,
    Median,
    Remembered,
    ServerUpdate,
    TrimmedMean,
    UpdateContext,
)
from feelstream.learning.server.fedopt import FedAdagrad, FedAdam, FedAvgM, FedYogi
from feelstream.learning.server.wrappers import Gaussian, Limited, Quantise, Smoothed, TopK

SERVER_UPDATES.add(
    FedAvg, Equal, InverseProbability, Remembered, FedAvgM, FedAdam, FedYogi, FedAdagrad, TrimmedMean, Median, Gaussian,
    Quantise, TopK, Smoothed, Limited,
)  # fmt: skip

__all__ = ["SERVER_UPDATES", "FedAvg", "ServerUpdate", "UpdateContext"]
