"""A metric of one's own: amount and dissimilarity multiplied, so that a device needs both.

feelstream run tiny --set policy.metric=examples/my_metric.py:product
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def product(amount: NDArray[np.float64], dissimilarity: NDArray[np.float64]) -> NDArray[np.float64]:
    """I_k = amount_k (1 + dissimilarity_k); both arrays have one entry per device."""
    return amount * (1 + dissimilarity)
