"""Which probes there are, and how a name in `needs` of a policy becomes one."""

from __future__ import annotations

from typing import Any

import numpy as np

from feelstream.arrays import Reals
from feelstream.guard import ask
from feelstream.learning.probes.base import Asked, FunctionProbe, Probe
from feelstream.learning.probes.ours import Embedding, Entropy, Gain, GradientNorm, UpdateNorm
from feelstream.plugins import Kind
from feelstream.policies.base import TRAINING

PROBES: Kind[Any] = Kind(
    "probe",
    "probes",
    Probe,
    {
        "gradient_norm": GradientNorm, TRAINING: UpdateNorm, "entropy": Entropy, "embedding": Embedding, "gain": Gain,
    },
    is_one=lambda found: callable(found) and not isinstance(found, type),
    make=lambda found, name: found() if isinstance(found, type) else FunctionProbe(found, name),
)  # fmt: skip


def reported(name: str, asked: Asked) -> Reals:
    """(K, …) what the devices report, NaN for those that do not answer."""
    cohort = asked.cohort
    if not len(cohort.ids):
        return np.full(cohort.devices, np.nan)  # of no known shape, and of nobody
    values = ask(PROBES.instance(name), "measure", asked, at=cohort.round, n=len(cohort.ids))
    found = np.full((cohort.devices, *values.shape[1:]), np.nan)
    found[cohort.ids] = values
    return found
