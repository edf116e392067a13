"""rounds.parquet against the devices' rows and by itself, and what holds over the whole run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from feelstream.columns import ROUND_COLUMNS, columns_of
from feelstream.constants import Phase, budget_column
from feelstream.verification.files import Stored
from feelstream.verification.findings import RELATIVE, Array, Findings, Stage
from feelstream.verification.rounds import Rounds, Totals
from feelstream.verification.rules import Rule, holds, same, within

ROUND, EVALUATION, WHOLE_RUN = Stage.ROUND, Stage.EVALUATION, Stage.WHOLE_RUN
PLACES = 20.0  # energy of so many places that the fleet's queue starts at, under V = auto


def evaluated(stored: Stored, rounds: Array) -> Array:
    """[R], whether the model was evaluated after each of these rounds."""
    learning = stored.run.learning
    return ((rounds % learning.eval_every == 0) | (rounds == stored.run.rounds)) & learning.learns


def _importance_sum(r: Totals) -> Array:
    of = r.devices
    assert of is not None
    return np.where(of.scheduled & of.feasible, of.importance, 0.0).sum(axis=1)


# With the devices' rows of the same rounds
SUMS = (
    *(holds(ROUND, name, f"{name} counts the {name} devices",
            lambda r, name=name: getattr(r, name) == getattr(r.devices, name).sum(axis=1),
            lambda r, name=name: getattr(r.devices, name).sum(axis=1))
      for name in ("feasible", "scheduled", "transmitted")),
    same(ROUND, "importance_sum", "importance_sum adds up the importance of the scheduled devices", _importance_sum),
    same(ROUND, "energy_mean_j", "energy_mean_j is the mean over devices of this round's energy",
         lambda r: r.devices.energy_j.mean(axis=1)),
    same(ROUND, "queue_mean_j", "queue_mean_j is the mean queue after the round",
         lambda r: r.devices.queue_next_j.mean(axis=1)),
    same(ROUND, "queue_max_j", "queue_max_j is the longest queue after the round",
         lambda r: r.devices.queue_next_j.max(axis=1)),
)  # fmt: skip


def _tested(r: Totals) -> Array:
    return evaluated(r.source, r.rounds) & ("test" in r.run.learning.evaluators)


def _tests(name: str, most: float) -> tuple[Rule, ...]:
    return (
        # A deployment's server evaluates when it likes, and may be asked to run for more rounds after its last.
        holds(ROUND, name, f"{name} is stored after each round of learning.eval_every and the last, never with engine "
              "none", lambda r: (r.nulls[name] != _tested(r)) | (r.has("deployed") & r.run.learning.learns),
              lambda r: np.where(_tested(r), "a value", "null")),
        holds(ROUND, name, f"{name} lies between 0 and {most}",
              lambda r: r.nulls[name] | ((getattr(r, name) >= 0) & (getattr(r, name) <= most)), 0.0),
    )  # fmt: skip


# rounds.parquet by itself
BY_ITSELF = (
    same(ROUND, "sim_time_s", "sim_time_s = round · the period of a round", lambda r: r.rounds * r.run.period_s),
    same(ROUND, "energy_mean_cum_j", "energy_mean_cum_j is the mean of energy_mean_j over the rounds so far",
         lambda r: np.cumsum(r.energy_mean_j) / r.rounds),
    *_tests("accuracy", 1.0),
    *_tests("loss", np.inf),
)  # fmt: skip


def _queue_before(r: Totals) -> Array:
    return np.concatenate([[0.0], r.queue_mean_j[:-1]])


def _budget_mean_j(r: Totals) -> Array:
    """In force in each round. [R]"""
    firsts = np.array([phase.first for phase in r.run.phases])
    means = np.array([r.source.constants[budget_column(first)].mean() for first in firsts])
    return means[np.searchsorted(firsts, r.rounds, side="right") - 1]


# Without the devices' rows: the counts are nested, and means and queues fit one another
COUNTS = (
    within(ROUND, "feasible", "no more devices are feasible than there are", -np.inf, lambda r: r.run.devices),
    within(ROUND, "scheduled", "only feasible devices are scheduled", -np.inf, lambda r: r.feasible),
    within(ROUND, "scheduled", "no more devices are scheduled than planned", -np.inf, lambda r: r.planned),
    within(ROUND, "transmitted", "only scheduled devices transmit", -np.inf, lambda r: r.scheduled),
    holds(ROUND, "scheduled", "as many devices are scheduled as planned, as far as there are feasible ones",
          lambda r: r.scheduled == np.minimum(r.planned, r.feasible), lambda r: np.minimum(r.planned, r.feasible),
          "optimal, not cap"),
    *(within(ROUND, name, f"{name} is not negative", 0.0, np.inf)
      for name in ("feasible", "scheduled", "transmitted", "energy_mean_j", "queue_mean_j", "importance_sum")),
    holds(ROUND, "importance_sum", "importance_sum is 0 if nobody is scheduled",
          lambda r: (r.scheduled > 0) | (r.importance_sum == 0), 0.0),
    holds(ROUND, "energy_mean_j", "energy_mean_j is 0 if nobody is scheduled",
          lambda r: (r.scheduled > 0) | (r.energy_mean_j == 0), 0.0, "not asks"),
    within(ROUND, "queue_max_j", "the longest queue is at least the mean queue, and at most all queues together",
           lambda r: r.queue_mean_j, lambda r: r.run.devices * r.queue_mean_j),
    within(ROUND, "queue_mean_j", "the mean queue grows by no more than the mean energy", -np.inf,
           lambda r: _queue_before(r) + r.energy_mean_j),
    within(ROUND, "queue_mean_j", "the mean queue falls by no more than the mean budget",
           lambda r: _queue_before(r) + r.energy_mean_j, np.inf, stored=lambda r: r.queue_mean_j + _budget_mean_j(r)),
)  # fmt: skip


def evaluator_rules(names: list[str]) -> list[Rule]:
    """Null where nothing was evaluated, and in their range; of a user's own, the first alone."""
    rules = []
    for name in names:
        low, high = (0.0, ROUND_COLUMNS[name].most) if name in ROUND_COLUMNS else (-np.inf, np.inf)
        rules += [
            holds(EVALUATION, name, f"{name} is stored after evaluated rounds only",
                  lambda r, name=name: r.nulls[name] | evaluated(r.source, r.rounds), "null"),
            holds(EVALUATION, name, f"{name} is within its range, and finite",
                  lambda r, name=name, low=low, high=high: r.nulls[name]
                  | ((getattr(r, name) >= low) & (getattr(r, name) <= high) & np.isfinite(getattr(r, name))), low),
        ]  # fmt: skip
    if "forgetting" in names:
        rules.append(
            holds(EVALUATION, "forgetting", "forgetting is never missing where it was evaluated",
                  lambda r: ~(r.nulls["forgetting"] & evaluated(r.source, r.rounds)), "a value")
        )  # fmt: skip
    return rules


