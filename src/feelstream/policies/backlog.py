"""V = "auto": a weight from the budget alone, and a queue for the whole fleet that starts where it would settle.

    E_slot = Σ_k E_k^avg / n              what the budgets grant one of the n places in a round
    q0     = 1 / E_slot                   a guess of the price of energy: average importance, 1, is worth one place
    V      = C E_slot²,   C = 20          so that the backlog V q0 is the energy of C places
    Z(1)   = V q0,   Z(t+1) = max(Z(t) + Σ_k E_k(t) − Σ_k E_k^avg, 0)
    score  = (Q_k + Z) E~_k − V I_k       Q_k, the devices' own queues, start at 0 as ever

That the fleet as a whole keeps its budget follows from every device keeping its own, so Z is the queue of a redundant
constraint. It starts above 0, so energy has a price at once, and learns K times as fast as a device's queue. On every
path (docs/derivation.md, "V that sets itself")

    (1/T) Σ_t Σ_k E_k(t)  ≤  Σ_k E_k^avg + (Z(T+1) − Z(1))/T,

so if Z has not doubled, the fleet exceeds its budget by a share of C/(nT) at most. Nothing keeps Z from doubling where
one turn costs many rounds of the fleet's budget: balanced_joint is the policy that never exceeds one.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from feelstream.errors import ScenarioError
from feelstream.model.system import System
from feelstream.plugins import Magnitude
from feelstream.policies.base import Outcome, State

PLACES = 20.0  # C

# A policy's field `V`.
Weight = Annotated[float, Field(strict=True, gt=0), Magnitude] | Literal["auto"]


def weight_j2(system: System, size: int) -> float:
    """V = C E_slot², J²."""
    return PLACES * _place_j(system, size) ** 2


def first_backlog_j(system: System, size: int) -> float:
    """Z(1) = V q0 = C E_slot, J."""
    return PLACES * _place_j(system, size)


def backlog_j(state: State, system: System, size: int) -> float:
    """Z of this round; at its start where the state has none yet, since V may become "auto" during a run."""
    return float(state["backlog_j"]) if "backlog_j" in state else first_backlog_j(system, size)


def next_backlog_j(backlog_j: float, outcome: Outcome) -> float:
    """max(Z + Σ E_k − Σ E_k^avg, 0)."""
    granted = float(outcome.observation.system.energy_budget_j.sum())
    return max(backlog_j + float(outcome.energy_j.sum()) - granted, 0.0)


def _place_j(system: System, size: int) -> float:
    total = float(np.sum(system.energy_budget_j))
    if total <= 0:
        raise ScenarioError(
            "policy.V: auto needs an energy budget above 0 (system.energy_budget_j); without one, set a number"
        )
    return total / size
