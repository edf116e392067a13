"""An average over the latest update of every device, old ones discounted.

Where few devices train in a round, θ moves by what these few hold. The server can keep what the others sent last:

    y_k ← Δθ_k, a_k ← 0        of the devices whose updates arrived        (a_k: rounds since, 1 more in every other)
    θ   ← θ + η Σ_k w_k y_k / Σ_k w_k,   w_k = |S_k| discount^a_k          over all devices that ever sent one

|S_k| is that of the update, η the `server_learning_rate`, 1 unless it is set. With η = 1 and everybody in every round
this is `fedavg`, whatever the discount; with `discount = 1` it is the rule of MIFA, with weights by data. It costs
devices nothing: no more energy, no more bits.

References: X. Gu, K. Huang, J. Zhang, L. Huang, "Fast Federated Learning in the Presence of Arbitrary Device
Unavailability" (MIFA), NeurIPS 2021, arXiv:2106.04159. The discount is our choice: early in a run updates are long, and
one that is applied again and again, undiscounted, goes too far. A server's own rate η: S. J. Reddi et al., "Adaptive
Federated Optimization", ICLR 2021, arXiv:2003.00295.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from feelstream.arrays import Nested
from feelstream.learning.server.base import (
    ServerUpdate,
    Theta,
    UpdateContext,
    Updates,
    moved,
    too_long_steps,
    weighted,
)
from feelstream.plugins import Positive

LEAST_WEIGHT = 1e-6  # an update that counts for less beside a fresh one is forgotten, so that memory stays bounded


class Remembered(ServerUpdate):
    """θ + η Σ w_k y_k / Σ w_k over the latest update y_k of every device, w_k = |S_k| · discount^(rounds since)."""

    tag: ClassVar[str] = "remembered"

    discount: Annotated[float, Field(strict=True, gt=0, le=1)] = Field(
        default=0.3, description="what an update still counts one round later; above 0, at most 1 (never less)"
    )
    server_learning_rate: Positive = Field(default=1.0, description="η, times the average is the step; > 0")

    def diverged(self, round: int) -> str | None:
        if self.server_learning_rate == 1:
            return None
        return too_long_steps("server_learning_rate", self.server_learning_rate, round)

    def step(
        self, theta: Theta, updates: Updates, context: UpdateContext, state: Nested, rng: np.random.Generator
    ) -> tuple[Theta, Nested]:
        latest = _joined(state, context, updates)
        fading = self.discount ** (context.round - latest["round"]).astype(float)
        change = weighted(_shares(latest["held"] * fading), latest["updates"])
        kept = fading >= LEAST_WEIGHT
        return moved(theta, self.server_learning_rate * change), {name: column[kept] for name, column in latest.items()}


def _joined(state: Nested, context: UpdateContext, updates: Updates) -> Nested:
    """The latest update of every device, by device: who sent it, in which round, of how many samples."""
    now = {
        "ids": np.asarray(context.ids),
        "round": np.full(len(updates), context.round, np.int64),
        "held": np.asarray(context.held, np.int64),
        "updates": updates,
    }
    if state:
        others = ~np.isin(state["ids"], now["ids"])
        now = {name: np.concatenate([state[name][others], column]) for name, column in now.items()}
    order = np.argsort(now["ids"], kind="stable")
    return {name: column[order] for name, column in now.items()}


def _shares(weights: np.ndarray) -> np.ndarray:
    return weights / weights.sum()