def numbers_of_evaluators(columns: Any) -> list[str]:
    return [name for name in columns if name not in columns_of(ROUND_COLUMNS, ())]


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


class WholeRun:
    """Per device, over the rounds so far: energy, the greatest in one round, the longest queue and when."""

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self.energy_j = self.energy_max_j = self.queue_max_j = np.zeros(stored.run.devices)
        self.queue_max_round = np.ones(stored.run.devices, int)
        self.priority_max, self.least_j, self.last_j = np.zeros(stored.run.devices), np.inf, 0.0

    def add(self, r: Rounds) -> None:
        energy, queue = r.energy_j, r.queue_next_j
        self.energy_j = self.energy_j + energy.sum(axis=0)
        self.energy_max_j = np.maximum(self.energy_max_j, energy.max(axis=0))
        longest = queue.max(axis=0)
        grown = longest > self.queue_max_j
        self.queue_max_round = np.where(grown, r.rounds[queue.argmax(axis=0)], self.queue_max_round)
        self.queue_max_j = np.maximum(self.queue_max_j, longest)
        self.queue_end_j, self.last_j = queue[-1], float(energy[-1].sum())
        self.priority_max = np.maximum(self.priority_max, r.priority.max(axis=0))
        if r.has("cap"):
            self.least_j = np.minimum(self.least_j, _least_planned_j(r).min(axis=0))

    def check(self, found: Findings, backlog: Array, traits: frozenset[str]) -> None:
        """(1/T)ΣE ≤ (1/T)ΣE^avg + Q(T+1)/T of every device; with `cap` and finite V also the bound on its queue."""
        run, T = self.stored.run, self.stored.run.rounds
        granted = sum((end - p.first) * self.stored.constants[budget_column(p.first)] for p, end in phases(self.stored))
        bad = ~(self.energy_j <= (granted + self.queue_end_j) * (1 + RELATIVE))
        rule = "a device's energy is at most its budget plus its last queue, over the whole run"
        self._flag(found, "queue_next_j", bad, self.queue_end_j, self.energy_j - granted, rule)
        found.notes[WHOLE_RUN] = "mean energy against budget"
        if run.phases[0].auto and len(run.phases) == 1:
            # All rounds but the last, which is not in the growth of the fleet's queue either.
            spent, most = float(self.energy_j.sum()) - self.last_j, (T - 1) / T * float(np.sum(granted))
            growth = float(backlog[-1] - backlog[0])
            over = np.array([not spent <= most + growth + RELATIVE * (spent + most + abs(growth))])
            rule = "the fleet spends at most its budget plus the growth of its queue"
            found.flag(
                WHOLE_RUN, "energy_mean_j", np.array([T]), over, np.array([spent]), np.array([most + growth]), rule
            )
            found.notes[WHOLE_RUN] += ", of every device and of the fleet"
        V = max(math.inf if phase.V is None else phase.V for phase in run.phases)
        if "cap" in traits and "metric" in traits and math.isfinite(V) and "own_costs" not in traits:
            self._check_queue_bound(found, V)
            found.notes[WHOLE_RUN] += "; queue bound of cap, with the largest energy that occurred"

    def _check_queue_bound(self, found: Findings, V: float) -> None:
        """Q_k ≤ V·I_max/E~_min + max(E_max − E^avg, 0) with I_max = (K + 2)·priority.

        A device is scheduled only while Q·E~ < V·I ≤ V·I_max, and then its queue grows by at most E_max − E^avg.
        V is the largest and E^avg [K] the least that was ever in force.
        E_max is the device's greatest energy in this run, which the argument above permits on every path.
        """
        run, constants = self.stored.run, self.stored.constants
        budget_j = np.min([constants[budget_column(phase.first)] for phase in run.phases], axis=0)
        bound = V * (run.devices + 2) * self.priority_max / self.least_j
        bound = bound + np.maximum(self.energy_max_j - budget_j, 0.0)
        bad = ~(self.queue_max_j <= bound * (1 + RELATIVE))
        rule = "under cap, a queue is at most V·(K+2)·priority/E~_min + max(E_max − budget, 0)"
        for t in np.unique(np.where(bad, self.queue_max_round, 0)):
            here = bad & (self.queue_max_round == t)
            self._flag(found, "queue_next_j", here, self.queue_max_j, bound, rule, int(t) or None)

    def _flag(
        self, found: Findings, name: str, bad: Array, stored: Array, expected: Array, rule: str, t: int | None = None
    ) -> None:
        rounds = np.array([t or self.stored.run.rounds])
        found.flag(WHOLE_RUN, name, rounds, bad[None], stored, expected, rule)


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
