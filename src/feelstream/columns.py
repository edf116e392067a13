"""One table of all columns: type, unit, meaning, when it exists, for whom it is filled, how it is shown.

The trace writes what stands here, in this order; docs/reference/trace.md, the names on pages, what `verify` reads and
what devices spent follow from it. run/trace.py says where each value comes from; display/quantities.py, how one is put
in words.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

import polars as pl

FORMAT = 5  # of a run directory; 5: run.json states how devices report features
WHOLE, COUNT, REAL, TRUTH, COUNTS = pl.Int32(), pl.Int64(), pl.Float64(), pl.Boolean(), pl.List(pl.Int32())
TEXT = pl.String()

OUR_EVALUATORS = ("stream", "devices", "classes")  # of ours that give more than the test's columns, which every run has

# What may be true of a run, as run.json states it; and what a page says of a column that only such runs have.
FACTS = {
    "packet_errors": "with `radio.block_bits` above 0",
    "downloads": "with `costs.download_bits` above 0",
    "own_costs": "with a `costs.rule` of your own",
    "labels": "for policies that go by the labels of all that is held",
    "asks": "for policies that ask for reports, and with `data.features` that devices report",
    "features": "with `data.features` that devices report",
    "fallible": "in a deployment and with `world.faults`, unless `system.reliability` is ignored",
    "batteries": "with batteries",
    "deployed": "in a deployment",
    "cuts": "in a deployment with `first`",
    "plans_measured": "in a deployment whose `plans` are measured",
    **{f"evaluates_{name}": f"with the evaluator `{name}`" for name in OUR_EVALUATORS},
}
FILLED = {
    "scheduled": "0 for those not scheduled",
    "sent": "0 for those who did not send",
    "feasible": "null where not feasible",
}


@dataclass(frozen=True)
class Column:
    """One column.

    null: where it is empty, beside what `filled` says; when: the fact under which it exists, always if not said;
    filled: for whom, all if not said; adds_to: the sum that it is a part of; shown: see `shown`; range: the least and
    the greatest value of a constant.
    """

    kind: pl.DataType
    unit: str
    meaning: str
    null: str = ""
    when: str = ""
    filled: Literal["", "scheduled", "sent", "feasible"] = ""
    adds_to: Literal["", "energy_j"] = ""
    shown: Mapping[str, Any] = field(default_factory=dict)
    range: tuple[float, float] = (-inf, inf)

    @property
    def may_be_null(self) -> bool:
        return bool(self.null) or self.filled == "feasible"

    @property
    def most(self) -> float:
        """The greatest value that is possible; infinite where there is no bound."""
        return self.shown.get("most", inf) / self.shown.get("scale", 1.0)

    @property
    def described(self) -> str:
        """Its meaning, where it is empty, and when it exists."""
        parts = [self.meaning]
        parts += [FILLED[self.filled]] if self.filled and self.kind != TRUTH else []  # whom a truth is of, it says
        parts += [f"null {self.null}"] if self.null else []
        parts += [f"only {FACTS[self.when]}"] if self.when else []
        return "; ".join(parts)


def shown(heading: str, unit: str = "", digits: int = 2, **more: Any) -> dict[str, Any]:
    """How a column is shown: the fields of its `quantities.Quantity`, but for name and table."""
    scale = {"mJ": 1e3, "%": 100.0, "GHz": 1e-9}.get(unit, 1.0)
    return {"heading": heading, "unit": unit, "scale": scale, "digits": digits, **more}


def columns_of(table: Mapping[str, Column], facts: Collection[str]) -> dict[str, Column]:
    """The columns that a run has of which these facts hold."""
    return {name: column for name, column in table.items() if not column.when or column.when in facts}


MEASURED = ("t_cmp_s", "e_cmp_j", "t_tr_s", "e_tr_j")  # what devices of a deployment may measure themselves
NOT_EVALUATED, NOBODY_HOLDS = "where not evaluated", "where not evaluated, or where no device holds a sample"
HELD, BY_DEVICE = "on the samples that the devices hold", "of the model on what each device holds"
# How several are shown: a share of what is right, or of what is not; a mean loss; energy that is paid or owed.
SHARE: dict[str, Any] = {"unit": "%", "group": "learning", "better": "higher", "most": 100.0}
LOSS: dict[str, Any] = {"unit": "nat", "digits": 3, "group": "learning", "better": "lower"}
ENERGY: dict[str, Any] = {"unit": "mJ", "group": "resources", "better": "lower", "logarithmic": True}
UNEQUAL: dict[str, Any] = SHARE | {"better": "lower"}

ROUND_COLUMNS: dict[str, Column] = {
    "round": Column(WHOLE, "", "t = 1, …, T"),
    "sim_time_s": Column(REAL, "s", "t · T_rd"),
    "planned": Column(WHOLE, "", "n for which the policy planned; 0 if `free` chose the empty set"),
    "feasible": Column(WHOLE, "", "|Π_f(n)| at the planned n (at 1 where that is 0)"),
    "scheduled": Column(WHOLE, "", "|Π*|, devices that trained"),
    "transmitted": Column(
        WHOLE, "", "|Π̄|, devices whose update was aggregated",
        shown=shown("transmitted", digits=0, title="Devices that transmitted"),
    ),
    "importance_sum": Column(
        REAL, "", "Σ I_k over the scheduled",
        shown=shown("importance", better="higher", title="Importance scheduled per round"),
    ),
    "energy_mean_j": Column(
        REAL, "J", "mean over all devices of this round's energy",
        shown=shown("energy in the round", "mJ", 3, title="Energy per device in the round"),
    ),
    "energy_mean_cum_j": Column(
        REAL, "J", "its mean over the rounds so far",
        shown=shown("energy", digits=3, title="Energy per device", per="round", **ENERGY),
    ),
    "queue_mean_j": Column(
        REAL, "J", "mean of the virtual queues after the round",
        shown=shown("queue", title="Mean energy queue", **ENERGY),
    ),
    "queue_max_j": Column(
        REAL, "J", "the longest virtual queue after the round",
        shown=shown("largest queue", title="Largest energy queue", **ENERGY),
    ),
    "accuracy": Column(
        REAL, "", "on the whole test set after the round", NOT_EVALUATED,
        shown=shown("accuracy", title="Test accuracy", **SHARE),
    ),
    "loss": Column(
        REAL, "", "on the whole test set after the round", NOT_EVALUATED,
        shown=shown("loss", title="Test loss", **LOSS),
    ),
    "stream_loss": Column(
        REAL, "", "Σ|S_k|F_k/Σ|S_j| of the model after the round", NOBODY_HOLDS, "evaluates_stream",
        shown=shown(
            "loss on the stream", title="Loss on the data held", meaning=f"eq. (2) of the paper, {HELD}", **LOSS
        ),
    ),
    "stream_accuracy": Column(
        REAL, "", "accuracy on all samples that the devices hold", NOBODY_HOLDS, "evaluates_stream",
        shown=shown("accuracy on the stream", title="Accuracy on the data held", meaning=HELD, **SHARE),
    ),
    "device_accuracy_mean": Column(
        REAL, "", "mean over devices of the accuracy on what each holds", NOBODY_HOLDS, "evaluates_devices",
        shown=shown("accuracy by device", title="Accuracy by device, mean", meaning=BY_DEVICE, **SHARE),
    ),
    "device_accuracy_std": Column(
        REAL, "", "standard deviation of the same", NOBODY_HOLDS, "evaluates_devices",
        shown=shown(
            "spread over devices", title="Accuracy by device, standard deviation", meaning=BY_DEVICE, **UNEQUAL
        ),
    ),
    "worst_tenth": Column(
        REAL, "", "mean of the same over the ⌈n/10⌉ devices with the lowest", NOBODY_HOLDS, "evaluates_devices",
        shown=shown("worst tenth", title="Accuracy of the worst tenth of devices", meaning=BY_DEVICE, **SHARE),
    ),
    "forgetting": Column(
        REAL, "", "best recall so far minus recall now, mean over classes", NOT_EVALUATED, "evaluates_classes",
        shown=shown(
            "forgetting", meaning="each class's best recall so far minus its recall now, mean over classes", **UNEQUAL
        ),
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
    "f_hz": Column(REAL, "Hz", "available CPU frequency", shown=shown("frequency", "GHz")),
    "beta": Column(REAL, "", "β_k, mean channel power gain"),
    "gain": Column(REAL, "", "this round's gain |g|²; 0 where an update could not arrive, whatever the channel"),
    "stored": Column(COUNT, "", "|S_k|"),
    "fresh": Column(COUNT, "", "|B_k|"),
    "fresh_labels": Column(COUNTS, "", "label counts of fresh data (list of m), or what a deployment counts instead"),
    "used_labels": Column(COUNTS, "", "label counts of the device's part of X before the round (list of m)"),
    "available": Column(
        TRUTH, "",
        "may be scheduled at all: within reach (`world.availability`), with data where `data.eligible` asks for it, "
        "with enough charge where there are batteries; in a deployment also known",
    ),
    "feasible": Column(TRUTH, "", "k ∈ Π_f at the planned n"),
    "amount": Column(REAL, "", "share of the fresh data, relative to the mean", filled="feasible"),
    "dissimilarity": Column(REAL, "", "of the fresh data from the data used so far", filled="feasible"),
    "importance": Column(REAL, "", "I_k by the policy's metric, times priority", filled="feasible"),
    "queue_j": Column(REAL, "J", "Q_k before the round", shown=shown("queue", "mJ")),
    "score": Column(REAL, "", "what the policy minimised", "for policies without a score", filled="feasible"),
    "scheduled": Column(TRUTH, "", "k ∈ Π*", filled="scheduled"),
    "transmitted": Column(TRUTH, "", "k ∈ Π̄", filled="scheduled"),
    "bandwidth_share": Column(REAL, "", "share of the band", filled="sent"),
    "power_w": Column(REAL, "W", "transmit power", filled="sent"),
    "t_cmp_s": Column(REAL, "s", "computing time", filled="scheduled"),
    "t_tr_s": Column(REAL, "s", "transmission time", filled="sent"),
    "e_cmp_j": Column(
        REAL, "J", "computing energy", filled="scheduled", adds_to="energy_j",
        shown=shown("energy of computing", "mJ", 3),
    ),
    "e_tr_j": Column(
        REAL, "J", "transmission energy", filled="sent", adds_to="energy_j", shown=shown("energy of sending", "mJ", 3)
    ),
    "queue_next_j": Column(REAL, "J", "Q_k after the round"),
    "lost": Column(
        TRUTH, "", "sent, with share, power, time and energy, and could not be decoded", when="packet_errors",
        filled="scheduled",
    ),
    "t_down_s": Column(REAL, "s", "time of receiving the model", when="downloads", filled="scheduled"),
    "e_down_j": Column(
        REAL, "J", "energy of receiving the model", when="downloads", filled="scheduled", adds_to="energy_j"
    ),
    "cost_cycles": Column(REAL, "", "c_k, CPU cycles of local training in this round", when="own_costs"),
    "cost_bits": Column(REAL, "", "S_k, size of the device's update in this round, bit", when="own_costs"),
    "cost_down_s": Column(REAL, "s", "what receiving the model takes, or would take", when="own_costs"),
    "cost_down_j": Column(REAL, "J", "what receiving the model costs, or would cost", when="own_costs"),
    "stored_labels": Column(COUNTS, "", "label counts of S_k (list of m)", when="labels"),
    "fresh_features": Column(COUNTS, "", "L(B_k) as last reported, in 1/1024 (list of m)", when="features"),
    "used_features": Column(COUNTS, "", "the device's part of L(X) before the round, as reported", when="features"),
    "stored_features": Column(COUNTS, "", "L(S_k) as last reported", when="features"),
    "e_report_j": Column(
        REAL, "J", "energy of the device's report; 0 for those who did not answer", when="asks", adds_to="energy_j",
        shown=shown("energy of the report", "mJ", 3),
    ),
    "reliability": Column(REAL, "", "p_k, the probability to deliver learned before the round", when="fallible"),
    "battery_j": Column(REAL, "J", "charge before the round", when="batteries"),
    "harvest_j": Column(REAL, "J", "what was harvested in the round", when="batteries"),
    "report_age": Column(WHOLE, "", "rounds since the last accepted report, −1 for never", when="deployed"),
    "priority": Column(REAL, "", "factor on the importance of its data", when="deployed"),
    **{
        f"{name}_measured": Column(TRUTH, "", f"whether `{name}` is the device's own measurement", when="deployed")
        for name in MEASURED
    },
    "cut": Column(TRUTH, "", "not waited for, since enough others had replied", when="cuts", filled="scheduled"),
    "t_cmp_prior_s": Column(REAL, "s", "computing time by the scenario's model, at `f_hz`", when="plans_measured"),
    "t_cmp_planned_s": Column(
        REAL, "s", "the same as measurements so far make it, which was planned with", when="plans_measured"
    ),
    "t_cmp_spread": Column(REAL, "", "σ of the estimate behind it, as a logarithm", when="plans_measured"),
    "e_cmp_prior_j": Column(REAL, "J", "computing energy by the scenario's model, at `f_hz`", when="plans_measured"),
    "e_cmp_planned_j": Column(
        REAL, "J", "the same as measurements so far make it, which was planned with", when="plans_measured"
    ),
    "e_cmp_spread": Column(REAL, "", "σ of the estimate behind it, as a logarithm", when="plans_measured"),
    "e_cmp_read_j": Column(
        REAL, "J", "what the device's meter read; `e_cmp_j` is what is charged of it", "where nothing was measured",
        when="plans_measured",
    ),
    "trained_hz": Column(REAL, "Hz", "frequency of training", when="plans_measured", filled="scheduled"),
}  # fmt: skip
# One number a run, or of all runs of an arm, as in summary.csv; of evaluators' numbers see `quantities`.
REACHED = (80, 90)  # accuracies that are timed, %
_UNTIL = (
    "until the first test with that accuracy, median over seeds; energy is the sum over the rounds until then, mean of "
    "all devices; (7/10): 7 of 10 seeds reached it, the others count as later than all; > 40: half of the seeds or "
    "more had not reached it when the run ended"
)
RUN_COLUMNS: dict[str, Column] = {
    "late_accuracy": Column(
        REAL, "", "on the test set, mean over the tests of the last fifth of the run",
        shown=shown("accuracy, last fifth", **SHARE),
    ),
    "accuracy_area": Column(
        REAL, "", "area under the accuracy curve over its length", shown=shown("mean accuracy", **SHARE)
    ),
    **{
        f"{what}_to_{percent}": Column(
            REAL, unit, _UNTIL,
            shown=shown(f"{heading} to {percent} %", in_unit, group="learning", better="lower", **more),
        )
        for percent in REACHED
        for what, unit, heading, in_unit, more in (
            ("rounds", "", "rounds", "", {"digits": 1}), ("joules", "J", "energy", "mJ", {"logarithmic": True})
        )
    },
    "energy_j": Column(
        REAL, "J", "per device and round, mean over the run",
        shown=shown("energy", digits=3, title="Energy per device", per="round", **ENERGY),
    ),
    "energy_over_budget": Column(
        REAL, "", "each device's mean energy over its budget, mean of all devices",
        shown=shown("energy / budget", digits=4, group="resources", better="lower", logarithmic=True),
    ),
    "devices_over_budget": Column(
        REAL, "", "share of devices that spent more than their budget over the run",
        shown=shown("devices over budget", "%", 1, group="resources", better="lower", most=100.0),
    ),
    "worst_device": Column(
        REAL, "", "mean energy over budget of the device for which it is greatest, found in each run by itself; a "
        "single device may be above the mean over seeds",
        shown=shown("worst device / budget, mean over seeds", group="resources", better="lower"),
    ),
    "data_used": Column(
        REAL, "",
        "share of all samples that arrived which a device held at least once when its update was aggregated",
        shown=shown("data used", "%", 1, group="resources", better="higher", most=100.0),
    ),
    "fairness": Column(
        REAL, "", "Jain's index of how often each device was scheduled: 1 if all equally often, 1/K if always the same",
        shown=shown("fairness", digits=3, group="resources", better="higher", most=1.0),
    ),
    "drops": Column(
        REAL, "", "share of scheduled devices that trained and were then not admitted to the channel",
        shown=shown("drops", "%", group="resources", better="lower", most=100.0),
    ),
    **{
        f"reached_{percent}": Column(
            REAL, "", "share of seeds with such a test", shown=shown(f"seeds that reached {percent} %", "%", 0)
        )
        for percent in REACHED
    },
}  # fmt: skip

CONSTANTS, BUDGET = "constants.parquet", "energy_budget_j"
GREATEST = sys.float_info.max
ABOVE_0, AT_LEAST_0, OR_INFINITE = (1 / GREATEST, GREATEST), (0.0, GREATEST), (1 / GREATEST, inf)

# A row for every device: the numbers in which devices differ and rounds do not. Those that all share are in run.json.
CONSTANT_COLUMNS: dict[str, Column] = {
    "device": Column(WHOLE, "", "k = 0, …, K−1"),
    "cycles": Column(
        REAL, "", "c_k, CPU cycles of local training; with `costs.cycles_per_sample` those of one sample", range=ABOVE_0
    ),
    BUDGET: Column(
        REAL, "J", "E_k^avg, per round; where it changes in round t, `energy_budget_j_from_t` from then on",
        range=AT_LEAST_0,
    ),
    "frequency_low_hz": Column(REAL, "Hz", "lowest CPU frequency", range=ABOVE_0),
    "frequency_high_hz": Column(REAL, "Hz", "highest CPU frequency", range=ABOVE_0),
    "beta_low": Column(REAL, "", "the least mean gain that is possible", range=ABOVE_0),
    "beta_high": Column(REAL, "", "the greatest mean gain that is possible", range=ABOVE_0),
    "deadline_s": Column(  # reports may leave no time at all
        REAL, "s", "until when an update must have arrived, from the end of the slot for reports",
        range=(-GREATEST, GREATEST),
    ),
    "download_s": Column(REAL, "s", "time of receiving the model", range=AT_LEAST_0),
    "download_j": Column(REAL, "J", "energy of receiving the model", range=AT_LEAST_0),
    "power_max_w": Column(REAL, "W", "what it can send with; infinite where nothing limits it", range=OR_INFINITE),
    "priority": Column(REAL, "", "factor on the importance of its data", range=ABOVE_0),
    "core": Column(WHOLE, "", "which of the cores of `resolved.law` it has", range=AT_LEAST_0),
}  # fmt: skip


def budget_column(first: int) -> str:
    """The column of the budgets that hold from this round on.

    >>> budget_column(1), budget_column(12)
    ('energy_budget_j', 'energy_budget_j_from_12')
    """
    return BUDGET if first == 1 else f"{BUDGET}_from_{first}"


def constant_columns(firsts: Iterable[int]) -> dict[str, Column]:
    """The columns of constants of a run whose budgets change in these rounds."""
    return CONSTANT_COLUMNS | {budget_column(first): CONSTANT_COLUMNS[BUDGET] for first in firsts}


SPENT = tuple(name for name, column in DEVICE_COLUMNS.items() if column.adds_to == "energy_j")


def spent_j(devices: Any) -> Any:
    """What devices spent, by which their queues grow, J: the sum of the columns `SPENT`, as far as they are there.

    devices: a table, or a dictionary with columns, or with what one device has in them.
    """
    return sum(devices[name] for name in SPENT if name in devices)
