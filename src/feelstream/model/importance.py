"""How important a device's fresh data is to the model (docs/model.md, "Data importance").

With L(A) the label counts of a data set A, u(A) = (L(A) − mean L(A)) / mean L(A), X the data used so far and B_k
the fresh data of device k:

    amount_k        = |Π_f| |B_k| / Σ_{j∈Π_f} |B_j|
    dissimilarity_k = ‖x − y_k‖² / (‖x‖² + ‖y_k‖²)        x = u(X), y_k = u(B_k); between 0 and 2
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from feelstream.arrays import Flags, Ints, LabelCounts, Reals
from feelstream.guard import Array, Out, ask
from feelstream.plugins import MOST, Kind, Named
from feelstream.resolved import EmptySet

Metric = Callable[[Any, Any], Reals]  # of amount and dissimilarity, or of an observation and a plan

EXACT = 2.0**53  # up to here every whole number is a float
BLOCK = 4096  # devices whose label counts fit the cache


def amount(fresh: Ints, feasible: Flags) -> Reals:
    """|Π_f| |B_k| / Σ_{Π_f} |B_j| for every device k; all 0 where the feasible devices have nothing fresh."""
    total = int((fresh * feasible).sum())
    if total == 0:
        return np.zeros(len(fresh))
    return fresh * (np.count_nonzero(feasible) / total)


def dissimilarity(
    fresh_features: LabelCounts,
    used_features: Ints,
    *,
    first_round: bool = False,
    empty_used: EmptySet = "zero",
    empty_fresh: EmptySet = "zero",
) -> Reals:
    """Distance of each device's fresh labels (K, m) from the labels used so far (m,).

    Edge rules: 0 in the first round (the paper writes 1{t>1}) and where x = y_k = 0. Where X is empty later, or where
    B_k is empty: 0 for `zero`; for `vector` the empty set is the zero vector, so that the other one decides, and the
    result is 1 unless that is 0 too.

    >>> dissimilarity(np.array([[2, 0], [0, 2], [1, 1], [0, 0]]), np.array([3, 1])).round(9).tolist()
    [0.2, 1.8, 1.0, 0.0]

    As ‖x − y‖² = ‖x‖² + ‖y‖² − 2 x·y, whole numbers suffice: with a device's counts c_i, n = Σ c_i, and the used counts
    C_i, N = Σ C_i, of which r_i = C_i − ⌊N/m⌋ and s = Σ r_i is what is left,

        ‖x‖² N²/m = m Σ r_i² − s²,   ‖y‖² n²/m = m Σ c_i² − n²,   x·y nN/m = m Σ r_i c_i − s n.

    Sums of whole numbers below 2⁵³ are exact in whatever order a library adds them, so no kernel and no number of
    threads decides a digit; Python's own integers take over where the counts are larger. The rows are taken in blocks
    that stay in the cache, so no (K, m) array of floats ever exists.
    """
    devices, m = fresh_features.shape
    result = np.zeros(devices)
    nothing_used = not used_features.any()
    if first_round or (nothing_used and empty_used == "zero"):
        return result
    used = used_features.tolist()
    N = sum(used)
    rest = [count - N // m for count in used]
    s = N % m
    x_norm = float(m * sum(r * r for r in rest) - s * s) / float(max(N, 1)) ** 2  # ‖x‖²/m
    largest = max(map(abs, rest))
    weights = np.array(rest, float)
    ones = np.ones(m)
    size = min(devices, BLOCK)
    block = np.empty((m, size))  # classes first, so that every step runs along the devices
    total, along, scale, work = np.empty((4, size))
    for start in range(0, devices, BLOCK):
        labels = fresh_features[start : start + BLOCK]
        if len(labels) < size:  # the last ones
            block, total, along, scale, work = (
                array[..., : len(labels)] for array in (block, total, along, scale, work)
            )
        block[:] = labels.T
        np.matmul(ones, block, out=total)
        most = float(total.max())
        if m * most * (most + largest + 1) < EXACT:
            np.matmul(weights, block, out=along)
            np.matmul(ones, np.square(block, out=block), out=scale)
            scale *= m
            scale -= np.multiply(total, total, out=work)  # ‖y‖² n²/m
            along *= m
            along -= np.multiply(total, s, out=work)  # x·y nN/m
        else:
            scale[:], along[:] = _in_integers(labels, rest, s)
        np.multiply(total, x_norm, out=work)
        scale += np.multiply(work, total, out=work)  # (‖x‖² + ‖y‖²) n²/m
        along *= 2 / max(N, 1)
        along *= total
        gap = np.subtract(scale, along, out=along)  # ‖x − y‖² n²/m
        np.divide(gap, scale, out=result[start : start + BLOCK], where=scale != 0)  # else x = y = 0, so 0
    if empty_fresh == "vector" and x_norm > 0:
        result[~fresh_features.any(axis=1)] = 1.0
    return np.clip(result, 0.0, 2.0, out=result)


def _in_integers(labels: LabelCounts, rest: list[int], s: int) -> tuple[Reals, Reals]:
    """‖y‖² n²/m and x·y nN/m of each row, from integers of any size."""
    counts = labels.astype(object)
    total, m = counts.sum(axis=1), counts.shape[1]
    y_norm = m * (counts * counts).sum(axis=1) - total * total
    along = m * (counts * np.array(rest, object)).sum(axis=1) - s * total
    return y_norm.astype(float), along.astype(float)


def combined(amount: Reals, dissimilarity: Reals) -> Reals:
    """I_k = amount_k + dissimilarity_k, the paper's metric."""
    return amount + dissimilarity


