"""The format of MNIST and the like: bytes 0, 0, 8, the number of axes, lengths as big-endian uint32, the values."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from feelstream.data.datasets.dataset import Arrays


def arrays(contents: Mapping[str, bytes]) -> Arrays:
    """The samples in the four (checked) files."""
    return {
        f"{key}_{part}": _array(contents[f"{file}-{kind}-ubyte"])
        for part, file in (("train", "train"), ("test", "t10k"))
        for key, kind in (("x", "images-idx3"), ("y", "labels-idx1"))
    }


def _array(raw: bytes) -> NDArray[np.uint8]:
    axes = raw[3]
    shape = np.frombuffer(raw, ">u4", axes, offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape)
