"""Label counts with Laplace noise: what a device tells of its labels without telling of any one sample.

The server learns a device's counts only through what was added since the last report. Each addition a of m counts is
released as a + Lap(1/ε)^m: one sample changes one count by one, so every release is ε-differentially private, and since
each sample is in one addition only, so are all of a run's releases together. The running sum of the releases, rounded
and kept from falling, is post-processing. Model updates are not covered: protect those with Flower's own strategies.

Reference: C. Dwork, F. McSherry, K. Nissim, A. Smith, "Calibrating Noise to Sensitivity in Private Data Analysis",
TCC 2006.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class NoisyCounts:
    """A device's counts as the server receives them. Only buffers that delete nothing can be reported in this way.

    covered: int64 (m,), true counts covered so far; total: float64 (m,), the sum of all noisy additions;
    released: int64 (m,), what the server has received.
    """

    covered: Counts
    total: NDArray[np.float64]
    released: Counts

    @classmethod
    def empty(cls, classes: int) -> NoisyCounts:
        return cls(np.zeros(classes, np.int64), np.zeros(classes), np.zeros(classes, np.int64))

    def tell(self, counts: Counts, epsilon: float, rng: np.random.Generator) -> NoisyCounts:
        """The state after telling of what was added up to `counts`; unchanged where nothing may be new.

        Noise is added whether or not a label has grown, or its absence would tell.
        """
        total = self.total + (counts - self.covered) + rng.laplace(0.0, 1.0 / epsilon, len(counts))
        return NoisyCounts(counts, total, np.maximum(self.released, np.rint(total).astype(np.int64)))
