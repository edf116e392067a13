"""A data set in the one form that all else deals with, wherever it came from."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Frozen, read_only

Pixels = NDArray[np.uint8 | np.float32]
Images = Pixels | NDArray[np.int64]  # or tokens
Normalise = Literal["auto", "none"]
Labels = NDArray[Any]  # uint8, or uint16 beyond 256 classes
Source = Images | Callable[[], Images]  # as they are, or how to make them
Arrays = dict[str, NDArray[Any]]  # by the keys of an .npz file
KEYS = ("x_train", "y_train", "x_test", "y_test")
OPTIONAL = ("owner_train", "time_train", "round_test")


@dataclass(frozen=True, eq=False)
class Recording(Frozen):
    """Facts that came with the N training samples; None where the data set does not tell.

    owner: int32 (N,), who recorded the sample, counted from 0 without gaps.
    time_s: float64 (N,), when it was complete, in s from the start of its owner's recording.
    """

    owner: NDArray[np.int32] | None = field(default=None, repr=False)
    time_s: NDArray[np.float64] | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Dataset(Frozen):
    """Labelled samples for training and testing, read-only: all runs of a process share them.

    shape: channels, rows, columns; a vector of F numbers is (F, 1, 1), a series of L values (channels, 1, L).
    train_labels, test_labels: (N,) and (M,), each below `classes`; uint8 up to 256 classes, else uint16.
    digest: SHA-256 in hex of what decides labels and features. Features are made when first asked for: a run
    that only schedules needs none, and may have far more samples than features fit in memory.
    """

    name: str
    classes: int
    shape: tuple[int, int, int]
    train_labels: Labels = field(repr=False)
    test_labels: Labels = field(repr=False)
    digest: str
    train_source: Source = field(repr=False)
    test_source: Source = field(repr=False)
    normalisation: tuple[float, float] | None = None  # mean and deviation where they are agreed upon
    recording: Recording = field(default_factory=Recording, repr=False)
    vocabulary: int | None = None  # of tokens: one more than the largest; None where features are no tokens
    test_rounds: NDArray[np.int64] | None = field(default=None, repr=False)  # (M,) see npz.py; None: one test set

    @cached_property
    def train_images(self) -> Images:
        """(N, C, H, W): uint8 from 0 to 255, float32 that is standardised already, or int64 tokens (N, L, 1, 1)."""
        return read_only(self.train_source() if callable(self.train_source) else self.train_source)

    @cached_property
    def test_images(self) -> Images:
        """(M, C, H, W), as `train_images`."""
        return read_only(self.test_source() if callable(self.test_source) else self.test_source)

    @property
    def mean(self) -> float:
        """Mean of x/255 over the training images; 0 for float features."""
        return self._moments[0]

    @property
    def std(self) -> float:
        """Standard deviation of x/255 over the training images, 1 for float features.

        An input is (x/255 − mean) / std where x is uint8, and x where it is float32.
        """
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[float, float]:
        if self.normalisation is not None:
            return self.normalisation
        if self.train_images.dtype != np.uint8:
            return 0.0, 1.0
        # Counting values is exact whatever the number of pixels; by blocks, as bincount widens to int64.
        blocks = np.array_split(self.train_images.reshape(-1), 1 + self.train_images.size // 2**24)
        count = sum((np.bincount(block, minlength=256) for block in blocks), np.zeros(256, np.int64))
        value = np.arange(256) / 255
        mean = float(count @ value / count.sum())
        return mean, float(np.sqrt(count @ (value - mean) ** 2 / count.sum()))


def assembled(name: str, arrays: Arrays, normalise: Normalise, agreed: tuple[float, float] | None = None) -> Dataset:
    """The data set in (checked) arrays: features (N, C, H, W), or grey (N, H, W), of uint8, float or int64 for tokens.

    agreed: mean and deviation of uint8. Floats become float32, standardised unless normalise is "none".
    """
    classes = int(max(arrays["y_train"].max(), arrays["y_test"].max())) + 1
    for key in ("y_train", "y_test"):
        arrays[key] = arrays[key].astype(np.uint8 if classes <= 256 else np.uint16)
    digest = digest_of_arrays(*(arrays[key] for key in (*KEYS, *OPTIONAL) if key in arrays))
    train, test = (x[:, None] if x.ndim == 3 else x for x in (arrays["x_train"], arrays["x_test"]))
    vocabulary = int(max(train.max(), test.max())) + 1 if train.dtype.kind == "i" else None
    if train.dtype.kind == "f":
        as_they_are = (x.astype(np.float32) for x in (train, test))
        train, test = standardised(train, test) if normalise == "auto" else as_they_are
    channels, rows, columns = train.shape[1:]
    return Dataset(
        name, classes, (channels, rows, columns), arrays["y_train"], arrays["y_test"], digest, train, test,
        normalisation=(0.0, 1.0) if normalise == "none" and vocabulary is None else agreed,
        recording=Recording(arrays.get("owner_train"), arrays.get("time_train")),
        vocabulary=vocabulary, test_rounds=arrays.get("round_test"),
    )  # fmt: skip


def standardised(train: NDArray[Any], test: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Float features (N, C, H, W) and (M, C, H, W) with every channel's mean at 0 and deviation at 1.

    x → (x − mean_c) / deviation_c, both over the training samples alone: the test set must not be looked at.
    Edge rule: a channel with one value everywhere is only moved to 0.
    """
    axes = (0, 2, 3)
    mean = train.mean(axes, dtype=np.float64, keepdims=True)
    deviation = train.std(axes, dtype=np.float64, keepdims=True)
    # What is left of a constant after subtracting its rounded mean is no signal.
    deviation[deviation <= 1e-12 * np.abs(mean)] = 1.0
    first, second = (((part - mean) / deviation).astype(np.float32) for part in (train, test))
    return first, second


def digest_of_arrays(*arrays: NDArray[Any]) -> str:
    """SHA-256 in hex of shapes and contents; the type too, unless it is uint8."""
    sha = hashlib.sha256()
    for array in arrays:
        if array.dtype != np.uint8:
            sha.update(array.dtype.str.encode())
        sha.update(repr(array.shape).encode())
        sha.update(np.ascontiguousarray(array).data)
    return sha.hexdigest()
