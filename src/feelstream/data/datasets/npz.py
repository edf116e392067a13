"""A user's own data set: an .npz file with x_train, y_train, x_test and y_test, owner_train and time_train where the
samples are a natural stream, and round_test where the test set changes during the run.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feelstream.data.datasets.dataset import KEYS, OPTIONAL, Arrays, Dataset, Normalise, assembled
from feelstream.errors import DataError

MOST_CLASSES = 2**16
LARGEST_VALUE = 1e30
MOST_TOKENS = 2**31


def dataset(path: Path, normalise: Normalise = "auto") -> Dataset:
    """The data set in the file, checked; nothing is unpickled.

    In the file features are uint8 or floats: vectors (N, F), images (N, H, W) or (N, C, H, W), series (N, C, 1, L); or
    tokens (N, L), any integers but uint8. normalise: "none" leaves floats as they are.
    Labels are integers (N,) from 0. owner_train: integers (N,) from 0 without gaps; time_train: numbers (N,), s.
    round_test: integers (M,) from 1; round t is tested on the samples with the largest that is not above t.
    """
    if not path.is_file():
        raise DataError(f"{path} is not there; data.dataset must be a known name or the path of an .npz file")
    arrays = _load(path)
    for problems in (_of_features, _of_labels, _of_facts):  # each may rely on what the former found to be right
        for problem in problems(arrays):
            raise DataError(f"{path}: {problem}")
    return assembled(str(path), arrays, normalise)


def _load(path: Path) -> Arrays:
    arrays: Arrays = {}
    key = "the file"
    try:
        with path.open("rb") as source:
            found = np.load(source, allow_pickle=False)
            if isinstance(found, np.ndarray):
                raise DataError(f"{path} holds a single array; an .npz file with {', '.join(KEYS)} is needed")
            if missing := [key for key in KEYS if key not in found.files]:
                raise DataError(f"{path} has no array {missing[0]}; it must hold {', '.join(KEYS)}")
            for key in (key for key in (*KEYS, *OPTIONAL) if key in found.files):
                arrays[key] = np.asarray(found[key])
    except DataError:
        raise
    except Exception as error:  # what is damaged may raise anything
        raise DataError(
            f"{path}: {key} cannot be read as an array of numbers (damaged, or it holds Python objects); "
            "write the file with numpy.savez"
        ) from error
    return arrays


def _of_features(arrays: Arrays) -> Iterator[str]:
    """What is wrong with the features, which become (N, C, H, W) of uint8, of float64, or of int64 if tokens."""
    for key in ("x_train", "x_test"):
        yield from _wrong_features(key, x := arrays[key])
        if x.dtype != np.uint8:
            # In this machine's byte order whatever the file has, so that the digest tells values alone.
            x = x.astype(np.float64 if x.dtype.kind == "f" else np.int64)
        x = x[:, :, None, None] if x.ndim == 2 else x[:, None] if x.ndim == 3 else x
        arrays[key] = np.ascontiguousarray(x)
    x_train, x_test = arrays["x_train"], arrays["x_test"]
    if x_train.dtype != x_test.dtype:
        yield "x_train and x_test must be alike, both uint8, both floats or both tokens (other integers)"
    if x_train.shape[1:] != x_test.shape[1:]:
        yield f"samples of x_train are {x_train.shape[1:]}, of x_test {x_test.shape[1:]}; they must have one shape"
    if x_train.min() == x_train.max():
        yield "x_train has one value everywhere; there is nothing to learn from such samples"


def _wrong_features(key: str, x: NDArray[Any]) -> Iterator[str]:
    if x.dtype.kind in "iu" and x.dtype != np.uint8:
        if x.ndim != 2 or x.size == 0:
            yield f"{key} has shape {x.shape}; tokens (integers but uint8) must be (N, L), none 0"
        if x.min() < 0 or x.max() >= MOST_TOKENS:
            yield f"{key} goes from {x.min()} to {x.max()}; tokens must be 0 to {MOST_TOKENS - 1:,}"
    elif x.dtype != np.uint8 and x.dtype.kind != "f":
        yield f"{key} is {x.dtype}; features must be uint8 (0 to 255), floats or tokens (integers)"
    if x.ndim not in (2, 3, 4) or x.size == 0:
        yield f"{key} has shape {x.shape}; features must be (N, F), (N, H, W), (N, C, H, W) or (N, C, 1, L), none 0"
    if x.ndim == 4 and x.shape[3] in (1, 3, 4) and min(x.shape[1:3]) > 4:
        yield f"{key} has shape {x.shape}, channels last; they must come second: (N, C, H, W)"
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        yield f"{key} holds values that are not finite (NaN or infinite); leave them out"
    if x.dtype.kind == "f" and float(np.abs(x).max()) > LARGEST_VALUE:
        yield f"{key} holds values beyond {LARGEST_VALUE:g}; scale them down"


def _of_labels(arrays: Arrays) -> Iterator[str]:
    for x_key, key in (("x_train", "y_train"), ("x_test", "y_test")):
        samples, y = len(arrays[x_key]), arrays[key]
        if y.dtype.kind == "f":
            yield f"{key} is {y.dtype}; feelstream learns classes, so labels must be integers from 0: no regression"
        if y.dtype.kind not in "iu" or y.ndim != 1 or y.size == 0:
            yield f"{key} is {y.dtype} of shape {y.shape}; labels must be integers, shape (N,)"
        if y.min() < 0 or y.max() >= MOST_CLASSES:
            yield f"{key} goes from {y.min()} to {y.max()}; labels must be 0 to {MOST_CLASSES - 1}"
        if len(y) != samples:
            yield f"{x_key} has {samples} samples and {key} has {len(y)} labels; the two must be equally many"
    if max(arrays["y_train"].max(), arrays["y_test"].max()) == 0:
        yield "y_train and y_test hold label 0 alone; at least two classes are needed"


def _of_facts(arrays: Arrays) -> Iterator[str]:
    """What is wrong with what may be left out, and gets the types of `Recording` and `Dataset`."""
    for key, kinds, what, kept, labels in (
        ("owner_train", "iu", "integers", np.int32, "y_train"),
        ("time_train", "iuf", "numbers", np.float64, "y_train"),
        ("round_test", "iu", "integers", np.int64, "y_test"),
    ):
        if key not in arrays:
            continue
        facts, shape = arrays[key], arrays[labels].shape
        if facts.dtype.kind not in kinds or facts.shape != shape:
            yield f"{key} is {facts.dtype} of shape {facts.shape}; it must be {what}, shape {shape}"
        if key == "owner_train" and not np.array_equal(found := np.unique(facts), np.arange(len(found))):
            yield "owner_train must count the owners from 0 without gaps"
        if key == "time_train" and not (np.isfinite(facts) & (facts >= 0)).all():
            yield "every time in time_train must be a finite number of seconds, 0 or later"
        if key == "round_test" and facts.min() != 1:
            yield f"round_test begins with round {facts.min()}; it must begin with round 1"
        arrays[key] = facts.astype(kept)
