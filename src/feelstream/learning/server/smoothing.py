"""A server that hands out a running average of its model, while devices go on from the model itself.

Where few devices train in a round, θ swings with whose data it was. The average swings less, and costs devices nothing:

    θ̄ ← θ̄ + weight (θ − θ̄)        after every step of the inner update; at first θ̄ = θ

θ̄ is what is tested and kept; θ is what devices get and train from, so no schedule changes by it.

References: B. T. Polyak, A. B. Juditsky, "Acceleration of Stochastic Approximation by Averaging", SIAM J. Control and
Optimization 30(4), 1992; at the server of a federation, over a window of rounds: D. Caldarola, B. Caputo, M. Ciccone,
"Improving Generalization in Federated Learning by Seeking Flat Minima", ECCV 2022, arXiv:2203.11834. That the weights
fall geometrically is our choice: data keeps arriving, and a model of long ago knows nothing of it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from feelstream.arrays import Nested
from feelstream.learning.server.base import Theta, UpdateContext, Updates
from feelstream.learning.server.wrappers import Wrapper


class Smoothed(Wrapper):
    """The inner update, whose model is handed out as a running average of those after each step."""

    tag: ClassVar[str] = "smoothed"

    weight: Annotated[float, Field(strict=True, gt=0, le=1)] = Field(
        default=0.5, description="what the newest model counts in the average; above 0, at most 1 (no average)"
    )

    def changed(
        self, updates: Updates, context: UpdateContext, own: Nested, rng: np.random.Generator
    ) -> tuple[Updates, Nested]:
        return updates, own

    def step(
        self, theta: Theta, updates: Updates, context: UpdateContext, state: Nested, rng: np.random.Generator
    ) -> tuple[Theta, Nested]:
        after, new = super().step(theta, updates, context, state, rng)
        within = self.inner.handed_out(after, new.get("inner", {})).astype(np.float64)
        own = state.get("own", {})
        before = own["average"] if own else theta.astype(np.float64)  # the model that nobody has trained yet
        return after, {**new, "own": {"average": before + self.weight * (within - before)}}

    def handed_out(self, theta: Theta, state: Nested) -> Theta:
        own = state.get("own")
        return own["average"].astype(np.float32) if own else super().handed_out(theta, state)
