"""Is what a round starts from plausible, and does it follow from the round before?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from feelstream.columns import REAL, ROUND_COLUMNS, TRUTH, Column, columns_of
from feelstream.verification.findings import RELATIVE, Array, Stage
from feelstream.verification.reports import worst_report_j
from feelstream.verification.rounds import Rounds
from feelstream.verification.rules import Rule, holds, same, within

INPUTS = Stage.INPUTS


def _differ(left: Array, right: Array) -> Array:
    """Where two lists of label counts [R, K, m] are not the same, [R, K]."""
    return np.asarray(np.any(left != right, axis=-1))


def of_columns(columns: Mapping[str, Column]) -> list[Rule]:
    """No value is missing where none may be, no number is NaN or infinite, and nothing stands where nothing may."""
    rules = []
    for name, column in columns.items():
        value, null = (lambda r, name=name: getattr(r, name)), (lambda r, name=name: r.nulls[name])
        if not column.may_be_null:
            rules.append(holds(INPUTS, name, f"{name} is never missing", lambda r, null=null: ~null(r), "a value"))
        if column.kind == REAL:
            finite: Any = lambda r, value=value, null=null: np.isfinite(value(r)) | null(r)  # noqa: E731
            rules.append(holds(INPUTS, name, "every number is finite", finite, "finite"))
        if column.filled == "feasible":
            stage = Stage.SCORE if name == "score" else Stage.IMPORTANCE
            says = f"{name} is null for a device that is not feasible"
            rules.append(holds(stage, name, says, lambda r, null=null: r.feasible | null(r)))
        elif column.filled:
            who = column.filled
            stage = Stage.ADMISSION if column.kind == TRUTH else Stage.ENERGY
            idle: Any = lambda r, value=value, who=who: (value(r) == 0) | getattr(r, who)  # noqa: E731
            if name != who:
                says = (
                    f"{name} is 0, or false, for those {'not scheduled' if who == 'scheduled' else 'who did not send'}"
                )
                rules.append(holds(stage, name, says, idle, 0))
    return rules


def _used_before(r: Rounds) -> Array:
    return r.before("used_labels")


def _sent_before(r: Rounds) -> Array:
    return r.before("transmitted")


def _known(r: Rounds) -> Array:
    """Whether the last report is of the round before: a device scheduled by an old one has more to use."""
    return r.before("report_age", -1 if r.has("deployed") else 0) == 0


def _new_pass(r: Rounds) -> Array:
    """Where a deployment on static data may begin a new pass over it: then nothing counts as used of any device. [R, 1]

    No device has received anything since the round before, and of those that can be scheduled all data was used.
    """
    if not r.run.data.passes:
        return np.zeros((len(r.rounds), 1), bool)
    never = r.before("report_age", -1) < 0
    static = ((r.stored == r.before("stored")) | never).all(axis=1, keepdims=True)
    used = _used_before(r).sum(axis=-1) + np.where(_sent_before(r), r.before("fresh"), 0)
    left = (r.available & (r.model_cycles / r.f_hz < r.time_s) & (r.stored > used)).any(axis=1, keepdims=True)
    return (r.used_labels == 0).all(axis=(1, 2))[:, None] & static & ~left


def _grown(r: Rounds) -> Array:
    return _used_before(r) + np.where(_sent_before(r)[..., None], r.before("fresh_labels"), 0)


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
    holds(INPUTS, "round", "rows are sorted by round and device", lambda r: r.round == r.t, lambda r: r.t),
    holds(INPUTS, "device", "each device has one row a round, in order",
          lambda r: r.device == np.arange(r.K), lambda r: np.arange(r.K)),
    *(holds(INPUTS, name, f"{name} is greater than 0", lambda r, name=name: getattr(r, name) > 0, 0.0, "own_costs")
      for name in ("cost_cycles", "cost_bits")),
    *(holds(INPUTS, name, f"{name} is not negative", lambda r, name=name: getattr(r, name) >= 0, 0.0, "own_costs")
      for name in ("cost_down_s", "cost_down_j")),
    holds(INPUTS, "priority", "a priority is greater than 0", lambda r: r.priority > 0, "above 0", "deployed"),
    # Radio and CPU
    within(INPUTS, "f_hz", "f_hz lies in the device's range of frequencies",
           lambda r: r.constants["frequency_low_hz"], lambda r: r.constants["frequency_high_hz"]),
    within(INPUTS, "beta", "beta lies in the device's range of mean gains",
           lambda r: r.constants["beta_low"], lambda r: r.constants["beta_high"]),
    same(INPUTS, "beta", "a device's mean gain β is fixed for the run", lambda r: r.before("beta", r.beta[0]),
         "not moves", where=lambda r: r.before("report_age", -1 if r.has("deployed") else 0) >= 0),
    holds(INPUTS, "gain", "a channel power gain is not negative", lambda r: r.gain >= 0, 0.0),
    # In a deployment a device states the gain that it found; 0 is of one that nobody heard.
    same(INPUTS, "gain", "without fading the gain equals β", lambda r: r.beta, "no fading, not deployed",
         where=lambda r: (r.gain != 0) | (not r.run.world.fails)),
    # Data
    *(holds(INPUTS, name, "label counts are not negative", lambda r, name=name: (getattr(r, name) >= 0).all(axis=-1),
            lambda r, name=name: np.maximum(getattr(r, name), 0)) for name in ("fresh_labels", "used_labels")),
    holds(INPUTS, "fresh", "fresh_labels add up to fresh", lambda r: r.fresh == r.fresh_labels.sum(axis=-1),
          lambda r: r.fresh_labels.sum(axis=-1)),
    holds(INPUTS, "stored", "fresh samples are among the stored ones",
          lambda r: r.stored >= r.fresh, lambda r: r.fresh),
    holds(INPUTS, "stored", "stored_labels add up to stored", lambda r: r.stored == r.stored_labels.sum(axis=-1),
          lambda r: r.stored_labels.sum(axis=-1), "labels"),
    holds(INPUTS, "stored_labels", "the labels of fresh samples are among the stored ones, and no count is negative",
          lambda r: (r.stored_labels >= np.maximum(r.fresh_labels, 0)).all(axis=-1),
          lambda r: np.maximum(r.stored_labels, r.fresh_labels), "labels"),
    holds(INPUTS, "stored_labels", "where nothing is deleted, stored labels = used labels + fresh labels",
          lambda r: ~_differ(r.stored_labels, r.used_labels + r.fresh_labels), lambda r: r.used_labels + r.fresh_labels,
          "labels, keeps since use, not deployed"),
    holds(INPUTS, "used_labels", "used labels start at 0 and change only when a device transmits",
          lambda r: ~_differ(r.used_labels, _used_before(r)) | _sent_before(r) | _new_pass(r), _used_before),
    holds(INPUTS, "used_labels", "a device that transmits has used all that it stored",
          lambda r: ~_sent_before(r) | ~_known(r) | _new_pass(r) | (r.used_labels.sum(axis=-1) == r.before("stored")),
          lambda r: r.before("stored"), stored=lambda r: r.used_labels.sum(axis=-1)),
    holds(INPUTS, "used_labels", "where nothing is deleted, a transmitter's fresh labels join its used ones",
          lambda r: ~_differ(r.used_labels, _grown(r)) | (~_known(r) & _sent_before(r)) | _new_pass(r),
          _grown, "keeps since use"),
    holds(INPUTS, "stored", "where nothing is deleted, stored = used + fresh",
          lambda r: r.stored == r.used_labels.sum(axis=-1) + r.fresh, lambda r: r.used_labels.sum(axis=-1) + r.fresh,
          "keeps since use"),
    holds(INPUTS, "stored", "where nothing is deleted, stored grows by what arrived in the round",
          lambda r: (r.stored == r.before("stored") + r.fresh) | ~_known(r) | (r.report_age != 0),
          lambda r: r.before("stored") + r.fresh, "keeps per round"),
    holds(INPUTS, "stored", "where use empties a buffer, nothing stored was used before",
          lambda r: r.stored == r.fresh, lambda r: r.fresh, "empties"),
    holds(INPUTS, "stored", "a buffer never holds more than its capacity",
          lambda r: r.stored <= r.run.data.most_held, lambda r: r.run.data.most_held, "limited"),
    # Who may be scheduled. Real devices may be out of reach or not known; nobody else is kept out.
    holds(INPUTS, "available", "only who holds data (data.eligible), has time and can send with P0/β is available",
          lambda r: ~r.available | r.allowed, lambda r: r.allowed),
    holds(INPUTS, "available", "everybody who holds data (data.eligible), has time and can send with P0/β is available",
          lambda r: r.available | ~r.allowed, lambda r: r.allowed, "not inputs decide"),
    # Batteries
    same(INPUTS, "battery_j", "a battery loses what was spent and gains what was harvested, up to its capacity",
         _battery, "capacity", scale=lambda r: r.run.world.battery_j),
    holds(INPUTS, "harvest_j", "what is harvested is not negative", lambda r: r.harvest_j >= 0, 0.0, "capacity"),
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
    holds(INPUTS, "round", "rounds are numbered 1, 2, … without a gap",
          lambda r: r.round == r.rounds, lambda r: r.rounds),
    *of_columns(columns_of(ROUND_COLUMNS, ())),
)  # fmt: skip
