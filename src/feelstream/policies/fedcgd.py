"""FedCGD: a set whose classes are those of everyone, and that holds enough samples.

    p(Π) = Σ_{k∈Π} L(S_k) / Σ_{k∈Π} |S_k|       the label mix of a set;  p: that of all devices
    cost(Π) = ‖p(Π) − p‖₁ + variance / Σ_{k∈Π} |S_k|
    Π* built one by one: the device that makes the cost least, while the cost falls, up to n devices

The first term is the earth mover's distance between classes that are all equally far apart, the second what sampling
adds. A large set whose mix is right needs no further device, so often fewer than n are scheduled.

Needs: label counts of all that each device holds. Ignores: energy, channels, the past.

Reference: T. Chen, J. Yan, Y. Sun, S. Zhou, Z. Niu, "FedCGD: Collective Gradient Divergence Optimized Scheduling for
Wireless Federated Learning", arXiv:2506.07581. At hand were its abstract and its objective: the sum of a weighted
earth mover's distance of the group to the population and of a sampling variance that falls with the samples scheduled.
Choices: classes weigh the same (the source weighs them by gradients that no server has here), the constant of the
variance is a field, and sets are built greedily among devices that meet the deadline at the planned size.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from feelstream.arrays import Ids, Reals
from feelstream.plugins import NonNegative
from feelstream.policies.base import STORED_FEATURES, Decision, Observation, Policy, State
from feelstream.policies.solvers.balance import greedy_set, holders, mix


class FedCGD(Policy):
    """At most `size` feasible devices with data, whose pooled classes are nearest to everyone's."""

    needs: ClassVar[frozenset[str]] = frozenset({STORED_FEATURES})

    variance: NonNegative = Field(
        default=20.0, description="samples at which sampling weighs as much as a class distance of 1; ≥ 0"
    )

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        ids, labels, held = holders(observation, plan, rng)  # ties broken at random
        everyone = held.sum(axis=0, dtype=float)
        alone = np.zeros(len(ids))  # a set's cost depends on labels alone
        sizes = observation.stored[ids].astype(float)

        def cost(pooled: Reals, devices: Ids, chosen: list[int]) -> Reals:
            samples = sizes[chosen].sum() + sizes[devices]
            return np.abs(mix(pooled) - mix(everyone)).sum(axis=1) + self.variance / samples

        chosen = greedy_set(labels, alone, self.size, cost, only_better=True)
        return Decision(np.sort(ids[chosen]), plan)
