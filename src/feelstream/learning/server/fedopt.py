"""Optimisers at the server, for which the average update by data, Δ = Σ |S_k| Δθ_k / Σ |S_j|, is the gradient.

All are as in Flower's strategies of the same names, with its fields and its defaults but for the momentum of FedAvgM.
State moves only in rounds in which an update arrived.

References: T.-M. H. Hsu, H. Qi, M. Brown, "Measuring the Effects of Non-Identical Data Distribution for Federated
Visual Classification" (FedAvgM), arXiv:1909.06335; S. J. Reddi et al., "Adaptive Federated Optimization", ICLR 2021,
arXiv:2003.00295.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from pydantic import Field

from feelstream.arrays import Nested, Reals
from feelstream.learning.contract import BelowOne
from feelstream.learning.server.base import SERVER_UPDATES, Moved, UpdateContext, Updates, weighted
from feelstream.plugins import Positive


class FedAvgM(Moved):
    """Momentum: v ← server_momentum · v + Δ, θ ← θ + server_learning_rate · v."""

    rate: ClassVar[str] = "server_learning_rate"

    server_learning_rate: Positive = Field(default=1.0, description="times v is the step; > 0")
    server_momentum: BelowOne = Field(default=0.9, description="what is kept of v; at least 0, below 1")

    def init(self, parameters: int) -> Nested:
        return {"v": np.zeros(parameters)}

    def change(self, updates: Updates, context: UpdateContext, state: Nested) -> tuple[Reals, Nested]:
        v = self.server_momentum * state["v"] + weighted(context.share, updates)
        return self.server_learning_rate * v, {"v": v}


class _Adaptive(Moved):
    """m ← beta_1 m + (1 − beta_1) Δ;  v by `second`;  θ ← θ + scale · m / (√v + tau)."""

    rate: ClassVar[str] = "eta"

    eta: Positive = Field(default=0.1, description="learning rate of the server; > 0")
    beta_1: BelowOne = Field(default=0.9, description="what is kept of m, the mean update; at least 0, below 1")
    tau: Positive = Field(default=1e-3, description="added to √v, the degree of adaptivity; > 0")

    def init(self, parameters: int) -> Nested:
        return {"m": np.zeros(parameters), "v": np.zeros(parameters), "steps": np.array(0)}

    @abstractmethod
    def second(self, v: Reals, square: Reals) -> Reals:
        """v after this round, from the squares of Δ."""
        ...

    def scale(self, steps: int) -> float:
        """The learning rate of the step of this number, from 1."""
        return self.eta

    def change(self, updates: Updates, context: UpdateContext, state: Nested) -> tuple[Reals, Nested]:
        average, steps = weighted(context.share, updates), int(state["steps"]) + 1
        m = self.beta_1 * state["m"] + (1 - self.beta_1) * average
        v = self.second(state["v"], average**2)
        return self.scale(steps) * m / (np.sqrt(v) + self.tau), {"m": m, "v": v, "steps": np.array(steps)}


class FedAdam(_Adaptive):
    """v ← beta_2 v + (1 − beta_2) Δ², and the scale is eta √(1 − beta_2^(s+1)) / (1 − beta_1^(s+1)) in step s."""

    beta_2: BelowOne = Field(default=0.99, description="what is kept of v; at least 0, below 1")

    def second(self, v: Reals, square: Reals) -> Reals:
        return self.beta_2 * v + (1 - self.beta_2) * square

    def scale(self, steps: int) -> float:
        return self.eta * float(np.sqrt(1 - self.beta_2 ** (steps + 1))) / (1 - self.beta_1 ** (steps + 1))


class FedYogi(_Adaptive):
    """v ← v − (1 − beta_2) Δ² sign(v − Δ²), which grows no faster than it falls."""

    eta: Positive = Field(default=0.01, description="learning rate of the server; > 0")
    beta_2: BelowOne = Field(default=0.99, description="how slowly v changes; at least 0, below 1")

    def second(self, v: Reals, square: Reals) -> Reals:
        return v - (1 - self.beta_2) * square * np.sign(v - square)


class FedAdagrad(_Adaptive):
    """v ← v + Δ²."""

    beta_1: BelowOne = Field(default=0.0, description="what is kept of m, the mean update; at least 0, below 1")

    def second(self, v: Reals, square: Reals) -> Reals:
        return v + square


SERVER_UPDATES.add({"fedavgm": FedAvgM, "fedadam": FedAdam, "fedyogi": FedYogi, "fedadagrad": FedAdagrad})
