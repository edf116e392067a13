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
    {
        "fedavg": FedAvg,
        "equal": Equal,
        "inverse_probability": InverseProbability,
        "remembered": Remembered,
        "fedavgm": FedAvgM,
        "fedadam": FedAdam,
        "fedyogi": FedYogi,
        "fedadagrad": FedAdagrad,
        "trimmed_mean": TrimmedMean,
        "median": Median,
        "gaussian": Gaussian,
        "quantise": Quantise,
        "top_k": TopK,
        "smoothed": Smoothed,
        "limited": Limited,
    }
)

__all__ = ["SERVER_UPDATES", "FedAvg", "ServerUpdate", "UpdateContext"]
