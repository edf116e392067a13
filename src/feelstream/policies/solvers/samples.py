"""What devices report of their samples, as one number each."""

from __future__ import annotations

import numpy as np

from feelstream.arrays import Reals


def mean_over_samples(values: Reals) -> Reals:
    """(n,) the mean of what (n, steps, batch) says of the samples that are there; NaN where none is.

    >>> mean_over_samples(np.array([[[1.0, 3.0], [2.0, np.nan]]]))
    array([2.])
    """
    absent = np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.where(absent, 0.0, values).sum(axis=(1, 2)) / (~absent).sum(axis=(1, 2))
