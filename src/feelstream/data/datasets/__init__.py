"""Data sets by name or path, in one form: what is known and fetched, what is made, and what users bring as .npz."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from feelstream.data.datasets import npz, readers
from feelstream.data.datasets.catalogue import COLLECTIONS, State
from feelstream.data.datasets.dataset import Dataset, Normalise, assembled
from feelstream.data.datasets.synthetic import Synthetic
from feelstream.errors import DataError

__all__ = ["FETCHED", "NAMES", "Dataset", "fetch", "load", "present"]

FETCHED = tuple(COLLECTIONS)
NAMES = (*FETCHED, "synthetic")


def load(
    name: str,
    *,
    samples: int | None = None,
    test_samples: int | None = None,
    classes: int | None = None,
    normalise: Normalise = "auto",
) -> Dataset:
    """The data set of that name (see NAMES) or in the .npz file of that path, fetched if need be.

    samples, test_samples, classes: for "synthetic" only; None is its default (6000, 1000, 10). normalise: "none" leaves
    floats as they are, and makes x/255 of uint8.

    >>> load("synthetic", samples=20).train_labels[:12]
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1], dtype=uint8)
    """
    settings = {"samples": samples, "test_samples": test_samples, "classes": classes}
    given = {key: value for key, value in settings.items() if value is not None}
    if name == "synthetic":
        return _synthetic(replace(Synthetic(), **given), normalise)
    if given:
        raise DataError(f"{next(iter(given))} can be set for the data set synthetic only, not for {name}")
    if name in COLLECTIONS:
        known = COLLECTIONS[name]
        return assembled(name, getattr(readers, known.reader)(known.obtain()), normalise, known.normalisation)
    if name.lower().endswith(".npz"):
        return npz.dataset(Path(name), normalise)
    raise DataError(f"there is no data set {name!r}; allowed are {', '.join(NAMES)} and the path of an .npz file")


def fetch(name: str) -> list[Path]:
    """Put the files of a public data set into the cache, checked, and say where they are."""
    if name not in COLLECTIONS:
        raise DataError(f"{name!r} cannot be fetched; allowed are {', '.join(FETCHED)}")
    return [COLLECTIONS[name].folder / file for file in COLLECTIONS[name].obtain()]


def present() -> dict[str, dict[Path, State]]:
    """For each public data set, its files' paths and whether they are present, damaged or absent."""
    return {name: collection.states() for name, collection in COLLECTIONS.items()}


def _synthetic(made: Synthetic, normalise: Normalise) -> Dataset:
    return Dataset(
        "synthetic", made.classes, made.shape, made.labels("train"), made.labels("test"), made.digest,
        partial(made.images, "train"), partial(made.images, "test"),
        normalisation=(0.0, 1.0) if normalise == "none" else None,
    )  # fmt: skip
