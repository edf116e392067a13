"""Data sets by name: labelled images in one form, wherever they come from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from feelstream.data.datasets import cache, catalogue, npz
from feelstream.data.datasets.mirrors import Progress
from feelstream.data.datasets.synthetic import Synthetic
from feelstream.errors import DataError

Images = NDArray[np.uint8] | Callable[[], NDArray[np.uint8]]  # the images, or how to make them
NAMES = (*catalogue.COLLECTIONS, "synthetic")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labelled images for training and testing.

    shape: channels, rows, columns. train_labels, test_labels: uint8 (N,) and (M,), each below `classes`.
    digest: SHA-256 in hex of what decides labels and images. Images are made when first asked for: a run that
    only schedules needs none, and may have far more samples than images fit in memory.
    """

    name: str
    classes: int
    shape: tuple[int, int, int]
    train_labels: NDArray[np.uint8] = field(repr=False)
    test_labels: NDArray[np.uint8] = field(repr=False)
    digest: str
    train_source: Images = field(repr=False)
    test_source: Images = field(repr=False)
    normalisation: tuple[float, float] | None = None  # mean and deviation where they are agreed upon

    @cached_property
    def train_images(self) -> NDArray[np.uint8]:
        """(N, C, H, W)."""
        return self.train_source() if callable(self.train_source) else self.train_source

    @cached_property
    def test_images(self) -> NDArray[np.uint8]:
        """(M, C, H, W)."""
        return self.test_source() if callable(self.test_source) else self.test_source

    @property
    def mean(self) -> float:
        """Mean of x/255 over the training images."""
        return self._moments[0]

    @property
    def std(self) -> float:
        """Standard deviation of x/255 over the training images; an input is (x/255 − mean) / std."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[float, float]:
        if self.normalisation is not None:
            return self.normalisation
        # Counting values is exact whatever the number of pixels; by blocks, as bincount widens to int64.
        blocks = np.array_split(self.train_images.reshape(-1), 1 + self.train_images.size // 2**24)
        count = sum((np.bincount(block, minlength=256) for block in blocks), np.zeros(256, np.int64))
        value = np.arange(256) / 255
        mean = float(count @ value / count.sum())
        return mean, float(np.sqrt(count @ (value - mean) ** 2 / count.sum()))


def load(
    name: str,
    *,
    samples: int | None = None,
    test_samples: int | None = None,
    classes: int | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """The data set "mnist", "fashion-mnist", "synthetic", or the one in an .npz file, fetched if need be.

    samples, test_samples, classes: for "synthetic" only; None is its default (6000, 1000, 10).

    >>> load("synthetic", samples=20).train_labels[:12]
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1], dtype=uint8)
    """
    settings = {"samples": samples, "test_samples": test_samples, "classes": classes}
    given = {key: value for key, value in settings.items() if value is not None}
    if name == "synthetic":
        return _synthetic(replace(Synthetic(), **given))
    if given:
        raise DataError(f"{next(iter(given))} can be set for the data set synthetic only, not for {name}")
    if name in catalogue.COLLECTIONS:
        return _known(name, progress)
    if name.lower().endswith(".npz"):
        return _own(Path(name))
    raise DataError(f"there is no data set {name!r}; allowed are {', '.join(NAMES)} and the path of an .npz file")


def fetch(name: str, progress: Progress | None = None) -> list[Path]:
    """Put the files of a public data set into the cache, checked, and say where they are."""
    if name not in catalogue.COLLECTIONS:
        raise DataError(f"{name!r} cannot be fetched; allowed are {', '.join(catalogue.COLLECTIONS)}")
    collection = catalogue.COLLECTIONS[name]
    return [collection.folder / file for file in cache.obtain(collection, progress)]


def present() -> dict[str, dict[Path, cache.State]]:
    """For each public data set, its files' paths and whether they are present, damaged or absent."""
    return {name: cache.states(collection) for name, collection in catalogue.COLLECTIONS.items()}


def _synthetic(settings: Synthetic) -> Dataset:
    return Dataset(
        name="synthetic",
        classes=settings.classes,
        shape=settings.shape,
        train_labels=settings.labels("train"),
        test_labels=settings.labels("test"),
        digest=settings.digest,
        train_source=partial(settings.images, "train"),
        test_source=partial(settings.images, "test"),
    )


def _known(name: str, progress: Progress | None) -> Dataset:
    contents = cache.obtain(catalogue.COLLECTIONS[name], progress)
    train, test = _idx(contents[catalogue.TRAIN_IMAGES]), _idx(contents[catalogue.TEST_IMAGES])
    train_labels, test_labels = _idx(contents[catalogue.TRAIN_LABELS]), _idx(contents[catalogue.TEST_LABELS])
    return Dataset(
        name=name,
        classes=10,
        shape=(1, train.shape[1], train.shape[2]),
        train_labels=train_labels,
        test_labels=test_labels,
        digest=_digest(train, train_labels, test, test_labels),
        train_source=train[:, None],
        test_source=test[:, None],
        normalisation=catalogue.NORMALISATION[name],
    )


def _own(path: Path) -> Dataset:
    arrays = npz.read(path)
    x_train, y_train, x_test, y_test = (arrays[key] for key in npz.KEYS)
    return Dataset(
        name=str(path),
        classes=int(max(y_train.max(), y_test.max())) + 1,
        shape=(x_train.shape[1], x_train.shape[2], x_train.shape[3]),
        train_labels=y_train,
        test_labels=y_test,
        digest=_digest(x_train, y_train, x_test, y_test),
        train_source=x_train,
        test_source=x_test,
    )


def _idx(raw: bytes) -> NDArray[np.uint8]:
    """The array in a (checked) idx file: bytes 0, 0, 8, number of axes, then lengths as big-endian uint32."""
    axes = raw[3]
    shape = np.frombuffer(raw, ">u4", axes, offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _digest(*arrays: NDArray[np.uint8]) -> str:
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(repr(array.shape).encode())
        sha.update(array.data)
    return sha.hexdigest()
