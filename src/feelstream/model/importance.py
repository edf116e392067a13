"""How much a device's fresh data is worth to the model (docs/model.md, "Data importance").

With L(A) the label counts of a data set A, u(A) = (L(A) − mean L(A)) / mean L(A), X the data used so far and B_k
the fresh data of device k:

    amount_k        = |Π_f| |B_k| / Σ_{j∈Π_f} |B_j|
    dissimilarity_k = ‖x − y_k‖² / (‖x‖² + ‖y_k‖²)        x = u(X), y_k = u(B_k); between 0 and 2
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from feelstream.errors import ScenarioError
from feelstream.plugins import Registry

Reals = NDArray[np.float64]
Metric = Callable[[Reals, Reals], Reals]

BLOCK = 4096  # devices whose label counts fit the cache


def amount(fresh: NDArray[np.int64], feasible: NDArray[np.bool_]) -> Reals:
    """|Π_f| |B_k| / Σ_{Π_f} |B_j| for every device k; all 0 where the feasible devices have nothing fresh."""
    total = int((fresh * feasible).sum())
    if total == 0:
        return np.zeros(len(fresh))
    return fresh * (np.count_nonzero(feasible) / total)


def dissimilarity(fresh_labels: NDArray[np.int32], used_labels: NDArray[np.int64]) -> Reals:
    """Distance of each device's fresh labels (K, m) from the labels used so far (m,).

    0 where nothing was used yet, where a device has nothing fresh, and where both are perfectly balanced (x = y = 0).

    As ‖x − y‖² = ‖x‖² + ‖y‖² − 2 x·y, two sums over a device's counts c_i suffice, with n = Σ c_i:
    ‖y‖² = m (m Σ c_i² − n²) / n², whose bracket is a whole number and 0 exactly where y is, and x·y = m Σ x_i c_i / n.
    The rows are taken in blocks that stay in the cache, so no (K, m) array of floats ever exists.
    """
    devices, m = fresh_labels.shape
    result = np.zeros(devices)
    if not used_labels.any():
        return result
    x = used_labels / used_labels.mean() - 1
    x_norm = x @ x
    block = np.empty((m, min(devices, BLOCK)))  # classes first, so that every step runs along the devices
    for start in range(0, devices, BLOCK):
        labels = fresh_labels[start : start + BLOCK]
        counts = block[:, : len(labels)]
        counts[:] = labels.T
        total, along = counts.sum(axis=0), x @ counts
        squares = np.square(counts, out=counts).sum(axis=0)
        y_norm = m * (m * squares - total * total)
        scale = x_norm * total * total + y_norm  # both norms, times n²
        gap = scale - 2 * m * along * total
        np.divide(gap, scale, out=result[start : start + BLOCK], where=scale > 0)
    return np.clip(result, 0.0, 2.0, out=result)


def combined(amount: Reals, dissimilarity: Reals) -> Reals:
    """I_k = amount_k + dissimilarity_k, the paper's metric."""
    return amount + dissimilarity


def amount_only(amount: Reals, dissimilarity: Reals) -> Reals:
    """I_k = amount_k."""
    return amount


def dissimilarity_only(amount: Reals, dissimilarity: Reals) -> Reals:
    """I_k = dissimilarity_k."""
    return dissimilarity


METRICS: Registry[Metric] = Registry(
    "metrics",
    {"combined": combined, "amount": amount_only, "dissimilarity": dissimilarity_only},
    callable,
)


def _known(metric: str) -> str:
    METRICS.lookup(metric)
    return metric


# A policy's field `metric`.
MetricName = Annotated[
    str,
    AfterValidator(_known),
    Field(description="importance: combined, amount, dissimilarity, or file.py:function"),
]


def evaluate(metric: str, amount: Reals, dissimilarity: Reals) -> Reals:
    """I_k by a metric's name; ScenarioError where a user's own one does not give one finite number per device."""
    function = METRICS.lookup(metric)
    try:
        worth = np.asarray(function(amount, dissimilarity), float)
    except Exception as problem:  # a user's own function may raise anything
        raise ScenarioError(f"policy.metric: '{metric}' failed: {type(problem).__name__}: {problem}") from problem
    if worth.shape != amount.shape or not np.isfinite(worth).all():
        raise ScenarioError(f"policy.metric: '{metric}' must give one finite number per device")
    return worth
