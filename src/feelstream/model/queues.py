"""Virtual energy queues: how far each device is ahead of its budget."""

from __future__ import annotations

import numpy as np

from feelstream.arrays import Reals


def next_queue_j(queue_j: Reals, energy_j: Reals, budget_j: Reals) -> Reals:
    """Q_k(t+1) = max(Q_k(t) + E_k(t) − E_k^avg, 0), all (K,), J: devices that spend nothing drain by their budget.

    >>> next_queue_j(np.array([0.0, 3.0]), np.array([2.0, 0.0]), np.array([0.5, 0.5])).tolist()
    [1.5, 2.5]
    """
    return np.maximum(queue_j + energy_j - budget_j, 0.0)
