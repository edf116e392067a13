"""Uniformly random scheduling.

Reference: H. B. McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data",
AISTATS 2017. Here the draw is among the devices that can meet the deadline.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from feelstream.policies.base import Decision, Observation, Policy, State


class Random(Policy):
    """`size` feasible devices, all equally likely."""

    knows_probability: ClassVar[bool] = True

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        feasible = np.flatnonzero(plan.feasible)
        chosen = rng.choice(feasible, min(self.size, len(feasible)), replace=False)
        probability = np.where(plan.feasible, len(chosen) / max(len(feasible), 1), 0.0)
        return Decision(np.sort(chosen), plan, probability=probability)
