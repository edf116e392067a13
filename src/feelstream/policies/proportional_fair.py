"""Proportional fair: a good channel, in proportion to how well a device has been served.

    Π* = the n feasible devices with the largest  |g_k(t)|²/β_k                       (gain = "oracle")
    Π* = the n feasible devices with the largest  ĝ_k / m_k,       ĝ_k = |g_k|² when k was last heard        ("last")
    m_k ← (1 − 1/w) m_k + (1/w) |g_k|² 1{k transmitted},           m_k = 0, ĝ_k = 1 before the first time

m_k counts as at least 1e-200: a device that was never served comes before all that were, and nothing divides by 0.

Needs: the gains of scheduled devices, measured when they send. Ignores: energy, data. The oracle knows this round's
gains, which no server knows when it schedules; it exists in simulations only.

References: A. Jalali, R. Padovani, R. Pankaj, "Data Throughput of CDMA-HDR", VTC 2000 (the moving average of what was
served); H. H. Yang et al., "Scheduling Policies for Federated Learning in Wireless Networks", IEEE Trans. Commun.
68(1), 2020, arXiv:1908.06287 (SNR over its mean, for federated learning).
Choice: the latter compares this round's SNR to its mean: that is `oracle` here. Nobody knows this round's gain when
scheduling, though, and with the last seen gain that rule would stick: whoever was last seen in a fade is never seen
again. The older rule, whose mean counts the rounds without service as 0, has the same aim and is fair in the long run.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from feelstream.model.system import System
from feelstream.plugins import Count
from feelstream.policies.base import ORACLE_GAIN, Decision, Observation, Outcome, Policy, State
from feelstream.policies.ranking import lowest


class ProportionalFair(Policy):
    """The `size` feasible devices with the largest last seen gain over mean service."""

    by_score: ClassVar[bool] = True
    prefers: ClassVar[str | None] = "gain over mean service"

    window: Count = Field(default=20, description="w, rounds over which service is averaged; ≥ 1")
    gain: Literal["last", "oracle"] = Field(
        default="last",
        description="last: the gain last seen over mean service; oracle: this round's over β (simulations only)",
    )

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({ORACLE_GAIN} if self.gain == "oracle" else ())

    def init(self, system: System) -> State:
        if self.gain == "oracle":
            return {}
        return {"gain": np.ones(system.devices), "served": np.zeros(system.devices)}

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        if observation.oracle_gain is not None and self.gain == "oracle":
            score = -observation.oracle_gain / observation.beta
        else:
            score = -state["gain"] / np.maximum(state["served"], 1e-200)
        return Decision(lowest(score, plan.feasible, self.size, rng), plan, score=score)

    def update(self, state: State, outcome: Outcome) -> State:
        if not state:
            return state
        gain, served = state["gain"].copy(), state["served"] * (1 - 1 / self.window)
        heard = outcome.gain > 0  # else nothing came, and no gain was seen
        gain[outcome.schedule[heard]] = outcome.gain[heard]
        served[outcome.schedule] += np.where(outcome.transmitted, outcome.gain, 0.0) / self.window
        return {"gain": gain, "served": served}
