"""Balanced: the class mix that the model has lacked lately, at a price on energy. Our own rule.

    p(Π)  = Σ_{k∈Π} L(S_k) / Σ_{k∈Π} |S_k|             the label mix that a set trains on, as aggregation weighs it
    r(t)  = (1−η) r(t−1) + η p(Π̄(t)),   r(0) = q       the mix that the model has seen lately
    D(Π)  = Σ_i ((1−η) r + η p(Π) − q)_i² / q_i         how far from balance the model would be after the round
    Π*    built one by one: n times the device that makes   D(Π ∪ {k}) + price·E~_k(n)   least

q is 1/m, or the mix of reference data (docs/features.md). Only feasible devices that hold data are taken, fewer
than n where there are fewer. `price` says what a joule may cost; η (`memory`) how fast the model forgets. price =
"auto" is 0.1 for the mean E~_k(n) of those that can be taken, which is sensible whatever a turn costs, millijoules or
kilojoules: imbalances differ by tenths.

Why: (1) A virtual queue that starts at 0 puts no price on a device's first turns, and in a short run these are most of
its turns. A price on energy from the first round on lets every device wait for a round in which its CPU happens to be
slow, and computing energy falls as f². (2) What a round does to the model is decided by the labels of all that the
scheduled devices hold, S_k, for that is what they train on, and by how recently the model saw the others; the
dissimilarity of fresh data from everything ever used knows neither.

Needs: label counts of all that each device holds (the same kind of knowledge as the paper's metric, and the same cost
in privacy), this round's CPU frequencies, mean gains. Ignores: queues and budgets, the model, losses, what is fresh.
docs/leaderboard.md has what it is worth. It keeps no budget by itself: `feelstream tune` finds the price that does.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from feelstream.arrays import Ids, Reals
from feelstream.model.system import System
from feelstream.plugins import NonNegative
from feelstream.policies.base import STORED_FEATURES, Decision, Observation, Outcome, Policy, State
from feelstream.policies.ranking import Ranking
from feelstream.policies.solvers.balance import Balance, greedy_set, holders, imbalance

MEAN_TURN = 0.1  # what it costs under price = "auto"


class Balanced(Policy):
    """At most `size` feasible devices with data: class balance of what the model sees, at a price on energy."""

    needs: ClassVar[frozenset[str]] = frozenset({STORED_FEATURES})

    price: NonNegative | Literal["auto"] = Field(
        default=1.0, description="what a joule costs against class balance, 1/J; ≥ 0; auto: 0.1 for a mean turn"
    )
    memory: Annotated[float, Field(strict=True, gt=0, le=1)] = Field(
        default=0.5, description="η, weight of one round in what the model has seen lately; above 0, at most 1"
    )

    def init(self, system: System) -> State:
        return {"seen": system.balanced_mix}

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        ids, labels, _ = holders(observation, plan, rng)  # equals in random order
        cost = self._cost(plan.energy_j[ids])

        def value(pooled: Reals, devices: Ids, _: list[int]) -> Reals:
            return cost[devices] + imbalance(pooled, state["seen"], self.memory, observation.system.reference)

        chosen = greedy_set(labels, cost, self.size, value)
        return Decision(np.sort(ids[chosen]), plan)

    def ranking(self, state: State, observation: Observation, decision: Decision, device: int) -> Ranking:
        """What each candidate adds to D and to price·E~_k, beside the rest of the set."""
        plan, held = decision.plan, observation.stored_features
        assert held is not None
        able = plan.feasible & held.any(axis=1)
        cost = np.zeros(len(held))
        cost[able] = self._cost(plan.energy_j[able])
        lately = state["seen"], self.memory
        balance = Balance(held.astype(float), cost, *lately, spread=0.0, reference=observation.system.reference)
        return balance.ranking(able, decision.schedule, device, priced="energy price·E")

    def _cost(self, energy_j: Reals) -> Reals:
        """price·E~_k of all that can be taken."""
        if self.price != "auto":
            return self.price * energy_j
        total = float(energy_j.sum())
        return energy_j * (MEAN_TURN * len(energy_j) / total) if total > 0 else np.zeros(len(energy_j))

    def update(self, state: State, outcome: Outcome) -> State:
        held = outcome.observation.stored_features
        assert held is not None
        labels = held[outcome.schedule[outcome.transmitted]].sum(axis=0, dtype=float)
        if not labels.any():
            return state
        return {"seen": (1 - self.memory) * state["seen"] + self.memory * labels / labels.sum()}
