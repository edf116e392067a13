"""Small-scale fading by the clusters and rays of 3GPP TR 38.901, made by Sionna: the extra `feelstream[sionna]`."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from feelstream.arrays import Reals
from feelstream.environment import sionna_paths
from feelstream.environment.base import ProcessContext, State, Step
from feelstream.environment.channel import Channel
from feelstream.errors import ScenarioError

# Devices whose paths are made together. Each block has a seed of its own, so this number is part of every result.
BLOCK = 256


class ClusterChannel(Channel):
    """The paths of TR 38.901, section 7.5 (UMi, UMa, RMa): clusters of 20 rays, and the direct path of who is seen.

    Where devices are, how fast they go and who is seen is what world.mobility says when a drop begins. Through a drop
    of `drop_rounds` rounds a device keeps its clusters, and their phases turn with its motion; then all is drawn anew.
    |g_k(t)|²/β_k is the power of Σ_p a_p(t), or its mean over a band, Σ_pq a_p a_q* sinc(B (τ_p − τ_q)).
    """

    tag: ClassVar[str] = "tr38901"
    needs_links: ClassVar[bool] = True

    drop_rounds: Annotated[
        int, Field(strict=True, ge=1, le=1000, description="rounds for which devices keep their clusters; 1 to 1000")
    ] = 10
    average_hz: Annotated[
        float,
        Field(
            strict=True,
            ge=0,
            le=1e9,
            description="B, the band over which the power is averaged, Hz; 0: at the carrier alone; 0 to 1e9",
        ),
    ] = 0.0

    def plugin_versions(self) -> dict[str, str]:
        return sionna_paths.versions()

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        sionna_paths.versions()  # refuses here, and not in some later round, where it is not installed
        return {"ratio": np.zeros((self.drop_rounds, context.devices))}

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        at = (round - 1) % self.drop_rounds
        if at == 0:
            state = {"ratio": self._drop(context, rng)}
        return state["ratio"][at], state

    def _drop(self, context: ProcessContext, rng: np.random.Generator) -> Reals:
        """(drop_rounds, K)."""
        links = context.links
        if links is None:
            raise ScenarioError("world.channel.kind: tr38901 needs a world.mobility that says where devices are")
        starts = range(0, context.devices, BLOCK)
        seeds = rng.integers(2**63, size=len(starts))
        blocks = [
            mean_power(
                *sionna_paths.drawn(
                    links,
                    np.arange(start, min(start + BLOCK, context.devices)),
                    self.drop_rounds,
                    context.round_s,
                    seed,
                ),
                self.average_hz,
            )
            for start, seed in zip(starts, seeds.tolist(), strict=True)
        ]
        return np.concatenate(blocks, axis=1)


def mean_power(paths: NDArray[np.complex128], delay_s: Reals, band_hz: float) -> Reals:
    """(T, K): the power of the paths (K, P, T) with delays (K, P), on average over a band around the carrier."""
    if band_hz == 0:
        summed = paths.sum(axis=1)
        return (summed.real**2 + summed.imag**2).T
    together = np.sinc(band_hz * (delay_s[:, :, None] - delay_s[:, None, :]))
    power = np.einsum("kpt,kpq,kqt->tk", paths, together, paths.conj(), optimize=True).real
    return np.maximum(power, 0.0)  # rounding, where all paths cancel
