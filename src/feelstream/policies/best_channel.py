"""Best channel: the devices that are heard best.

    Π* = the n feasible devices with the largest β_k                       (gain = "mean")
    Π* = the n feasible devices with the largest last seen |g_k|², β_k if never seen    (gain = "last")
    Π* = the n feasible devices with the largest |g_k(t)|²                              (gain = "oracle")

Needs: mean gains, or the gains of scheduled devices as measured when they send. Ignores: computing energy, data.
The oracle knows what no server knows when it schedules; it exists in simulations only, and bounds the others.

Reference: M. M. Amiri, D. Gündüz, S. R. Kulkarni, H. V. Poor, "Convergence of Update Aware Device Scheduling for
Federated Learning at the Wireless Edge", IEEE Trans. Wireless Commun. 20(6), 2021, arXiv:2001.10402 (policy BC).
Choice: BC ranks this round's gains, which nobody knows when scheduling: that is `oracle` here. Fading is independent
from round to round, so β_k, the default, is the best forecast of them; the last seen gain is what a server without any
β would use.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from feelstream.model.system import System
from feelstream.policies.base import ORACLE_GAIN, Decision, Observation, Outcome, Policy, State
from feelstream.policies.ranking import lowest


class BestChannel(Policy):
    """The `size` feasible devices with the largest known channel gain."""

    by_score: ClassVar[bool] = True
    prefers: ClassVar[str | None] = "channel gain"

    gain: Literal["mean", "last", "oracle"] = Field(
        default="mean",
        description="mean: β; last: the gain last seen, β if none was; oracle: this round's (simulations only)",
    )

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({ORACLE_GAIN} if self.gain == "oracle" else ())

    def init(self, system: System) -> State:
        if self.gain != "last":
            return {}
        return {"seen": np.zeros(system.devices, bool), "last": np.zeros(system.devices)}

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        known = observation.oracle_gain if self.gain == "oracle" else observation.beta
        assert known is not None
        score = -(np.where(state["seen"], state["last"], known) if state else known)
        return Decision(lowest(score, plan.feasible, self.size, rng), plan, score=score)

    def update(self, state: State, outcome: Outcome) -> State:
        if not state:
            return state
        seen, last = state["seen"].copy(), state["last"].copy()
        heard = outcome.gain > 0  # else nothing came, and no gain was seen
        seen[outcome.schedule[heard]] = True
        last[outcome.schedule[heard]] = outcome.gain[heard]
        return {"seen": seen, "last": last}
