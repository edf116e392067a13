"""How much a device's fresh data is worth to the model (docs/model.md, "Data importance").

With L(A) the label counts of a data set A, u(A) = (L(A) − mean L(A)) / mean L(A), X the data used so far and B_k
the fresh data of device k:

    amount_k        = |Π_f| |B_k| / Σ_{j∈Π_f} |B_j|
    dissimilarity_k = ‖x − y_k‖² / (‖x‖² + ‖y_k‖²)        x = u(X), y_k = u(B_k); between 0 and 2
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from feelstream.errors import ScenarioError
from feelstream.plugins import Registry

Reals = NDArray[np.float64]
Metric = Callable[[Reals, Reals], Reals]


def amount(fresh: NDArray[np.int64], feasible: NDArray[np.bool_]) -> Reals:
    """|Π_f| |B_k| / Σ_{Π_f} |B_j| for every device k; all 0 where the feasible devices have nothing fresh."""
    total = int(fresh[feasible].sum())
    if total == 0:
        return np.zeros(len(fresh))
    return fresh * (np.count_nonzero(feasible) / total)


def dissimilarity(fresh_labels: NDArray[np.int32], used_labels: NDArray[np.int64]) -> Reals:
    """Distance of each device's fresh labels (K, m) from the labels used so far (m,).

    0 where nothing was used yet, where a device has nothing fresh, and where both are perfectly balanced (x = y = 0).
    """
    result = np.zeros(len(fresh_labels))
    if not used_labels.any():
        return result
    x = used_labels / used_labels.mean() - 1
    has_fresh = fresh_labels.any(axis=1)
    counts = fresh_labels if has_fresh.all() else fresh_labels[has_fresh]
    y = counts / counts.mean(axis=1, keepdims=True) - 1
    scale = x @ x + np.einsum("km,km->k", y, y)
    gap = y - x
    distance = np.einsum("km,km->k", gap, gap)
    result[has_fresh] = np.divide(distance, scale, out=np.zeros_like(scale), where=scale > 0)
    return result


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


def evaluate(metric: str, amount: Reals, dissimilarity: Reals) -> Reals:
    """I_k by a metric's name; ScenarioError where a user's own one does not give one finite number per device."""
    worth = METRICS.lookup(metric)(amount, dissimilarity)
    if worth.shape != amount.shape or not np.isfinite(worth).all():
        raise ScenarioError(f"policy.metric: '{metric}' must give one finite number per device")
    return worth
