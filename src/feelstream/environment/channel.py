"""Small-scale fading: the ratio |g_k(t)|² / β_k, with mean 1, and how it hangs together over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from feelstream.environment.base import Process, ProcessContext, State, Step, gives
from feelstream.guard import Array, Out

Doppler = Annotated[
    float, Field(strict=True, ge=0, le=1e6, description="Doppler frequency f_D = v f_c / c, Hz; 0 to 1e6")
]


class Channel(Process):
    """Power ratios ≥ 0 with mean 1; those of this file are Rayleigh fading, |h|² ~ Exp(1) in every single round."""

    plugin_field: ClassVar[str] = "world.channel"
    contract: ClassVar[Mapping[str, Out]] = gives(Array(least=0))

    needs_links: ClassVar[bool] = False  # it goes by context.links, which not every mobility knows


class IndependentChannel(Channel):
    """|h_k(t)|² ~ Exp(1), independent over rounds: block fading, the paper's."""

    tag: ClassVar[str] = "independent"

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        return rng.standard_exponential(context.devices), state


class AutoregressiveChannel(Channel):
    """Gauss–Markov: h(t) = ρ h(t−1) + √(1−ρ²) w(t), w ~ CN(0, 1), ρ = J₀(2π f_D T_rd); h(1) is stationary.

    The autocorrelation ρ^|τ| agrees with that of Clarke's model at lag one. Reference: K. E. Baddour, N. C. Beaulieu,
    "Autoregressive Modeling for Fading Channel Simulation", IEEE Trans. Wireless Commun. 4(4), 2005.
    """

    tag: ClassVar[str] = "ar1"

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

    tag: ClassVar[str] = "jakes"

    doppler_hz: Doppler = 0.02
    waves: Annotated[int, Field(strict=True, ge=8, le=256, description="N, plane waves of a device; 8 to 256")] = 16

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
