"""Myopic in energy: nobody spends what has not been granted yet.

    k can afford it:  E~_k(n) ≤ t E_k^avg − Σ_{s<t} E_k(s)     (budget = "adaptive": what is left of the grants so far)
                      E~_k(n) ≤ E_k^avg                        (budget = "static": each round's grant alone)
    Π* = of the feasible devices that can afford it, the n with the least E~_k(n); fewer if fewer can

Needs: frequencies, mean gains, and what each device has spent. Ignores: data, and that a later round may be a better
one to spend in.

Reference: J. Xu, H. Wang, "Client Selection and Bandwidth Allocation in Wireless Federated Learning Networks: A
Long-Term Perspective", IEEE Trans. Wireless Commun. 20(2), 2021, arXiv:2004.04314: the benchmarks SMO (static) and AMO
(adaptive). Choices: they maximise the number of participants, which leaves open who goes if more than n can: here the
cheapest. They let energy be known in advance; here the plan is checked and the true energy is booked, so the budget
may be exceeded by the error of one plan, which the next rounds then have to save.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from feelstream.arrays import Reals
from feelstream.model.system import System
from feelstream.policies.base import Decision, Observation, Outcome, Policy, State
from feelstream.policies.ranking import Ranking, Term, left_j, lowest


class MyopicEnergy(Policy):
    """At most `size` feasible devices, only those that can pay for the round from their budget so far."""

    budget: Literal["adaptive", "static"] = Field(
        default="adaptive", description="adaptive: what is left of all rounds so far; static: this round's budget only"
    )

    def init(self, system: System) -> State:
        return {"spent_j": np.zeros(system.devices)}

    def select(self, state: State, observation: Observation, rng: np.random.Generator) -> Decision:
        plan = observation.plan(self.size)
        affordable = plan.feasible & (plan.energy_j <= self._left_j(state, observation))
        return Decision(lowest(plan.energy_j, affordable, self.size, rng), plan)

    def _left_j(self, state: State, observation: Observation) -> Reals:
        system = observation.system
        if self.budget == "static":
            return system.energy_budget_j
        return left_j(system, observation.round, state["spent_j"])

    def ranking(self, state: State, observation: Observation, decision: Decision, device: int) -> Ranking:
        """E~_k of those that can afford it."""
        plan, left_j = decision.plan, self._left_j(state, observation)
        affordable = plan.feasible & (plan.energy_j <= left_j)
        needs_mj, left_mj = (1e3 * each[device] for each in (plan.energy_j, left_j))
        return Ranking(
            (Term("planned energy in mJ", np.where(affordable, 1e3 * plan.energy_j, np.nan)),),
            refusal=f"the round would cost it {needs_mj:.3g} mJ and its budget so far leaves {left_mj:.3g} mJ",
        )

    def update(self, state: State, outcome: Outcome) -> State:
        return {"spent_j": outcome.added_to(state["spent_j"])}
