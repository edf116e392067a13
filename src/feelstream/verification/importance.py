"""Who may be scheduled, and how important each one's data is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feelstream.verification.findings import Array, Checker, Findings, Stage, close
from feelstream.verification.formulas import amounts, computing_time_s, dissimilarities, surrogate_time_s
from feelstream.verification.reading import Block
from feelstream.verification.stored import StoredSettings


@dataclass(frozen=True)
class Importance:
    """Importance at one planned size; all [R, K]. `scale` is the size of its terms, for the tolerance."""

    feasible: Array
    importance: Array
    scale: Array


@dataclass(frozen=True)
class Case:
    """Some rounds whose scores, schedule and costs are re-checked, with what is known of them by then."""

    found: Findings
    s: StoredSettings
    block: Block
    planned: Array  # [R], from 0 to K
    importance: Importance

    def at(self, stage: Stage) -> Checker:
        return self.found.at(stage, self.block)

    @property
    def n(self) -> Array:
        """[R, 1] how many share the band in the plan: the planned size, at least 1."""
        return np.maximum(self.planned, 1)[:, None]


def feasible_at(s: StoredSettings, block: Block, n: Array | float) -> tuple[Array, Array]:
    """Π_f(n) = {k : available and c/f + T~(n) ≤ T_k}, and where rounding alone decides. Both [R, K]."""
    needed_s = computing_time_s(s, block["f_hz"]) + surrogate_time_s(s, n)
    available = block["available"]
    return available & (needed_s <= s.time_s), available & close(needed_s, np.broadcast_to(s.time_s, needed_s.shape))


def check_feasible(found: Findings, s: StoredSettings, block: Block, n: Array) -> None:
    """The stored feasible set at the planned sizes n [R, 1]."""
    expected, unsure = feasible_at(s, block, n)
    rule = "feasible: available, and c/f + T~(planned size) within the round"
    bad = (block["feasible"] != expected) & ~unsure
    found.at(Stage.FEASIBLE, block).flag("feasible", bad, expected, rule)


def check_importance(found: Findings, s: StoredSettings, block: Block) -> Importance:
    """Amount, dissimilarity and their combination for the stored feasible set; null outside it."""
    feasible = block["feasible"]
    amount = amounts(block["fresh"], feasible)
    dissimilarity, fixed = dissimilarities(s, block.rounds, block["used_labels"], block["fresh_labels"])
    importance = importance_at(s, block, amount, dissimilarity, fixed, feasible)
    if s.metric == "own":
        given = np.where(feasible, block["importance"], 0.0)
        importance = Importance(feasible, given, np.abs(given))
    by_metric = f"importance by the metric {s.metric}, times the device's priority and reliability"
    if s.metric == "own":
        by_metric = "importance is stored for every feasible device"
    check = found.at(Stage.IMPORTANCE, block)
    for name, recomputed, scale, rule in (
        ("amount", amount, 0.0, "amount = |Π_f|·fresh / Σ fresh over Π_f, 0 if nothing is fresh"),
        ("dissimilarity", dissimilarity, np.where(fixed, 0.0, 1.0),
         "dissimilarity = ‖x−y‖²/(‖x‖²+‖y‖²) of centred label counts, with the rules for empty sets"),
        ("importance", importance.importance, importance.scale, by_metric),
    ):  # fmt: skip
        check_null_outside(check, name)
        check.compare(name, recomputed, rule, scale, where=feasible)
    return importance


def importance_at(
    s: StoredSettings, block: Block, amount: Array, dissimilarity: Array, fixed: Array, feasible: Array
) -> Importance:
    """I = amount + dissimilarity, or one of them, by the metric; times the device's priority."""
    zero = np.zeros_like(amount)
    by_amount = amount if s.metric in ("combined", "amount") else zero
    by_kind = dissimilarity if s.metric in ("combined", "dissimilarity") else zero
    # Nearly equal label proportions cancel, so what no edge rule fixes is known only to a rounding error of 1.
    kind_scale = np.where(fixed, 0.0, 1.0) if s.metric in ("combined", "dissimilarity") else zero
    priority = block["priority"] * block["reliability"]
    return Importance(feasible, priority * (by_amount + by_kind), priority * (by_amount + kind_scale))


def check_null_outside(check: Checker, name: str) -> None:
    """Null for every device that is not feasible."""
    bad = ~check.table["feasible"] & ~check.table.nulls[name]
    check.flag(name, bad, np.array(None), f"{name} is null for a device that is not feasible")
