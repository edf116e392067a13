"""A user's own data set: an .npz file with x_train, y_train, x_test and y_test."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feelstream.errors import DataError

KEYS = ("x_train", "y_train", "x_test", "y_test")
UNREADABLE = (
    OSError, ValueError, EOFError, KeyError, MemoryError, OverflowError, NotImplementedError, RuntimeError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def read(path: Path) -> dict[str, NDArray[np.uint8]]:
    """The four arrays, checked: images uint8 (N, C, H, W), labels uint8 (N,) from 0 to at most 255.

    In the file images are uint8 (N, H, W) or (N, C, H, W), labels any integer type. Nothing is unpickled.
    """
    arrays = _load(path)
    for part in ("train", "test"):
        images, labels = arrays[f"x_{part}"], arrays[f"y_{part}"]
        arrays[f"x_{part}"] = _images(path, f"x_{part}", images)
        arrays[f"y_{part}"] = _labels(path, f"y_{part}", labels)
        if len(images) != len(labels):
            raise DataError(
                f"{path}: x_{part} has {len(images)} images and y_{part} has {len(labels)} labels; "
                "the two must be equally many"
            )
    train, test = arrays["x_train"].shape[1:], arrays["x_test"].shape[1:]
    if train != test:
        raise DataError(f"{path}: images of x_train are {train} and of x_test {test}; they must have one shape")
    if arrays["x_train"].min() == arrays["x_train"].max():
        raise DataError(f"{path}: x_train has one value everywhere; there is nothing to learn from such images")
    if max(arrays["y_train"].max(), arrays["y_test"].max()) == 0:
        raise DataError(f"{path}: y_train and y_test hold label 0 alone; at least two classes are needed")
    return arrays


def _load(path: Path) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise DataError(f"{path} is not there; data.dataset must be a known name or the path of an .npz file")
    key = "the file"
    try:
        with path.open("rb") as source:
            archive = np.load(source, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise DataError(f"{path} holds a single array; an .npz file with {', '.join(KEYS)} is needed")
            missing = [key for key in KEYS if key not in archive]
            if missing:
                raise DataError(f"{path} has no array {missing[0]}; it must hold {', '.join(KEYS)}")
            arrays = {}
            for key in KEYS:
                arrays[key] = archive[key]
            return arrays
    except UNREADABLE as error:
        raise DataError(
            f"{path}: {key} cannot be read as an array of numbers (damaged, or it holds Python objects); "
            "write the file with numpy.savez"
        ) from error


def _images(path: Path, key: str, images: NDArray[Any]) -> NDArray[np.uint8]:
    if images.dtype != np.uint8:
        raise DataError(f"{path}: {key} is {images.dtype}; images must be uint8, 0 to 255")
    if images.ndim not in (3, 4) or images.size == 0:
        raise DataError(f"{path}: {key} has shape {images.shape}; images must be (N, H, W) or (N, C, H, W), none 0")
    if images.ndim == 4 and images.shape[3] in (1, 3, 4) and images.shape[1] > 4:
        raise DataError(f"{path}: {key} has shape {images.shape}, channels last; they must come second: (N, C, H, W)")
    return np.ascontiguousarray(images[:, None] if images.ndim == 3 else images)


def _labels(path: Path, key: str, labels: NDArray[Any]) -> NDArray[np.uint8]:
    if labels.dtype.kind not in "iu" or labels.ndim != 1 or labels.size == 0:
        raise DataError(f"{path}: {key} is {labels.dtype} of shape {labels.shape}; labels must be integers, shape (N,)")
    if labels.min() < 0 or labels.max() > 255:
        raise DataError(f"{path}: {key} goes from {labels.min()} to {labels.max()}; labels must be 0 to 255")
    return labels.astype(np.uint8)
