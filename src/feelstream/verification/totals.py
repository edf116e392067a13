"""rounds.parquet against the devices' rows and by itself, and what holds over the whole run."""

from __future__ import annotations

import math

import numpy as np

from feelstream.columns import ROUND_COLUMNS, budget_column, columns_of
from feelstream.resolved import Phase
from feelstream.verification.files import Stored
from feelstream.verification.findings import RELATIVE, Array, Findings, Stage
from feelstream.verification.rounds import Rounds, Totals
from feelstream.verification.rules import Rule, exact, holds, same, within

ALWAYS, TESTS = columns_of(ROUND_COLUMNS, ()), ("accuracy", "loss")
ROUND, EVALUATION, WHOLE_RUN = Stage.ROUND, Stage.EVALUATION, Stage.WHOLE_RUN
PLACES = 20.0  # energy of so many places that the fleet's queue starts at, under V = auto


def evaluated(stored: Stored, rounds: Array) -> Array:
    """[R], whether the model was evaluated after each of these rounds."""
    learning = stored.run.learning
    return ((rounds % learning.eval_every == 0) | (rounds == stored.run.rounds)) & learning.learns


# With the devices' rows of the same rounds
SUMS = (
    *(exact(ROUND, name, f"{name} counts the {name} devices",
            lambda r, name=name: getattr(r.devices, name).sum(axis=1))
      for name in ("feasible", "scheduled", "transmitted")),
    same(ROUND, "importance_sum", "importance_sum adds up the importance of the scheduled devices",
         lambda r: np.where(r.devices.scheduled & r.devices.feasible, r.devices.importance, 0.0).sum(axis=1)),
    same(ROUND, "energy_mean_j", "energy_mean_j is the mean over devices of this round's energy",
         lambda r: r.devices.energy_j.mean(axis=1)),
    same(ROUND, "queue_mean_j", "queue_mean_j is the mean queue after the round",
         lambda r: r.devices.queue_next_j.mean(axis=1)),
    same(ROUND, "queue_max_j", "queue_max_j is the longest queue after the round",
         lambda r: r.devices.queue_next_j.max(axis=1)),
)  # fmt: skip


# rounds.parquet by itself
BY_ITSELF = (
    same(ROUND, "sim_time_s", "sim_time_s = round · the period of a round", lambda r: r.rounds * r.run.period_s),
    same(ROUND, "energy_mean_cum_j", "energy_mean_cum_j is the mean of energy_mean_j over the rounds so far",
         lambda r: np.cumsum(r.energy_mean_j) / r.rounds),
)  # fmt: skip


def _queue_before(r: Totals) -> Array:
    return np.concatenate([[0.0], r.queue_mean_j[:-1]])


def _budget_mean_j(r: Totals) -> Array:
    """In force in each round. [R]"""
    means, rounds = zip(*((budget_j.mean(), count) for budget_j, count in _budgets(r.source)), strict=True)
    return np.repeat(means, rounds)


# Without the devices' rows: the counts are nested, and means and queues fit one another
COUNTS = (
    within(ROUND, "feasible", "no more devices are feasible than there are", 0, lambda r: r.run.devices),
    within(ROUND, "scheduled", "only feasible devices are scheduled", 0, lambda r: r.feasible),
    within(ROUND, "scheduled", "no more devices are scheduled than planned", 0, lambda r: r.planned),
    within(ROUND, "transmitted", "only scheduled devices transmit", 0, lambda r: r.scheduled),
    exact(ROUND, "scheduled", "as many devices are scheduled as planned, as far as there are feasible ones",
          lambda r: np.minimum(r.planned, r.feasible), "optimal, not cap"),
    *(exact(ROUND, name, f"{name} is 0 if nobody is scheduled", lambda r: 0.0, when, but=lambda r: r.scheduled > 0)
      for name, when in (("importance_sum", ""), ("energy_mean_j", "not asks"))),
    within(ROUND, "queue_max_j", "the longest queue is at least the mean queue, and at most all queues together",
           lambda r: r.queue_mean_j, lambda r: r.run.devices * r.queue_mean_j, "not signed"),
    within(ROUND, "queue_mean_j", "the mean queue grows by no more than the mean energy", -np.inf,
           lambda r: _queue_before(r) + r.energy_mean_j),
    within(ROUND, "queue_mean_j", "the mean queue falls by no more than the mean budget",
           lambda r: _queue_before(r) + r.energy_mean_j, np.inf, stored=lambda r: r.queue_mean_j + _budget_mean_j(r)),
)  # fmt: skip


