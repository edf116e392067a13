"""What holds over the whole run: energy against budget, and the bound on the queues under `cap`."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from feelstream.verification.changes import phases
from feelstream.verification.computing import least_j
from feelstream.verification.findings import RELATIVE, Array, Findings, Stage
from feelstream.verification.formulas import surrogate_time_s
from feelstream.verification.reading import Block
from feelstream.verification.stored import StoredSettings

PLANNED = (("t_cmp", "s"), ("e_cmp", "j"))


class RunningTotals:
    """Per device, over the rounds so far: energy, the greatest in one round, the longest queue and when."""

    def __init__(self, K: int) -> None:
        self.energy_j, self.energy_max_j, self.queue_max_j = np.zeros(K), np.zeros(K), np.zeros(K)
        self.queue_max_round = np.ones(K, dtype=int)
        self.queue_end_j = np.zeros(K)
        self.last_j = 0.0  # of all devices in the last round
        self.beta = np.ones(K)  # the best mean gain so far
        self.priority_max = np.ones(K)  # the highest priority so far
        self.reliability_min = np.ones(K)  # the least so far
        self.time_min, self.energy_min = np.full(K, np.inf), np.full(K, np.inf)  # planned, of the model's
        self.begun = False

    def add(self, block: Block) -> None:
        energy, queue = block.energy_j, block["queue_next_j"]
        self.energy_j += energy.sum(axis=0)
        self.last_j = float(energy[-1].sum())
        self.energy_max_j = np.maximum(self.energy_max_j, energy.max(axis=0))
        longest = queue.max(axis=0)
        grown = longest > self.queue_max_j
        self.queue_max_round = np.where(grown, block.rounds[queue.argmax(axis=0)], self.queue_max_round)
        self.queue_max_j = np.maximum(self.queue_max_j, longest)
        best, highest = block["beta"].max(axis=0), block["priority"].max(axis=0)
        self.beta = np.maximum(self.beta, best) if self.begun else best
        self.priority_max = np.maximum(self.priority_max, highest) if self.begun else highest
        self.reliability_min = np.minimum(self.reliability_min, block["reliability"].min(axis=0))
        if "t_cmp_planned_s" in block.values:
            time, energy = (block[f"{part}_planned_{u}"] / block[f"{part}_prior_{u}"] for part, u in PLANNED)
            self.time_min = np.minimum(self.time_min, time.min(axis=0))
            self.energy_min = np.minimum(self.energy_min, (energy / time).min(axis=0))
        self.queue_end_j, self.begun = queue[-1], True

    def cheapest(self, s: StoredSettings) -> StoredSettings:
        """The settings with the least that was ever planned with."""
        if "plans_measured" not in s.facts:
            return s
        return replace(s, cycles=s.cycles * self.time_min, law=replace(s.law, factor=self.energy_min))


def check_whole_run(found: Findings, s: StoredSettings, run: RunningTotals, least_j: Array | None = None) -> None:
    """(1/T)ΣE ≤ (1/T)ΣE^avg + Q(T+1)/T for every device; with `cap` and finite V also the bound on its queue.

    least_j [K]: no device was ever scheduled at a planned energy below this; by default E~_min.
    """
    parts = phases(s)
    budget_mean_j = sum(((p.end - p.first) / s.T * p.settings.budget_j for p in parts), np.zeros(s.K))
    mean, bound = run.energy_j / s.T, budget_mean_j + run.queue_end_j / s.T
    bad, last, wanted = ~(mean <= bound * (1 + RELATIVE)), np.array([s.T]), (mean - budget_mean_j) * s.T
    rule = "a device's mean energy is at most its budget plus its last queue over the number of rounds"
    found.flag(Stage.WHOLE_RUN, "queue_next_j", last, bad[None], run.queue_end_j, wanted, rule)
    found.notes[Stage.WHOLE_RUN] = "mean energy against budget"
    if s.auto and s.backlog_j is not None and not s.changes:
        _check_fleet(found, s, run, float(s.backlog_j[-1] - s.backlog_j[0]))
        found.notes[Stage.WHOLE_RUN] += ", of every device and of the fleet"
    V = max(math.inf if part.settings.V is None else part.settings.V for part in parts)
    if s.cardinality == "cap" and math.isfinite(V) and s.metric != "own" and not s.costs.own:
        least_j = least_planned_energy_j(s, run.beta) if least_j is None else least_j
        budget_least_j = np.min([part.settings.budget_j for part in parts], axis=0)
        _check_queue_bound(found, s, run, V, least_j, budget_least_j)
        found.notes[Stage.WHOLE_RUN] += "; queue bound of cap, with the largest energy that occurred"


def _check_fleet(found: Findings, s: StoredSettings, run: RunningTotals, growth_j: float) -> None:
    """ΣE ≤ (T−1)·ΣE^avg + Z(T) − Z(1) over all rounds but the last, which is not in the growth of Z either."""
    spent, granted = float(run.energy_j.sum()) - run.last_j, (s.T - 1) * float(s.budget_j.sum())
    over = np.array([not spent <= granted + growth_j + RELATIVE * (spent + granted + abs(growth_j))])
    rule = "the fleet spends at most its budget plus the growth of its queue"
    found.flag(
        Stage.WHOLE_RUN, "energy_mean_j", np.array([s.T]), over, np.array([spent]), np.array([granted + growth_j]), rule
    )


def least_planned_energy_j(s: StoredSettings, beta: Array) -> Array:
    """E~_min [K]: at the lowest frequency that is allowed and meets the deadline."""
    left_s = np.broadcast_to(s.time_s - float(surrogate_time_s(s, max(s.size or 0, 1))), s.K)
    needed_hz = np.where(left_s > 0, s.cycles / np.where(left_s > 0, left_s, 1.0), math.inf)
    slowest_hz = np.maximum(s.frequency_hz[0], needed_hz)
    computing_j = least_j(s.law, s.cycles, slowest_hz, s.frequency_hz[1])
    sending_j = s.received_power_w / beta * surrogate_time_s(s, max(s.size or 0, 1))
    return computing_j + sending_j + s.costs.download_j


def _check_queue_bound(
    found: Findings, s: StoredSettings, run: RunningTotals, V: float, least_j: Array, budget_j: Array
) -> None:
    """Q_k ≤ V·I_max/E~_min + max(E_max − E^avg, 0) with I_max = (K + 2)·priority.

    A device is scheduled only while Q·E~ < V·I ≤ V·I_max, and then its queue grows by at most E_max − E^avg.
    V is the largest and E^avg [K] the least that was ever in force.
    E_max is the device's greatest energy in this run, which the argument above permits on every path.
    """
    bound = V * (s.K + 2) * run.priority_max / least_j + np.maximum(run.energy_max_j - budget_j, 0.0)
    for k in np.flatnonzero(~(run.queue_max_j <= bound * (1 + RELATIVE))):
        over = np.arange(s.K) == k
        rule = "under cap, a queue is at most V·(K+2)·priority/E~_min + max(E_max − budget, 0)"
        when = run.queue_max_round[k : k + 1]
        found.flag(Stage.WHOLE_RUN, "queue_next_j", when, over[None], run.queue_max_j, bound, rule)
    found.counts[Stage.WHOLE_RUN] += s.K
