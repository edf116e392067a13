"""Data sets by name: labelled samples in one form, wherever they come from."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from feelstream.data.datasets import cache, catalogue, cifar, hapt, npz
from feelstream.data.datasets.dataset import Dataset, Normalise, digest_of
from feelstream.data.datasets.mirrors import Progress
from feelstream.data.datasets.synthetic import Synthetic
from feelstream.errors import DataError

FETCHED = tuple(catalogue.COLLECTIONS)
NAMES = (*FETCHED, "synthetic")


def load(
    name: str,
    *,
    samples: int | None = None,
    test_samples: int | None = None,
    classes: int | None = None,
    normalise: Normalise = "auto",
    progress: Progress | None = None,
) -> Dataset:
    """The data set of that name (see NAMES) or in the .npz file of that path, fetched if need be.

    samples, test_samples, classes: for "synthetic" only; None is its default (6000, 1000, 10). normalise: "none" leaves
    floats as they are, and makes x/255 of uint8.

    >>> load("synthetic", samples=20).train_labels[:12]
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1], dtype=uint8)
    """
    found = _named(name, samples, test_samples, classes, normalise, progress)
    plain = normalise == "none" and found.vocabulary is None
    return replace(found, normalisation=(0.0, 1.0)) if plain else found


def _named(
    name: str,
    samples: int | None,
    test_samples: int | None,
    classes: int | None,
    normalise: Normalise,
    progress: Progress | None,
) -> Dataset:
    settings = {"samples": samples, "test_samples": test_samples, "classes": classes}
    given = {key: value for key, value in settings.items() if value is not None}
    if name == "synthetic":
        return _synthetic(replace(Synthetic(), **given))
    if given:
        raise DataError(f"{next(iter(given))} can be set for the data set synthetic only, not for {name}")
    if name in catalogue.COLLECTIONS:
        return _known(name, normalise, progress)
    if name.lower().endswith(".npz"):
        return npz.dataset(Path(name), normalise)
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


def _known(name: str, normalise: Normalise, progress: Progress | None) -> Dataset:
    contents = cache.obtain(catalogue.COLLECTIONS[name], progress)
    if name == "hapt":
        return hapt.dataset(contents[hapt.CACHED], normalise)
    if name == "cifar10":
        return cifar.dataset(contents, catalogue.NORMALISATION[name])
    train, test = _idx(contents[catalogue.TRAIN_IMAGES]), _idx(contents[catalogue.TEST_IMAGES])
    train_labels, test_labels = _idx(contents[catalogue.TRAIN_LABELS]), _idx(contents[catalogue.TEST_LABELS])
    return Dataset(
        name=name,
        classes=10,
        shape=(1, train.shape[1], train.shape[2]),
        train_labels=train_labels,
        test_labels=test_labels,
        digest=digest_of(train, train_labels, test, test_labels),
        train_source=train[:, None],
        test_source=test[:, None],
        normalisation=catalogue.NORMALISATION[name],
    )


def _idx(raw: bytes) -> NDArray[np.uint8]:
    """The array in a (checked) idx file: bytes 0, 0, 8, number of axes, then lengths as big-endian uint32."""
    axes = raw[3]
    shape = np.frombuffer(raw, ">u4", axes, offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape)
