"""Averages that a few wrong updates cannot move far, coordinate by coordinate.

Reference: D. Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018,
arXiv:1803.01498.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from feelstream.arrays import Nested
from feelstream.learning.server.base import ServerUpdate, Theta, UpdateContext, Updates, moved


class TrimmedMean(ServerUpdate):
    """θ + the mean of what is left when ⌊trim · n⌋ of the lowest and of the highest values are cut off."""

    tag: ClassVar[str] = "trimmed_mean"

    trim: Annotated[float, Field(strict=True, ge=0, lt=0.5)] = Field(
        default=0.2, description="share of the updates cut off at each end; at least 0, below 0.5"
    )

    def step(
        self, theta: Theta, updates: Updates, context: UpdateContext, state: Nested, rng: np.random.Generator
    ) -> tuple[Theta, Nested]:
        cut = int(self.trim * len(updates))
        kept = np.sort(updates, axis=0)[cut : len(updates) - cut]
        return moved(theta, kept.mean(axis=0, dtype=np.float64)), state


class Median(ServerUpdate):
    """θ + the median of the updates."""

    tag: ClassVar[str] = "median"

    def step(
        self, theta: Theta, updates: Updates, context: UpdateContext, state: Nested, rng: np.random.Generator
    ) -> tuple[Theta, Nested]:
        return moved(theta, np.median(updates.astype(np.float64), axis=0)), state
