"""Rations of a budget: what each device may have spent by a round, and what it may spend at most.

With a horizon of T rounds, the budget T·E_k of a device is shared out evenly over the rounds since it first held data,

    due_k(t) = T E_k (t − s_k + 1)/(T − s_k + 1),                    and never  spent_k > T E_k;

without one, the credit grows by E_k each round, and a device that has any may take one turn,

    due_k(t) = t E_k,                                                and never  spent_k > t E_k + E_turn.

After round T the horizon is the present round. docs/within-budget.md proves what either form keeps.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from feelstream.arrays import Flags, Ints, Reals
from feelstream.errors import ScenarioError
from feelstream.model.reporting import worst_case_j
from feelstream.model.system import System

Pace = Literal["horizon", "running"]


def due_j(pace: Pace, system: System, round: int, first: Ints) -> Reals:
    """(K,) the ration by this round, J; first: (K,) the round in which each first held data, 0 where none has yet."""
    budget_j = system.energy_budget_j
    if pace == "running":
        return round * budget_j
    horizon = max(system.rounds, round)
    since = np.where(first > 0, first, round)
    return horizon * budget_j * ((round - since + 1) / (horizon - since + 1))


def reports_j(pace: Pace, system: System, round: int, beta: Reals) -> Reals:
    """(K,) what is set aside for reports from this round on: of each the most that it can cost with these mean gains.

    It is no bound where devices move. Without a horizon it is that of this round, and later ones are paid of what is
    granted then. ScenarioError where reports alone may take the whole budget of a device.
    """
    slot = system.reports
    if slot is None:
        return np.zeros(system.devices)
    last = round if pace == "running" else max(system.rounds, round)
    asked = sum((t - 1) % slot.every == 0 for t in range(round, last + 1))
    lowest_hz, highest_hz = system.frequency_hz
    most_j = asked * worst_case_j(slot, system, np.full(system.devices, highest_hz), beta, lowest_hz)
    granted_j = (last - round + 1) * system.energy_budget_j
    if round == 1 and (most_j >= granted_j).any():
        k = int(np.argmax(most_j - granted_j))
        raise ScenarioError(
            f"reports: those of device {k} may take {most_j[k]:.3g} J, and its budget is {granted_j[k]:.3g} J, so "
            "it could never train; set reports.pace = slow and reports.least_fading, say to 0.1, a shorter "
            "reports.slot_s, fewer reports.bits, or data.features.every"
        )
    return most_j


def left_j(pace: Pace, system: System, round: int, spent_j: Reals) -> Reals:
    """(K,) the most that a turn may cost each device now, J: what is left of T·E_k, or without limit where credit is.

    Never negative; 0 where a device must wait.
    """
    granted_j = (round if pace == "running" else max(system.rounds, round)) * system.energy_budget_j
    rest_j = np.maximum(granted_j - spent_j, 0.0)
    return np.where(rest_j > 0, np.inf, 0.0) if pace == "running" else rest_j


def whole_j(pace: Pace, system: System, round: int) -> Reals:
    """(K,) the budget for the whole run, J; 0 without a horizon, where there is none."""
    return (0 if pace == "running" else max(system.rounds, round)) * system.energy_budget_j


def part(pace: Pace, system: System, round: int, turn_j: Reals) -> Reals:
    """(K,) which part of its budget for the whole run a turn takes from each device; 0 without a horizon."""
    if pace == "running":
        return np.zeros(len(turn_j))
    return turn_j / np.maximum(whole_j(pace, system, round), np.finfo(float).tiny)


def turns(due_j: Reals, spent_j: Reals, holds: Flags, turn_j: float) -> int:
    """How many turns the devices with data are behind their rations together; 0 to K; turn_j > 0."""
    behind_j = float((due_j[holds] - spent_j[holds]).sum())
    return int(min(max(behind_j, 0.0) / turn_j, len(holds)))