def amount_only(amount: Reals, dissimilarity: Reals) -> Reals:
    """I_k = amount_k."""
    return amount


def dissimilarity_only(amount: Reals, dissimilarity: Reals) -> Reals:
    """I_k = dissimilarity_k."""
    return dissimilarity


class Weighing(Named):
    """A metric, as it is asked: a function of amount and dissimilarity, or of an Observation and a RoundPlan.

    It is one of the latter if its first parameter is called `observation`.

    >>> from types import SimpleNamespace as Some
    >>> Weighing(lambda observation, plan: observation.stored)(Some(stored=[3]), None)
    array([3.])
    """

    plugin_field: ClassVar[str] = "policy.metric"
    contract: ClassVar[Mapping[str, Out]] = {"__call__": Out(Array(least=-MOST, most=MOST))}

    def __init__(self, metric: Metric, name: str = "") -> None:
        self.name, self.metric, self.of_observation = name, metric, False
        with suppress(TypeError, ValueError):  # something callable that does not say what it takes
            self.of_observation = next(iter(inspect.signature(metric).parameters), "") == "observation"

    def __call__(self, observation: Any, plan: Any) -> Reals:
        known = (observation, plan) if self.of_observation else (plan.amount, observation.dissimilarity)
        return np.asarray(self.metric(*known), float)


METRICS: Kind[Metric] = Kind(
    "metric",
    "metrics",
    Weighing,
    {"combined": combined, "amount": amount_only, "dissimilarity": dissimilarity_only},
    Weighing,
)
# A policy's field `metric`.
MetricName = Annotated[
    str, METRICS, Field(description="importance: combined, amount, dissimilarity, or file.py:function")
]


_weighing = lru_cache(maxsize=16)(Weighing)  # a signature takes as long to find as a metric to compute


def importance_of(metric: str, observation: Any, plan: Any) -> Reals:
    """I_k by a metric's name."""
    found = METRICS.ours.get(metric) or METRICS.lookup(metric)
    weighing = (_weighing if isinstance(found, Hashable) else Weighing)(found, metric)
    return ask(weighing, "__call__", observation, plan, at=observation.round, K=len(plan.amount))
