"""Who recorded each training sample, and when: what makes a data set a natural stream."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Frozen


@dataclass(frozen=True, eq=False)
class Recording(Frozen):
    """Facts that came with the N training samples; None where the data set does not tell.

    owner: int32 (N,), who recorded the sample, counted from 0 without gaps.
    time_s: float64 (N,), when it was complete, in s from the start of its owner's recording.
    """

    owner: NDArray[np.int32] | None = field(default=None, repr=False)
    time_s: NDArray[np.float64] | None = field(default=None, repr=False)
