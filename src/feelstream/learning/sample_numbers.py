"""Arrays of sample numbers that engines can trust."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ABSENT = -1  # in place of a sample number: no sample here, nor behind it


def padded(numbers: NDArray[np.int64], count: int, axes: Sequence[str]) -> NDArray[np.int64]:
    """The same, contiguous, once each has been found to be one of `count` samples, or absent with none behind it.

    axes: what the axes of the array are, for messages; the last one is that of the samples.
    """
    shape = f"({', '.join(axes)})"
    if numbers.dtype != np.int64 or numbers.ndim != len(axes):
        raise ValueError(f"batches must be int64 of shape {shape}, not {numbers.dtype} of shape {numbers.shape}")
    if numbers.size:
        least, most = numbers.min(), numbers.max()
        if least < ABSENT or most >= count:
            raise ValueError(
                f"sample numbers must lie in 0 … {count - 1}, or be −1 for an absent one, and batches hold"
                f" {least} … {most}"
            )
        if least == ABSENT and ((numbers[..., :-1] == ABSENT) & (numbers[..., 1:] != ABSENT)).any():
            raise ValueError("an absent sample (−1) must come behind the samples of its batch")
    return np.ascontiguousarray(numbers)


def chosen(samples: NDArray[np.int64] | None, count: int) -> NDArray[np.int64]:
    """The numbers (m,) of some of `count` samples, all there; None: of all."""
    if samples is None:
        return np.arange(count)
    samples = padded(samples, count, ("samples",))
    if ABSENT in samples:
        raise ValueError("samples to predict hold −1, and every number must name a sample")
    return samples
