"""Select all: every device that can take part; an upper bound on participation and on energy.

    Π* = the largest set that meets the deadline when all of it shares the band (pack)

Where not all available devices fit at once, those that compute fastest go first.

Needs: this round's CPU frequencies. Ignores: energy, channels, data, and its own setting `size`: it plans
n = |Π*|, as large as the round allows.

The bound that client-selection studies compare with, for instance J. Xu, H. Wang, "Client Selection and Bandwidth
Allocation in Wireless Federated Learning Networks: A Long-Term Perspective", IEEE Trans. Wireless Commun. 20(2), 2021,
arXiv:2004.04314. Choice: eligibility holds for this policy too, so it is a bound among schedules that can work.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from feelstream.policies.base import EQUAL_UPDATES, Decision, Observation, Policy, State
from feelstream.policies.ranking import pack


class SelectAll(Policy):
    """All devices that fit the round together; `size` is ignored."""

    knows_probability: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({EQUAL_UPDATES})

    @property
    def smallest_plan(self) -> int:
        return 1

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        schedule = pack(observation, np.ones(observation.system.devices, bool), observation.system.devices)
        probability = np.zeros(observation.system.devices)
        probability[schedule] = 1.0
        return Decision(schedule, observation.plan(len(schedule)), probability=probability)
