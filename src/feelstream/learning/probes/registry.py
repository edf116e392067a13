"""Which probes there are, and how a name in `needs` of a policy becomes one."""

from __future__ import annotations

from typing import Any

from feelstream.learning.probes.base import FunctionProbe, Probe
from feelstream.learning.probes.ours import Embedding, Entropy, Gain, GradientNorm, UpdateNorm
from feelstream.plugins import Registry
from feelstream.policies.base import TRAINING

PROBES: Registry[Any] = Registry(
    "probes",
    {
        "gradient_norm": GradientNorm, TRAINING: UpdateNorm, "entropy": Entropy, "embedding": Embedding, "gain": Gain,
    },
    lambda found: callable(found) and not isinstance(found, type),
)  # fmt: skip


def instance(name: str) -> Probe:
    """The probe of that name: one of ours, or a function of one's own."""
    found = PROBES.lookup(name)
    return found() if isinstance(found, type) else FunctionProbe(found)
