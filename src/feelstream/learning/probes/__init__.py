"""Probes by name, as in `needs` of a policy: what devices report of the model and the data that they hold."""

from feelstream.learning.probes.base import Asked, FunctionProbe, Probe
from feelstream.learning.probes.ours import Embedding, Entropy, Gain, GradientNorm, UpdateNorm
from feelstream.learning.probes.registry import PROBES, reported

__all__ = [
    "PROBES", "Asked", "Embedding", "Entropy", "FunctionProbe", "Gain", "GradientNorm", "Probe", "UpdateNorm",
    "reported",
]  # fmt: skip
