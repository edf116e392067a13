"""rounds.parquet: against the devices' rows, and by itself."""

from __future__ import annotations

import numpy as np

from feelstream.verification.changes import phases
from feelstream.verification.evaluations import evaluated
from feelstream.verification.findings import Findings, Stage
from feelstream.verification.reading import Block, Table
from feelstream.verification.stored import StoredSettings


def check_totals(found: Findings, block: Block, rounds: Table) -> None:
    """Counts, sums and means over devices; `rounds` holds the rounds of the block."""
    check, queue = found.at(Stage.ROUND, rounds), block["queue_next_j"]
    for name in ("feasible", "scheduled", "transmitted"):
        count = block[name].sum(axis=1)
        check.flag(name, rounds[name] != count, count, f"{name} counts the {name} devices")
    importance = np.where(block["scheduled"] & block["feasible"], block["importance"], 0.0).sum(axis=1)
    check.compare("importance_sum", importance, "importance_sum adds up the importance of the scheduled devices")
    energy = block.energy_j.mean(axis=1)
    check.compare("energy_mean_j", energy, "energy_mean_j is the mean over devices of this round's energy")
    check.compare("queue_mean_j", queue.mean(axis=1), "queue_mean_j is the mean queue after the round")
    check.compare("queue_max_j", queue.max(axis=1), "queue_max_j is the longest queue after the round")


def check_rounds(found: Findings, s: StoredSettings, rounds: Table) -> None:
    """What rounds.parquet must obey by itself: the clock, the running mean, when the model was evaluated."""
    t, check = rounds.rounds, found.at(Stage.ROUND, rounds)
    check.compare("sim_time_s", t * s.period_s, "sim_time_s = round · round_s")
    mean = np.cumsum(rounds["energy_mean_j"]) / t
    check.compare("energy_mean_cum_j", mean, "energy_mean_cum_j is the mean of energy_mean_j over the rounds so far")
    tested = evaluated(s, t) & ("test" in s.evaluators)
    # A deployment's server evaluates when it likes, and may be asked to run for more rounds after its last.
    free = "deployed" in s.facts and s.learns
    for name, high, meaning in (("accuracy", 1.0, "between 0 and 1"), ("loss", np.inf, "not negative")):
        value, null = rounds[name], rounds.nulls[name]
        expected = np.where(tested, "a value", "null")
        rule = f"{name} is stored after every {s.eval_every}. round and the last, never with engine none"
        check.flag(name, (null == tested) & (not free), expected, rule)
        outside = ~null & ~((value >= 0) & (value <= high))
        check.flag(name, outside, np.clip(value, 0.0, high), f"{name} is {meaning}")


def check_counts(found: Findings, s: StoredSettings, rounds: Table) -> None:
    """Without the devices' rows: the counts are nested, and means and queues fit one another."""
    planned, feasible, scheduled = (rounds[c] for c in ("planned", "feasible", "scheduled"))
    energy, queue, check = rounds["energy_mean_j"], rounds["queue_mean_j"], found.at(Stage.ROUND, rounds)
    check.within("feasible", -np.inf, s.K, "no more devices are feasible than there are")
    check.within("scheduled", -np.inf, feasible, "only feasible devices are scheduled")
    check.within("scheduled", -np.inf, planned, "no more devices are scheduled than planned")
    check.within("transmitted", -np.inf, scheduled, "only scheduled devices transmit")
    exactly = {"exact": np.minimum(planned, feasible), "free": planned}.get(s.cardinality or "")
    # Only with a power limit below what equal shares need can a feasible device be no candidate.
    if exactly is not None and s.power_max_w is None and (s.policy != "lyapunov_joint" or s.rate_discount <= 1):
        rule = f"{s.cardinality} schedules as many devices as it planned for, as far as there are feasible ones"
        check.flag("scheduled", scheduled != exactly, exactly, rule)
    for name in ("feasible", "scheduled", "transmitted", "energy_mean_j", "queue_mean_j", "importance_sum"):
        check.within(name, 0.0, np.inf, f"{name} is not negative")
    for name in ("importance_sum", *(() if s.reports else ("energy_mean_j",))):
        check.flag(name, (scheduled == 0) & (rounds[name] != 0), 0.0, f"{name} is 0 if nobody is scheduled")
    check.within("queue_max_j", queue, np.inf, "the longest queue is at least the mean queue")
    check.within("queue_max_j", -np.inf, s.K * queue, "the longest queue is at most all queues together")
    before = np.concatenate([[0.0], queue[:-1]])
    rule = "the mean queue grows by no more than the mean energy, and falls by no more than the mean budget"
    check.within("queue_mean_j", -np.inf, before + energy, rule)
    parts = phases(s)
    budget_mean_j = np.repeat([part.settings.budget_j.mean() for part in parts], [p.end - p.first for p in parts])
    check.within("queue_mean_j", before + energy, np.inf, rule, stored=queue + budget_mean_j)