def of_evaluators(whole: Totals) -> list[Rule]:
    """Where the test's and the evaluators' numbers are, and their range."""
    every = [name for name in whole.values if name in TESTS or name not in ALWAYS]
    names = TESTS if whole.has("deployed") else every
    return [rule for name in names for rule in _evaluated(name)]


def _evaluated(name: str) -> tuple[Rule, Rule]:
    """Null where nothing was evaluated; the test's, and forgetting, nowhere else. Of a user's own, any finite number.

    A deployment's server tests when it likes, and may be asked to run for more rounds after its last.
    """
    stage = ROUND if name in TESTS else EVALUATION
    low, high = (0.0, ROUND_COLUMNS[name].most) if name in ROUND_COLUMNS else (-np.inf, np.inf)

    def due(r: Totals) -> Array:
        return evaluated(r.source, r.rounds) & (name not in TESTS or "test" in r.run.learning.evaluators)

    def present(r: Totals) -> Array:
        there = ~r.nulls[name]
        right = there == due(r) if name in (*TESTS, "forgetting") else due(r) | ~there
        return right | (r.has("deployed") & r.run.learning.learns)

    def inside(r: Totals) -> Array:
        value = getattr(r, name)
        return r.nulls[name] | ((value >= low) & (value <= high) & np.isfinite(value))

    rule = f"{name} is stored after each round of learning.eval_every and the last, never with engine none"
    return (
        holds(stage, name, rule, present, lambda r: np.where(due(r), "a value", "null")),
        holds(stage, name, f"{name} is within its range, and finite", inside, low),
    )


def backlog_j(stored: Stored, energy_mean_j: Array) -> Array:
    """The fleet's queue in every round with V = auto [T], 0 in others, from what all devices spent together.

    Z is the energy of PLACES places in the first such round; then max(Z + ΣE − ΣE^avg, 0).
    """
    found, z = np.zeros(stored.run.rounds), None
    for phase, end in phases(stored):
        for t in range(phase.first, end) if phase.auto else ():
            budget_j = float(stored.constants[budget_column(phase.first)].sum())
            z = PLACES * budget_j / max(phase.size, 1) if z is None else z
            found[t - 1] = z
            z = max(z + float(energy_mean_j[t - 1]) * stored.run.devices - budget_j, 0.0)
    return found


def phases(stored: Stored) -> list[tuple[Phase, int]]:
    """Each with the round in which the next begins."""
    all_of = stored.run.phases
    return list(zip(all_of, [*(phase.first for phase in all_of[1:]), stored.run.rounds + 1], strict=True))


def _budgets(stored: Stored) -> list[tuple[Array, int]]:
    """E^avg [K] of every phase, and for how many rounds."""
    return [(stored.constants[budget_column(phase.first)], end - phase.first) for phase, end in phases(stored)]


