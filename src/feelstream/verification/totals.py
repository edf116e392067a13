"""rounds.parquet: against the devices' rows, and by itself."""

from __future__ import annotations

import numpy as np

from feelstream.verification.changes import phases
from feelstream.verification.findings import RELATIVE, Array, Findings, Stage
from feelstream.verification.reading import Block, Table
from feelstream.verification.settings import StoredSettings

RD = Stage.ROUND


def check_totals(found: Findings, block: Block, rounds: Table) -> None:
    """Counts, sums and means over devices; `rounds` holds the rounds of the block."""
    for name in ("feasible", "scheduled", "transmitted"):
        count = block[name].sum(axis=1)
        bad = rounds[name] != count
        found.flag(RD, name, block.rounds, bad, rounds[name], count, f"{name} counts the {name} devices")
    chosen = block["scheduled"] & block["feasible"]
    energy = block["e_cmp_j"] + block["e_tr_j"]
    expected = {
        "importance_sum": (
            np.where(chosen, block["importance"], 0.0).sum(axis=1),
            "importance_sum adds up the importance of the scheduled devices",
        ),
        "energy_mean_j": (
            energy.mean(axis=1),
            "energy_mean_j is the mean over devices of this round's energy",
        ),
        "queue_mean_j": (
            block["queue_next_j"].mean(axis=1),
            "queue_mean_j is the mean queue after the round",
        ),
        "queue_max_j": (
            block["queue_next_j"].max(axis=1),
            "queue_max_j is the longest queue after the round",
        ),
    }
    for name, (value, rule) in expected.items():
        found.compare(RD, name, block.rounds, rounds[name], value, rule)


def check_rounds(found: Findings, s: StoredSettings, rounds: Table) -> None:
    """What rounds.parquet must obey by itself: the clock, the running mean, when the model was evaluated."""
    t = rounds.rounds
    found.compare(RD, "sim_time_s", t, rounds["sim_time_s"], t * s.round_s, "sim_time_s = round · round_s")
    mean = np.cumsum(rounds["energy_mean_j"]) / t
    rule = "energy_mean_cum_j is the mean of energy_mean_j over the rounds so far"
    found.compare(RD, "energy_mean_cum_j", t, rounds["energy_mean_cum_j"], mean, rule)
    evaluated = ((t % s.eval_every == 0) | (t == s.T)) & s.learns
    # A deployment's server evaluates when it likes, and may be told to run for more rounds after its last.
    free = s.deployed and s.learns
    for name, high, meaning in (("accuracy", 1.0, "between 0 and 1"), ("loss", np.inf, "not negative")):
        value, null = rounds[name], rounds.nulls[name]
        expected = np.where(evaluated, "a value", "null")
        rule = f"{name} is stored after every {s.eval_every}. round and the last, never with engine none"
        found.flag(RD, name, t, (null == evaluated) & (not free), value, expected, rule, null)
        outside = ~null & ~((value >= 0) & (value <= high))
        found.flag(RD, name, t, outside, value, np.clip(value, 0.0, high), f"{name} is {meaning}")


def check_counts(found: Findings, s: StoredSettings, rounds: Table) -> None:
    """Without the devices' rows: the counts are nested, and means and queues fit one another."""
    planned, feasible, scheduled, sent = (rounds[c] for c in ("planned", "feasible", "scheduled", "transmitted"))
    energy, queue, longest = (rounds[c] for c in ("energy_mean_j", "queue_mean_j", "queue_max_j"))

    def least(name: str, value: Array, bound: Array, rule: str) -> None:
        found.flag(RD, name, rounds.rounds, ~(value >= bound - RELATIVE * np.abs(bound)), value, bound, rule)

    def most(name: str, value: Array, bound: Array, rule: str) -> None:
        found.flag(RD, name, rounds.rounds, ~(value <= bound + RELATIVE * np.abs(bound)), value, bound, rule)

    zero = np.zeros(s.T)
    most("feasible", feasible, np.full(s.T, s.K), "no more devices are feasible than there are")
    most("scheduled", scheduled, feasible, "only feasible devices are scheduled")
    most("scheduled", scheduled, planned, "no more devices are scheduled than planned")
    most("transmitted", sent, scheduled, "only scheduled devices transmit")
    exactly = {"exact": np.minimum(planned, feasible), "free": planned}.get(s.cardinality or "")
    # Only with a power limit below what equal shares need can a feasible device be no candidate.
    if exactly is not None and s.power_max_w is None and (s.policy != "lyapunov_joint" or s.rate_discount <= 1):
        rule = f"{s.cardinality} schedules as many devices as it planned for, as far as there are feasible ones"
        found.flag(RD, "scheduled", rounds.rounds, scheduled != exactly, scheduled, exactly, rule)
    for name in ("feasible", "scheduled", "transmitted", "energy_mean_j", "queue_mean_j", "importance_sum"):
        least(name, rounds[name], zero, f"{name} is not negative")
    idle = scheduled == 0
    for name in ("importance_sum", "energy_mean_j"):
        bad = idle & (rounds[name] != 0)
        found.flag(RD, name, rounds.rounds, bad, rounds[name], zero, f"{name} is 0 if nobody is scheduled")
    least("queue_max_j", longest, queue, "the longest queue is at least the mean queue")
    most("queue_max_j", longest, s.K * queue, "the longest queue is at most all queues together")
    before = np.concatenate([[0.0], queue[:-1]])
    rule = "the mean queue grows by no more than the mean energy, and falls by no more than the mean budget"
    most("queue_mean_j", queue, before + energy, rule)
    parts = phases(s)
    budget_mean_j = np.repeat([part.settings.budget_j.mean() for part in parts], [p.end - p.first for p in parts])
    least("queue_mean_j", queue + budget_mean_j, before + energy, rule)
