"""Averages of the updates: by data, equal, unbiased by inverse probability."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from feelstream.arrays import Nested
from feelstream.learning.server.base import ServerUpdate, Theta, UpdateContext, Updates, moved, weighted


class FedAvg(ServerUpdate):
    """By data, the paper's: θ + Σ |S_k| Δθ_k / Σ |S_j|.

    Reference: H. B. McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data",
    AISTATS 2017, arXiv:1602.05629.
    """

    tag: ClassVar[str] = "fedavg"

    def step(
        self, theta: Theta, updates: Updates, context: UpdateContext, state: Nested, rng: np.random.Generator
    ) -> tuple[Theta, Nested]:
        return moved(theta, weighted(context.share, updates)), state


class Equal(ServerUpdate):
    """Every update counts the same: θ + Σ Δθ_k / n."""

    tag: ClassVar[str] = "equal"

    def step(
        self, theta: Theta, updates: Updates, context: UpdateContext, state: Nested, rng: np.random.Generator
    ) -> tuple[Theta, Nested]:
        return moved(theta, updates.mean(axis=0, dtype=np.float64)), state


class InverseProbability(ServerUpdate):
    """Unbiased: θ + Σ |S_k| Δθ_k / (p_k Σ |S_j|), the last sum over all devices that might have been scheduled.

    Over the schedules that the policy might have drawn, its mean is what `fedavg` does when all of those devices take
    part: the estimator of Horvitz and Thompson (J. Am. Stat. Assoc. 47, 1952). An update that does not arrive in time
    counts as 0, so the losses of admission are not corrected for.
    """

    tag: ClassVar[str] = "inverse_probability"

    @property
    def needs_probability(self) -> bool:
        return True

    def step(
        self, theta: Theta, updates: Updates, context: UpdateContext, state: Nested, rng: np.random.Generator
    ) -> tuple[Theta, Nested]:
        assert context.probability is not None
        weights = context.held / (context.probability * context.reachable)
        return moved(theta, weighted(weights, updates)), state
