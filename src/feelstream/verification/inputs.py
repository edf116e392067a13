"""Is what a round starts from plausible, and does it follow from the round before?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from feelstream.columns import COUNTS, REAL, ROUND_COLUMNS, TRUTH, Column, columns_of
from feelstream.verification.energy import answered, worst_report_j
from feelstream.verification.findings import RELATIVE, Array, Stage
from feelstream.verification.rounds import Rounds
from feelstream.verification.rules import Rule, exact, holds, only, same, within

INPUTS = Stage.INPUTS
MAY_BE_NEGATIVE = ("score", "importance", "importance_sum", "loss")  # the latter of a test has a rule of its own


def of_columns(columns: Mapping[str, Column]) -> list[Rule]:
    """No value is missing, infinite or negative where none may be, and nothing stands where nothing may."""
    rules = []
    for name, column in columns.items():
        value, null = (lambda r, name=name: getattr(r, name)), (lambda r, name=name: r.nulls[name])
        if not column.may_be_null:
            rules.append(holds(INPUTS, name, f"{name} is never missing", lambda r, null=null: ~null(r), "a value"))
        if column.kind == REAL:
            finite: Any = lambda r, value=value, null=null: np.isfinite(value(r)) | null(r)  # noqa: E731
            rules.append(holds(INPUTS, name, "every number is finite", finite, "finite"))
        if column.kind in (REAL, COUNTS) and name not in MAY_BE_NEGATIVE:
            stage = Stage.ENERGY if column.filled in ("scheduled", "sent") else INPUTS
            negative: Any = lambda r, value=value, null=null: np.where(value(r) < 0, 0, value(r))  # noqa: E731
            when = "not signed" if name.startswith("queue_") else ""
            rules.append(exact(stage, name, f"{name} is not negative", negative, when, but=null))
        if column.filled == "feasible":
            stage = Stage.SCORE if name == "score" else Stage.IMPORTANCE
            says = f"{name} is null for a device that is not feasible"
            rules.append(holds(stage, name, says, lambda r, null=null: r.feasible | null(r)))
        elif column.filled and name != column.filled:
            who, others = column.filled, "not scheduled" if column.filled == "scheduled" else "who did not send"
            stage = Stage.ADMISSION if column.kind == TRUTH else Stage.ENERGY
            filled: Any = lambda r, value=value, who=who: np.where(getattr(r, who), value(r), 0)  # noqa: E731
            rules.append(exact(stage, name, f"{name} is 0, or false, for those {others}", filled, but=null))
    return rules


def _age_before(r: Rounds) -> Array:
    return r.before("report_age", -1 if r.has("deployed") else 0)


def _known(r: Rounds) -> Array:
    """Whether the last report is of the round before: a device scheduled by an old one has more to use."""
    return _age_before(r) == 0


def _new_pass(r: Rounds) -> Array:
    """Where a deployment on static data may begin a new pass over it: then nothing counts as used of any device. [R, 1]

    No device has received anything since the round before, and of those that can be scheduled all data was used.
    """
    if not r.run.data.passes:
        return np.zeros((len(r.rounds), 1), bool)
    never = r.before("report_age", -1) < 0
    static = ((r.stored == r.before("stored")) | never).all(axis=1, keepdims=True)
    used = r.before("used_labels").sum(axis=-1) + np.where(r.before("transmitted"), r.before("fresh"), 0)
    left = (r.available & (r.model_cycles / r.f_hz < r.time_s) & (r.stored > used)).any(axis=1, keepdims=True)
    return (r.used_labels == 0).all(axis=(1, 2))[:, None] & static & ~left


def _grown(r: Rounds) -> Array:
    return r.before("used_labels") + np.where(r.before("transmitted")[..., None], r.before("fresh_labels"), 0)


def _battery(r: Rounds) -> Array:
    """b(t+1) = min(b − E + H, C), before each round. It is replayed, from block to block."""
    after = np.minimum(np.maximum(r.battery_j - r.energy_j, 0.0) + r.harvest_j, r.run.world.battery_j or 0.0)
    r.values["battery_next_j"] = after
    return r.before("battery_next_j", r.run.world.charge_j)


def _worst_j(r: Rounds) -> Array:
    """E_cmp + P_max(T_k − c/f) + E_down, and the report; NaN by an own law. Of an own allocation, without P."""
    left_s = np.maximum(r.time_s - r.cycles / r.f_hz, 0.0)
    slowest_hz = r.cycles / np.where(r.time_s > 0, r.time_s, r.run.round_s)  # who has no time left is not available
    computing = r.factor * r.law_j(r.cycles, r.f_hz, np.minimum(slowest_hz, r.f_hz))
    power_w = r.most_power_w if r.has("planned by ours") else 0.0
    return computing + power_w * left_s + r.download_j + worst_report_j(r)


RULES = (
    exact(INPUTS, "round", "rows are sorted by round and device", lambda r: r.t),
    exact(INPUTS, "device", "each device has one row a round, in order", lambda r: np.arange(r.K)),
    *(holds(INPUTS, name, f"{name} is greater than 0", lambda r, name=name: getattr(r, name) > 0, "above 0", when)
      for name, when in (("cost_cycles", "own_costs"), ("cost_bits", "own_costs"), ("priority", "deployed"))),
    # Radio and CPU
    within(INPUTS, "f_hz", "f_hz lies in the device's range of frequencies",
           lambda r: r.constants["frequency_low_hz"], lambda r: r.constants["frequency_high_hz"]),
    within(INPUTS, "beta", "beta lies in the device's range of mean gains",
           lambda r: r.constants["beta_low"], lambda r: r.constants["beta_high"]),
    same(INPUTS, "beta", "a device's mean gain β is fixed for the run", lambda r: r.before("beta", r.beta[0]),
         "not moves", where=lambda r: _age_before(r) >= 0),
    # In a deployment a device states the gain that it found; 0 is of one that nobody heard.
    same(INPUTS, "gain", "without fading the gain equals β", lambda r: r.beta, "no fading, not deployed",
         where=lambda r: (r.gain != 0) | (not r.run.world.fails)),
    # Data
    exact(INPUTS, "fresh", "fresh_labels add up to fresh", lambda r: r.fresh_labels.sum(axis=-1)),
    exact(INPUTS, "stored", "fresh samples are among the stored ones", lambda r: np.maximum(r.stored, r.fresh)),
    exact(INPUTS, "stored", "stored_labels add up to stored", lambda r: r.stored_labels.sum(axis=-1), "labels"),
    exact(INPUTS, "stored_labels", "the labels of fresh samples are among the stored ones",
          lambda r: np.maximum(r.stored_labels, r.fresh_labels), "labels"),
    exact(INPUTS, "stored_labels", "where nothing is deleted, stored labels = used labels + fresh labels",
          lambda r: r.used_labels + r.fresh_labels, "labels, keeps since use, not deployed"),
    exact(INPUTS, "used_labels", "used labels start at 0 and change only when a device transmits",
          lambda r: r.before("used_labels"), but=lambda r: r.before("transmitted") | _new_pass(r)),
    exact(INPUTS, "used_labels", "a device that transmits has used all that it stored", lambda r: r.before("stored"),
          but=lambda r: ~(r.before("transmitted") & _known(r)) | _new_pass(r),
          stored=lambda r: r.used_labels.sum(axis=-1)),
    exact(INPUTS, "used_labels", "where nothing is deleted, a transmitter's fresh labels join its used ones", _grown,
          "keeps since use", but=lambda r: (~_known(r) & r.before("transmitted")) | _new_pass(r)),
    exact(INPUTS, "stored", "where nothing is deleted, stored = used + fresh",
          lambda r: r.used_labels.sum(axis=-1) + r.fresh, "keeps since use"),
    exact(INPUTS, "stored", "where nothing is deleted, stored grows by what arrived in the round",
          lambda r: r.before("stored") + r.fresh, "keeps per round", but=lambda r: ~_known(r) | (r.report_age != 0)),
    exact(INPUTS, "stored", "where use empties a buffer, nothing stored was used before", lambda r: r.fresh, "empties"),
    exact(INPUTS, "stored", "a buffer never holds more than its capacity",
          lambda r: np.minimum(r.stored, r.run.data.most_held), "limited"),
    # Reported features
    exact(INPUTS, "used_features", "used features start at 0 and change only when a device transmits",
          lambda r: r.before("used_features"), "features", but=lambda r: r.before("transmitted")),
    exact(INPUTS, "used_features", "of a device that transmits, all counts as used that it had reported",
          lambda r: r.before("stored_features"), "features", but=lambda r: ~r.before("transmitted")),
    exact(INPUTS, "stored_features", "where nothing is deleted, stored features = used features + fresh features",
          lambda r: r.used_features + r.fresh_features, "features, keeps since use, not of model"),
    exact(INPUTS, "fresh_features", "features change only when a device has reported, or was used",
          lambda r: r.before("fresh_features"), "features",
          but=lambda r: answered(r) | r.before("transmitted") | (r.stored == 0)),
    # Who may be scheduled. Real devices may be out of reach or not known; nobody else is kept out.
    only(INPUTS, "available", "who is available holds data (data.eligible), has time and can send with P0/β",
         lambda r: r.allowed),
    exact(INPUTS, "available", "all who hold data (data.eligible), have time and can send with P0/β are available",
          lambda r: r.allowed, "not inputs decide"),
    # Batteries
    same(INPUTS, "battery_j", "a battery loses what was spent and gains what was harvested, up to its capacity",
         _battery, "capacity", scale=lambda r: r.run.world.battery_j),
    holds(INPUTS, "available", "a device is available only if its charge covers the worst case of the round: "
          "E_cmp + P_max(T_k − c/f) + E_down, and its report, if any",
          lambda r: ~(r.available & (_worst_j(r) > r.battery_j * (1 + RELATIVE))), _worst_j, "capacity",
          stored=lambda r: r.battery_j),
    holds(INPUTS, "battery_j", "no device spends more than its battery holds",
          lambda r: ~(r.energy_j > r.battery_j * (1 + RELATIVE)), lambda r: r.energy_j, "capacity"),
    same(INPUTS, "queue_j", "a queue starts at 0 and enters each round as it left the round before",
         lambda r: r.before("queue_next_j")),
)  # fmt: skip

ROUND_RULES = (
    exact(INPUTS, "round", "rounds are numbered 1, 2, … without a gap", lambda r: r.rounds),
    *of_columns(columns_of(ROUND_COLUMNS, ())),
)  # fmt: skip
