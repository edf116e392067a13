"""Large-scale gain β_k(t) beside the paper's: path loss from the distance of a device that moves."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from feelstream.environment.base import ProcessContext, State, Step
from feelstream.environment.paper import Mobility
from feelstream.model.physics import ratio
from feelstream.plugins import Positive


class RandomDirection(Mobility):
    """Devices move in a disc of radius R around the base station, straight on at their speed, and bounce off its edge.

    β_k(t) = β_1 · max(d_k(t), d_min)^−α with d in m and β_1 the gain at 1 m. Positions start uniform in the disc and
    stay so, because straight motion with reflection keeps the uniform law; headings are turned at random with
    probability `turn` per round. radio.gain_db is not used. Reference: P. Nain, D. Towsley, B. Liu, Z. Liu, "Properties
    of Random Direction Models", IEEE INFOCOM 2005.
    """

    tag: ClassVar[str] = "random_direction"

    radius_m: Annotated[Positive, Field(description="R, radius of the cell, m; > 0")] = 100.0
    nearest_m: Annotated[Positive, Field(description="d_min, within which the gain no longer grows, m; > 0")] = 10.0
    speed_m_s: Annotated[
        float, Field(strict=True, ge=0, le=1e6, description="speed of every device, m/s; 0 to 1e6")
    ] = 1.0
    turn: Annotated[
        float, Field(strict=True, ge=0, le=1, description="probability of a new heading per round; 0 to 1")
    ] = 0.1
    exponent: Annotated[
        float, Field(strict=True, gt=0, le=10, description="α, path-loss exponent; above 0, at most 10")
    ] = 3.0
    gain_1m_db: Annotated[
        float, Field(strict=True, ge=-1000, le=1000, description="β_1, gain at a distance of 1 m, dB; -1000 to 1000")
    ] = 55.0

    def gain_range_db(self, low_db: float, high_db: float) -> tuple[float, float]:
        nearest = min(self.nearest_m, self.radius_m)
        return tuple(self.gain_1m_db - 10 * self.exponent * np.log10(d) for d in (self.radius_m, nearest))

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        distance = self.radius_m * np.sqrt(rng.random(context.devices))
        angle, heading = rng.uniform(0, 2 * np.pi, (2, context.devices))
        return {"place": distance * np.array([np.cos(angle), np.sin(angle)]), "heading": heading}

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        place = state["place"]
        distance = np.minimum(np.hypot(*place), self.radius_m)
        beta = ratio(self.gain_1m_db) * np.maximum(distance, min(self.nearest_m, self.radius_m)) ** -self.exponent
        turns = rng.random(context.devices) < self.turn
        heading = np.where(turns, rng.uniform(0, 2 * np.pi, context.devices), state["heading"])
        path = self.speed_m_s * context.round_s
        place, heading = reflected(place, heading, path, self.radius_m)
        return beta, {"place": place, "heading": heading}


def reflected(place: NDArray, heading: NDArray, path_m: float, radius_m: float) -> tuple[NDArray, NDArray]:
    """Straight on for `path_m` inside a disc, with mirror reflection at its edge; (2, K) and (K,)."""
    place, direction = place.copy(), np.array([np.cos(heading), np.sin(heading)])
    left = np.full(place.shape[1], path_m)
    # A chord may be short near the edge; what is still to go after many bounces is dropped, which moves nobody outside.
    for _ in range(64):
        along = (place * direction).sum(axis=0)
        to_edge = -along + np.sqrt(np.maximum(along**2 + radius_m**2 - (place**2).sum(axis=0), 0.0))
        step = np.minimum(left, to_edge)
        place = place + step * direction
        left = left - step
        bounces = left > 0
        if not bounces.any():
            break
        normal = place / np.maximum(np.hypot(*place), 1e-300)
        mirrored = direction - 2 * (direction * normal).sum(axis=0) * normal
        direction = np.where(bounces, mirrored, direction)
    return place, np.arctan2(direction[1], direction[0])
