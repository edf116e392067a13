"""FedCS: ask some devices for their resources, then pack as many as meet the deadline, the fastest first.

    C  = ⌈share·K⌉ available devices, but at least n if n < K, drawn uniformly  (the resource request)
    Π* = the largest subset of C of at most n devices that meets the deadline together, the fastest first (pack)

Needs: CPU frequencies of the devices asked. Ignores: energy, data. It plans for |Π*| devices, so `size` is the most
it takes, and a slow round shrinks the schedule instead of emptying it. `size` = K is the original: no cap, and no more
devices asked than its share.

Reference: T. Nishio, R. Yonetani, "Client Selection for Federated Learning with Heterogeneous Resources in Mobile
Edge", ICC 2019, arXiv:1804.08333, Algorithm 3: repeatedly take the device that lengthens the round least,
t_upload + max(0, t_update − Θ), and keep it while Θ stays within the deadline.
Choice: there devices upload one after another with the whole band each; here they share it, so the time that is
tested is c/f_k + T~(n). Planned upload times are equal for all devices, so the device that lengthens the round least
is the fastest in both.
"""

from __future__ import annotations

from math import ceil
from typing import ClassVar

import numpy as np
from pydantic import Field

from feelstream.plugins import Fraction
from feelstream.policies.base import EQUAL_UPDATES, Decision, Observation, Policy, State
from feelstream.policies.ranking import pack


class FedCS(Policy):
    """The fastest of a random group, as many as meet the deadline together, at most `size`."""

    needs: ClassVar[frozenset[str]] = frozenset({EQUAL_UPDATES})

    share: Fraction = Field(
        default=0.1,
        description="share of all devices that is asked each round, at least `size` unless that is K; 0 to 1",
    )

    @property
    def smallest_plan(self) -> int:
        return 1

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        available = np.flatnonzero(observation.available)
        devices = observation.system.devices
        share = ceil(round(self.share * devices, 9))  # 0.07 · 100 is a rounding above 7
        asked = max(share, self.size if self.size < devices else 1)
        asked = min(asked, len(available))
        candidates = np.zeros(devices, bool)
        candidates[rng.choice(available, asked, replace=False)] = True
        schedule = pack(observation, candidates, self.size)
        return Decision(schedule, observation.plan(len(schedule)))
