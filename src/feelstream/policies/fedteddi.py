"""FedTeddi: devices whose data has changed, in a set whose classes are those of everyone.

    p(Π) = Σ_{k∈Π} L(S_k) / Σ_{k∈Π} |S_k|,  p: the mix of all devices,  q_k: the mix of S_k when k last got through
    d_k  = ‖p({k}) − q_k‖₁, and 2 if it never did               how far its data has drifted since the model saw it
    Π*   built one by one: n times the device that makes   ‖p(Π) − p‖₁ − drift · mean_{k∈Π} d_k   least

The distance of the set keeps the model from forgetting, the drift brings what is new.

Needs: label counts of all that each device holds, and its memory of them. Ignores: energy, channels, amounts.

Reference: Y. Bai, Y. Sun, T. Chen, W. Chen, S. Zhou, Z. Niu, "FedTeddi: Temporal Drift and Divergence Aware Scheduling
for Timely Federated Edge Learning", arXiv:2509.07342. At hand were its abstract and its two quantities, temporal drift
and collective divergence as earth mover's distances of class distributions. Choices: how both are weighed (a field),
drift since a device's own last turn, classes equally far apart, greedy sets, and the scenario's split of the band.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from feelstream.arrays import Ids, Reals
from feelstream.model.system import System
from feelstream.plugins import NonNegative
from feelstream.policies.base import STORED_FEATURES, Decision, Observation, Outcome, Policy, State
from feelstream.policies.solvers.balance import greedy_set, holders, mix

NEVER = 2.0  # the largest distance that two mixes can have


class FedTeddi(Policy):
    """At most `size` feasible devices with data: classes of the set like everyone's, data that has drifted first."""

    needs: ClassVar[frozenset[str]] = frozenset({STORED_FEATURES})

    drift: NonNegative = Field(default=0.5, description="what drift counts against the distance of the set; ≥ 0")

    def init(self, system: System) -> State:
        return {"seen": np.zeros((system.devices, system.features))}  # L(S_k) when last used

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        ids, labels, held = holders(observation, plan, rng)  # ties broken at random
        everyone, drifted = mix(held.sum(axis=0, dtype=float)), drift(labels, state["seen"][ids])

        def cost(pooled: Reals, devices: Ids, chosen: list[int]) -> Reals:
            moved = (drifted[chosen].sum() + drifted[devices]) / (len(chosen) + 1)
            return np.abs(mix(pooled) - everyone).sum(axis=1) - self.drift * moved

        return Decision(np.sort(ids[greedy_set(labels, -drifted, self.size, cost)]), plan)

    def update(self, state: State, outcome: Outcome) -> State:
        held, seen = outcome.observation.stored_features, state["seen"].copy()
        assert held is not None
        sent = outcome.schedule[outcome.transmitted]
        seen[sent] = held[sent]
        return {"seen": seen}


def drift(labels: Reals, seen: Reals) -> Reals:
    """(devices,) the distance of two mixes of classes, from label counts (devices, m); NEVER where nothing was seen.

    >>> drift(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[1.0, 1.0], [0.0, 0.0]])).tolist()
    [1.0, 2.0]
    """
    known = seen.sum(axis=1) > 0
    return np.where(known, np.abs(mix(labels) - mix(seen)).sum(axis=1), NEVER)
