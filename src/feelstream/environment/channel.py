"""Fading |g_k(t)|² / β_k: the paper's, how it may hang together over time, and 3GPP's clusters and rays.

The clusters are those of TR 38.901, made by Sionna, which the extra `feelstream[sionna]` installs. Without them |h|² is
that of Rayleigh fading, Exp(1) in every single round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from feelstream.arrays import Reals
from feelstream.environment import sionna_paths
from feelstream.environment.base import Process, ProcessContext, State, Step, gives
from feelstream.errors import ScenarioError
from feelstream.guard import Array, Out
from feelstream.plugins import Kind

Doppler = Annotated[
    float, Field(strict=True, ge=0, le=1e6, description="Doppler frequency f_D = v f_c / c, Hz; 0 to 1e6")
]


class Channel(Process):
    """Small-scale fading: power ratios |g_k(t)|² / β_k ≥ 0 with mean 1."""

    plugin_field: ClassVar[str] = "world.channel"
    contract: ClassVar[Mapping[str, Out]] = gives(Array(least=0))

    needs_links: ClassVar[bool] = False  # it goes by context.links, which not every mobility knows


def wrong_mean(fading: Reals) -> str | None:
    """What is wrong with the mean of what a channel gave many devices in many rounds, which must be 1.

    Six standard errors of an exponential law that never changes are 0.27, with 500 devices.
    """
    return f"the mean is {fading.mean():.3g}" if abs(fading.mean() - 1) > 0.3 else None


class IndependentChannel(Channel):
    """|h_k(t)|² ~ Exp(1), independent over rounds: block fading, the paper's."""

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        return rng.standard_exponential(context.devices), state


class AutoregressiveChannel(Channel):
    """Gauss–Markov: h(t) = ρ h(t−1) + √(1−ρ²) w(t), w ~ CN(0, 1), ρ = J₀(2π f_D T_rd); h(1) is stationary.

    The autocorrelation ρ^|τ| agrees with that of Clarke's model at lag one. Reference: K. E. Baddour, N. C. Beaulieu,
    "Autoregressive Modeling for Fading Channel Simulation", IEEE Trans. Wireless Commun. 4(4), 2005.
    """

    doppler_hz: Doppler = 0.02

    def correlation(self, round_s: float) -> float:
        """ρ between successive rounds."""
        from scipy.special import j0  # here: slow to import, and few scenarios need it

        return float(j0(2 * np.pi * self.doppler_hz * round_s))

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        return {"h": _complex_normal(context.devices, rng)}

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        h, rho = state["h"], self.correlation(context.round_s)
        after = rho * h + np.sqrt(1 - rho * rho) * _complex_normal(context.devices, rng)
        return np.square(h).sum(axis=0), {"h": after}


class JakesChannel(Channel):
    """A sum of N plane waves: h(t) = √(1/N) Σ_n exp(i(2π f_D t T_rd cos α_n + φ_n)); α_n, φ_n ~ U(0, 2π) per device.

    Its autocorrelation is J₀(2π f_D τ) at every lag. Reference: C. Xiao, Y. R. Zheng, N. C. Beaulieu, "Novel Sum-of-
    Sinusoids Simulation Models for Rayleigh and Rician Fading Channels", IEEE Trans. Wireless Commun. 5(12), 2006.
    With N = 16 waves |h|² is close to Exp(1): its variance is 1 − 1/N.
    """

    doppler_hz: Doppler = 0.02
    waves: int = Field(default=16, strict=True, ge=8, le=256, description="N, plane waves of a device; 8 to 256")

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        shape = (context.devices, self.waves)
        return {"speed": np.cos(rng.uniform(0, 2 * np.pi, shape)), "phase": rng.uniform(0, 2 * np.pi, shape)}

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        angle = 2 * np.pi * self.doppler_hz * context.round_s * round * state["speed"] + state["phase"]
        power = np.square(np.cos(angle).sum(axis=1)) + np.square(np.sin(angle).sum(axis=1))
        return power / self.waves, state


def _complex_normal(devices: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """(2, K): real and imaginary parts of CN(0, 1)."""
    return rng.standard_normal((2, devices)) * np.sqrt(0.5)


# Devices whose paths are made together. Each block has a seed of its own, so this number is part of every result.
BLOCK = 256


class ClusterChannel(Channel):
    """The paths of TR 38.901, section 7.5 (UMi, UMa, RMa): clusters of 20 rays, and the direct path of who is seen.

    Where devices are, how fast they go and who is seen is what world.mobility says when a drop begins. Through a drop
    of `drop_rounds` rounds a device keeps its clusters, and their phases turn with its motion; then all is drawn anew.
    |g_k(t)|²/β_k is the power of Σ_p a_p(t), or its mean over a band, Σ_pq a_p a_q* sinc(B (τ_p − τ_q)).
    """

    needs_links: ClassVar[bool] = True

    drop_rounds: int = Field(
        default=10, strict=True, ge=1, le=1000, description="rounds for which devices keep their clusters; 1 to 1000"
    )
    average_hz: float = Field(
        default=0.0,
        strict=True,
        ge=0,
        le=1e9,
        description="B, the band over which the power is averaged, Hz; 0: at the carrier alone; 0 to 1e9",
    )

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
        blocks = np.split(np.arange(context.devices), range(BLOCK, context.devices, BLOCK))
        seeds = rng.integers(2**63, size=len(blocks))
        powers = [
            mean_power(*sionna_paths.drawn(links, ids, self.drop_rounds, context.round_s, seed), self.average_hz)
            for ids, seed in zip(blocks, seeds.tolist(), strict=True)
        ]
        return np.concatenate(powers, axis=1)


def mean_power(paths: NDArray[np.complex128], delay_s: Reals, band_hz: float) -> Reals:
    """(T, K): the power of the paths (K, P, T) with delays (K, P), on average over a band around the carrier."""
    if band_hz == 0:
        summed = paths.sum(axis=1)
        return (summed.real**2 + summed.imag**2).T
    together = np.sinc(band_hz * (delay_s[:, :, None] - delay_s[:, None, :]))
    power = np.einsum("kpt,kpq,kqt->tk", paths, together, paths.conj(), optimize=True).real
    return np.maximum(power, 0.0)  # rounding, where all paths cancel


CHANNELS = Kind(
    "channel",
    "channels",
    Channel,
    {"independent": IndependentChannel, "ar1": AutoregressiveChannel, "jakes": JakesChannel, "tr38901": ClusterChannel},
)
