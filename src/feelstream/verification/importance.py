"""Who may be scheduled, and how important each one's data is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feelstream.verification.findings import Array, Findings, Stage, close
from feelstream.verification.formulas import amounts, computing_time_s, dissimilarities, surrogate_time_s
from feelstream.verification.reading import Block
from feelstream.verification.settings import StoredSettings


@dataclass(frozen=True)
class Importance:
    """Importance at one planned size; all [R, K]. `scale` is the size of its terms, for the tolerance."""

    feasible: Array
    importance: Array
    scale: Array


def feasible_at(s: StoredSettings, block: Block, n: Array | float) -> tuple[Array, Array]:
    """Π_f(n) = {k : available and c/f + T~(n) ≤ T_rd}, and where rounding alone decides. Both [R, K]."""
    needed_s = computing_time_s(s, block["f_hz"]) + surrogate_time_s(s, n)
    available = block["available"]
    return available & (needed_s <= s.round_s), available & close(needed_s, s.round_s)


def check_feasible(found: Findings, s: StoredSettings, block: Block, n: Array) -> None:
    """The stored feasible set at the planned sizes n [R, 1]."""
    expected, unsure = feasible_at(s, block, n)
    rule = "feasible: available, and c/f + T~(planned size) within the round"
    bad = (block["feasible"] != expected) & ~unsure
    found.flag(Stage.FEASIBLE, "feasible", block.rounds, bad, block["feasible"], expected, rule)


def check_importance(found: Findings, s: StoredSettings, block: Block) -> Importance:
    """Amount, dissimilarity and their combination for the stored feasible set; null outside it."""
    feasible = block["feasible"]
    amount = amounts(block["fresh"], feasible)
    dissimilarity, fixed = dissimilarities(s, block.rounds, block["used_labels"], block["fresh_labels"])
    importance = importance_at(s, block, amount, dissimilarity, fixed, feasible)
    if s.metric == "own":
        given = np.where(feasible, block["importance"], 0.0)
        importance = Importance(feasible, given, np.abs(given))
    rules = {
        "amount": "amount = |Π_f|·fresh / Σ fresh over Π_f, 0 if nothing is fresh",
        "dissimilarity": "dissimilarity = ‖x−y‖²/(‖x‖²+‖y‖²) of centred label counts, with the rules for empty sets",
        "importance": "importance is stored for every feasible device"
        if s.metric == "own"
        else f"importance by the metric {s.metric}, times the device's priority",
    }
    recomputed = {"amount": amount, "dissimilarity": dissimilarity, "importance": importance.importance}
    scales = {"amount": 0.0, "dissimilarity": np.where(fixed, 0.0, 1.0), "importance": importance.scale}
    for name, rule in rules.items():
        check_null_outside(found, Stage.IMPORTANCE, block, name)
        found.compare(
            Stage.IMPORTANCE,
            name,
            block.rounds,
            block[name],
            recomputed[name],
            rule,
            scales[name],
            feasible,
            block.nulls[name],
        )
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
    priority = block["priority"]
    return Importance(feasible, priority * (by_amount + by_kind), priority * (by_amount + kind_scale))


def check_null_outside(found: Findings, stage: Stage, block: Block, name: str) -> None:
    """Null for every device that is not feasible."""
    bad = ~block["feasible"] & ~block.nulls[name]
    rule = f"{name} is null for a device that is not feasible"
    found.flag(stage, name, block.rounds, bad, block[name], np.array(None), rule)
