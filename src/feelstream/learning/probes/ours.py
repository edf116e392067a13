"""What devices can be asked for by name."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from feelstream.learning.probes.base import Asked, Probe
from feelstream.learning.sample_numbers import ABSENT


class GradientNorm(Probe):
    """‖∇F_k(θ)‖₂, of the mean loss of the samples."""

    def measure(self, asked: Asked) -> NDArray[Any]:
        return asked.engine.gradients(asked.theta, asked.samples).norms


class UpdateNorm(Probe):
    """‖Δθ_k‖₂, of the update that the device would send: it trains for it, on the mini-batches of this round."""

    def measure(self, asked: Asked) -> NDArray[Any]:
        training, _ = asked.local.train(asked.engine, asked.theta, asked.cohort, asked.kept)
        return np.sqrt(np.square(training.updates, dtype=np.float64).sum(axis=1))


class Entropy(Probe):
    """Predictive entropy, −Σ_c p_c ln p_c in nats, mean over the samples."""

    def measure(self, asked: Asked) -> NDArray[Any]:
        there = asked.samples != ABSENT
        logs = asked.engine.log_probabilities(asked.theta, asked.samples[there]).astype(np.float64)
        entropy = np.zeros(there.shape)
        entropy[there] = -(np.exp(logs) * logs).sum(axis=1)
        return entropy.sum(axis=1) / there.sum(axis=1)


class Embedding(Probe):
    """What the model's last layer is given, mean over the samples: (n, features)."""

    def measure(self, asked: Asked) -> NDArray[Any]:
        return asked.engine.embeddings(asked.theta, asked.samples)


class Gain(Probe):
    """|g_k|² of the round, which the server measures as the report arrives."""

    needs_learner: ClassVar[bool] = False

    def measure(self, asked: Asked) -> NDArray[Any]:
        return asked.gain
