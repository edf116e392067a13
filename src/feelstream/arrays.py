"""Names of the array types that every room shares; the device axis always comes first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Ids = NDArray[np.int64]  # device numbers
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
LabelCounts = NDArray[np.int32]  # (K, m), or (m,) for one device


def read_only(array: NDArray) -> NDArray:
    """A view that refuses to be written to.

    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view
