"""The columns of rounds.parquet, devices.parquet and evaluations.parquet: type, unit and meaning of each, stated once.

docs/trace.md is made from this (docs/make_trace.py). The columns are part of the format of a run: CONTRIBUTING.md says
what else to touch when one is added, and tests/run/test_schema.py fails where something was forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

WHOLE, COUNT, REAL, TRUTH, COUNTS = pl.Int32(), pl.Int64(), pl.Float64(), pl.Boolean(), pl.List(pl.Int32())
TEXT = pl.String()
BATTERIES, DEPLOYED, DOWNLOADS = "with batteries", "in a deployment", "with `costs.download_bits` above 0"
OWN_COSTS = "with a `costs.rule` of your own"
PACKET_ERRORS = "with `radio.block_bits` above 0"
OVERPROVISIONED = "in a deployment with `first`"
MEASURES = "in a deployment whose `plans` are measured"
FALLIBLE = "in a deployment and with `world.faults`, unless `system.reliability` is ignored"
ASKED = "for policies that ask for reports"
BY_LABELS = "for policies that go by the labels of all that is held"


@dataclass(frozen=True)
class Column:
    """One column. null: where it is empty; only: the runs that have it, all if not said; spent: energy that the device
    spent in the round."""

    kind: pl.DataType
    unit: str
    meaning: str
    null: str = ""
    only: str = ""
    spent: bool = False


NOT_EVALUATED, NOT_FEASIBLE = "where not evaluated", "where not feasible"
NOBODY_HOLDS = "where not evaluated, or where no device holds a sample"
WITH_EVALUATOR = "with the evaluator `{}`"

ROUND_COLUMNS: dict[str, Column] = {
    "round": Column(WHOLE, "", "t = 1, …, T"),
    "sim_time_s": Column(REAL, "s", "t · T_rd"),
    "planned": Column(WHOLE, "", "n for which the policy planned; 0 if `free` chose the empty set"),
    "feasible": Column(WHOLE, "", "|Π_f(n)| at the planned n (at 1 where that is 0)"),
    "scheduled": Column(WHOLE, "", "|Π*|, devices that trained"),
    "transmitted": Column(WHOLE, "", "|Π̄|, devices whose update was aggregated"),
    "importance_sum": Column(REAL, "", "Σ I_k over the scheduled"),
    "energy_mean_j": Column(REAL, "J", "mean over all devices of this round's energy"),
    "energy_mean_cum_j": Column(REAL, "J", "its mean over the rounds so far"),
    "queue_mean_j": Column(REAL, "J", "mean of the virtual queues after the round"),
    "queue_max_j": Column(REAL, "J", "the longest virtual queue after the round"),
    "accuracy": Column(REAL, "", "on the whole test set after the round", null=NOT_EVALUATED),
    "loss": Column(REAL, "", "on the whole test set after the round", null=NOT_EVALUATED),
    "stream_loss": Column(
        REAL, "", "Σ|S_k|F_k/Σ|S_j| of the model after the round", NOBODY_HOLDS, WITH_EVALUATOR.format("stream")
    ),
    "stream_accuracy": Column(
        REAL, "", "accuracy on all samples that the devices hold", NOBODY_HOLDS, WITH_EVALUATOR.format("stream")
    ),
    "device_accuracy_mean": Column(
        REAL, "", "mean over devices of the accuracy on what each holds", NOBODY_HOLDS, WITH_EVALUATOR.format("devices")
    ),
    "device_accuracy_std": Column(
        REAL, "", "standard deviation of the same", NOBODY_HOLDS, WITH_EVALUATOR.format("devices")
    ),
    "worst_tenth": Column(
        REAL, "", "mean of the same over the ⌈n/10⌉ devices with the lowest", NOBODY_HOLDS,
        WITH_EVALUATOR.format("devices"),
    ),
    "forgetting": Column(
        REAL, "", "best recall so far minus recall now, mean over classes", NOT_EVALUATED,
        WITH_EVALUATOR.format("classes"),
    ),
}  # fmt: skip

# A row for every entry of every array that an evaluator gives, sorted by round, then in the order they were given.
EVALUATION_COLUMNS: dict[str, Column] = {
    "round": Column(WHOLE, "", "t"),
    "evaluator": Column(TEXT, "", "its name in `learning.evaluators`"),
    "name": Column(TEXT, "", "of the array"),
    "index": Column(WHOLE, "", "place in the array, from 0; of a matrix row by row"),
    "value": Column(REAL, "", "what stands there", null="where there is none"),
}

DEVICE_COLUMNS: dict[str, Column] = {
    "round": Column(WHOLE, "", "t"),
    "device": Column(WHOLE, "", "k = 0, …, K−1"),
    "f_hz": Column(REAL, "Hz", "available CPU frequency"),
    "beta": Column(REAL, "", "β_k, mean channel power gain"),
    "gain": Column(REAL, "", "this round's gain |g|²; 0 where an update could not arrive, whatever the channel"),
    "stored": Column(COUNT, "", "|S_k|"),
    "fresh": Column(COUNT, "", "|B_k|"),
    "fresh_labels": Column(COUNTS, "", "label counts of the fresh data (list of m)"),
    "used_labels": Column(COUNTS, "", "label counts of the device's part of X before the round (list of m)"),
    "available": Column(
        TRUTH,
        "",
        "may be scheduled at all: within reach (`world.availability`), with data where `data.eligible` asks for it, "
        "with enough charge where there are batteries; in a deployment also known",
    ),
    "feasible": Column(TRUTH, "", "k ∈ Π_f at the planned n"),
    "amount": Column(REAL, "", "share of the fresh data, relative to the mean", null=NOT_FEASIBLE),
    "dissimilarity": Column(REAL, "", "of the fresh data from the data used so far", null=NOT_FEASIBLE),
    "importance": Column(REAL, "", "I_k by the policy's metric, times priority", null=NOT_FEASIBLE),
    "queue_j": Column(REAL, "J", "Q_k before the round"),
    "score": Column(REAL, "", "what the policy minimised", null=f"{NOT_FEASIBLE}, and for policies without a score"),
    "scheduled": Column(TRUTH, "", "k ∈ Π*"),
    "transmitted": Column(TRUTH, "", "k ∈ Π̄"),
    "bandwidth_share": Column(REAL, "", "share of the band; 0 for those who did not send"),
    "power_w": Column(REAL, "W", "transmit power; 0 for those who did not send"),
    "t_cmp_s": Column(REAL, "s", "computing time; 0 for those not scheduled"),
    "t_tr_s": Column(REAL, "s", "transmission time; 0 for those who did not send"),
    "e_cmp_j": Column(REAL, "J", "computing energy; 0 for those not scheduled", spent=True),
    "e_tr_j": Column(REAL, "J", "transmission energy; 0 for those who did not send", spent=True),
    "queue_next_j": Column(REAL, "J", "Q_k after the round"),
    "stored_labels": Column(COUNTS, "", "label counts of S_k (list of m)", only=BY_LABELS),
    "lost": Column(TRUTH, "", "sent, with share, power, time and energy, and could not be decoded", only=PACKET_ERRORS),
    "t_down_s": Column(REAL, "s", "time of receiving the model; 0 for those not scheduled", only=DOWNLOADS),
    "e_down_j": Column(
        REAL, "J", "energy of receiving the model; 0 for those not scheduled", only=DOWNLOADS, spent=True
    ),
    "cost_cycles": Column(REAL, "", "c_k, CPU cycles of local training in this round", only=OWN_COSTS),
    "cost_bits": Column(REAL, "", "S_k, size of the device's update in this round, bit", only=OWN_COSTS),
    "cost_down_s": Column(REAL, "s", "what receiving the model takes, or would take", only=OWN_COSTS),
    "cost_down_j": Column(REAL, "J", "what receiving the model costs, or would cost", only=OWN_COSTS),
    "e_report_j": Column(
        REAL, "J", "energy of the device's report; 0 for those who did not answer", only=ASKED, spent=True
    ),
    "battery_j": Column(REAL, "J", "charge before the round", only=BATTERIES),
    "harvest_j": Column(REAL, "J", "what was harvested in the round", only=BATTERIES),
    "reliability": Column(REAL, "", "p_k, the probability to deliver learned before the round", only=FALLIBLE),
    "report_age": Column(WHOLE, "", "rounds since the last accepted report, −1 for never", only=DEPLOYED),
    "priority": Column(REAL, "", "factor on the importance of its data", only=DEPLOYED),
    "t_cmp_prior_s": Column(REAL, "s", "computing time by the scenario's model, at `f_hz`", only=MEASURES),
    "t_cmp_planned_s": Column(
        REAL, "s", "the same as measurements so far make it, which was planned with", only=MEASURES
    ),
    "t_cmp_spread": Column(REAL, "", "σ of the estimate behind it, as a logarithm", only=MEASURES),
    "e_cmp_prior_j": Column(REAL, "J", "computing energy by the scenario's model, at `f_hz`", only=MEASURES),
    "e_cmp_planned_j": Column(
        REAL, "J", "the same as measurements so far make it, which was planned with", only=MEASURES
    ),
    "e_cmp_spread": Column(REAL, "", "σ of the estimate behind it, as a logarithm", only=MEASURES),
    "e_cmp_read_j": Column(
        REAL,
        "J",
        "what the device's meter read; `e_cmp_j` is what is charged of it",
        "where nothing was measured",
        only=MEASURES,
    ),
    "trained_hz": Column(REAL, "Hz", "frequency of training; 0 for those not scheduled", only=MEASURES),
    "cut": Column(TRUTH, "", "not waited for, since enough others had replied", only=OVERPROVISIONED),
    **{
        f"{name}_measured": Column(TRUTH, "", f"whether `{name}` is the device's own measurement", only=DEPLOYED)
        for name in ("t_cmp_s", "e_cmp_j", "t_tr_s", "e_tr_j")
    },
}
SPENT = tuple(name for name, column in DEVICE_COLUMNS.items() if column.spent)


def spent_j(devices: Any) -> Any:
    """What devices spent, by which their queues grow, J: the sum of the columns `SPENT`, as far as they are there.

    devices: a table, or a dictionary with columns, or with what one device has in them.
    """
    return sum(devices[name] for name in SPENT if name in devices)
