"""Age based: the devices that have waited longest.

    Π* = the n feasible devices with the largest age  a_k(t) = t − (round in which k was last scheduled, 0 if never)

Needs: its own memory. Ignores: energy, channels, data. Unlike round robin it has no order: a device that could not
take part keeps its claim, and ties between equal ages are broken at random.

Reference: H. H. Yang, A. Arafa, T. Q. S. Quek, H. V. Poor, "Age-Based Scheduling Policy for Federated Learning in
Mobile Edge Networks", ICASSP 2020, arXiv:1910.14648.
Choice: the paper weighs the age of a device's last update against this round's channel, which is not known when
scheduling; the age alone remains. A device that trained and was then refused the channel starts again at 0 as well, so
that one in a lasting fade cannot hold a slot for ever.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from feelstream.model.system import System
from feelstream.policies.base import Decision, Observation, Outcome, Policy, State
from feelstream.policies.ranking import lowest


class Age(Policy):
    """The `size` feasible devices that were unscheduled for the longest time."""

    by_score: ClassVar[bool] = True
    prefers: ClassVar[str | None] = "rounds since its last turn"

    def init(self, system: System) -> State:
        return {"last": np.zeros(system.devices, np.int64)}

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        score = (state["last"] - observation.round).astype(float)
        return Decision(lowest(score, plan.feasible, self.size, rng), plan, score=score)

    def update(self, state: State, outcome: Outcome) -> State:
        last = state["last"].copy()
        last[outcome.schedule] = outcome.round
        return {"last": last}