class WholeRun:
    """Per device, over the rounds so far: energy, the greatest in one round, the longest queue and when."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self.energy_j = self.energy_max_j = self.queue_max_j = np.zeros(stored.run.devices)
        self.queue_max_round = np.ones(stored.run.devices, int)
        self.priority_max, self.least_j, self.last_j = np.zeros(stored.run.devices), np.inf, 0.0

    def add(self, r: Rounds) -> None:
        energy, queue = r.energy_j, r.queue_next_j
        self.energy_j, self.backlog_j = self.energy_j + energy.sum(axis=0), r.memory["backlog_j"]
        self.energy_max_j = np.maximum(self.energy_max_j, energy.max(axis=0))
        longest = queue.max(axis=0)
        grown = longest > self.queue_max_j
        self.queue_max_round = np.where(grown, r.rounds[queue.argmax(axis=0)], self.queue_max_round)
        self.queue_max_j = np.maximum(self.queue_max_j, longest)
        self.queue_end_j, self.last_j = queue[-1], float(energy[-1].sum())
        self.priority_max = np.maximum(self.priority_max, r.priority.max(axis=0))
        if r.has("cap"):
            self.least_j = np.minimum(self.least_j, _least_planned_j(r).min(axis=0))

    def check(self, found: Findings, traits: frozenset[str]) -> None:
        """(1/T)ΣE ≤ (1/T)ΣE^avg + Q(T+1)/T of every device; with `cap` and finite V also the bound on its queue."""
        run, T, budgets = self.stored.run, self.stored.run.rounds, _budgets(self.stored)

        def flag(t: int, name: str, bad: Array, stored: Array, expected: Array, rule: str) -> None:
            found.flag(WHOLE_RUN, name, np.array([t]), bad, stored, expected, rule)

        granted_j = sum(count * budget_j for budget_j, count in budgets)
        rounding_j = RELATIVE * granted_j if "signed" in traits else 0.0  # a queue below 0 cancels the budget
        bad = ~(self.energy_j <= (granted_j + self.queue_end_j) * (1 + RELATIVE) + rounding_j)
        rule = "a device's energy is at most its budget plus its last queue, over the whole run"
        flag(T, "queue_next_j", bad[None], self.queue_end_j, self.energy_j - granted_j, rule)
        found.notes[WHOLE_RUN] = "mean energy against budget"
        if run.phases[0].auto and len(run.phases) == 1:
            # All rounds but the last, which is not in the growth of the fleet's queue either.
            spent_j, growth_j = float(self.energy_j.sum()) - self.last_j, float(self.backlog_j[-1] - self.backlog_j[0])
            most_j = (T - 1) / T * float(np.sum(granted_j))
            over = not spent_j <= most_j + growth_j + RELATIVE * (spent_j + most_j + abs(growth_j))
            rule = "the fleet spends at most its budget plus the growth of its queue"
            flag(T, "energy_mean_j", np.array([over]), np.array([spent_j]), np.array([most_j + growth_j]), rule)
            found.notes[WHOLE_RUN] += ", of every device and of the fleet"
        V = max(math.inf if phase.V is None else phase.V for phase in run.phases)
        if {"cap", "metric"} <= traits and math.isfinite(V) and traits.isdisjoint({"own_costs", "asks"}):
            # A device is scheduled only while Q·E~ < V·I ≤ V·(K + 2)·priority, and then its queue grows by at most
            # E_max − E^avg; reports would let it grow without that. V is the largest and E^avg the least that was ever
            # in force, E_max the device's greatest energy in this run, which the argument permits on every path.
            bound_j = V * (run.devices + 2) * self.priority_max / self.least_j
            bound_j = bound_j + np.maximum(self.energy_max_j - np.min([each for each, _ in budgets], axis=0), 0.0)
            bad = ~(self.queue_max_j <= bound_j * (1 + RELATIVE))
            t = int(np.where(bad, self.queue_max_round, T).min())
            rule = "under cap, a queue is at most V·(K+2)·priority/E~_min + max(E_max − budget, 0)"
            flag(t, "queue_next_j", (bad & (self.queue_max_round == t))[None], self.queue_max_j, bound_j, rule)
            found.notes[WHOLE_RUN] += "; queue bound of cap, with the largest energy that occurred"


def _least_planned_j(r: Rounds) -> Array:
    """E~_min: at the lowest frequency that is allowed and meets the deadline; sending free where power is chosen.

    E_tr counts by the probability to deliver, so the least is that of the least probable.
    """
    n = max(r.phase.size, 1)
    sending_s = r.surrogate_s(n) if r.has("equal") else 0.0
    left_s = r.time_s - sending_s
    needed_hz = np.where(left_s > 0, r.cycles / np.where(left_s > 0, left_s, 1.0), math.inf)
    lowest = r.constants["frequency_low_hz"]
    slowest_hz = np.maximum(lowest if r.has("equal") else lowest.min(), needed_hz)
    computing_j = r.factor * r.law_j(r.cycles, slowest_hz, r.constants["frequency_high_hz"]) if r.has("law") else 0.0
    downloading_j = r.download_j if r.has("equal") else 0.0
    return computing_j + r.reliability * r.equal_power_w * sending_s + downloading_j + 0.0 * r.beta
