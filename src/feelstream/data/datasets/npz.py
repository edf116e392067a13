"""A user's own data set: an .npz file with x_train, y_train, x_test and y_test, owner_train and time_train where the
samples are a natural stream, and round_test where the test set changes during the run.
"""

from __future__ import annotations

import zipfile
import zlib
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from feelstream.data.datasets.dataset import MOST_CLASSES, Dataset, Features, Labels, Normalise, digest_of, standardised
from feelstream.data.recording import Recording
from feelstream.errors import DataError

KEYS = ("x_train", "y_train", "x_test", "y_test")
OPTIONAL = ("owner_train", "time_train", "round_test")
LARGEST_VALUE = 1e30
MOST_TOKENS = 2**31
BOMB_BYTES, BOMB_RATIO = 1 << 28, 200  # real features do not shrink to a 200th, and small ones do no harm
UNREADABLE = (
    OSError, ValueError, EOFError, KeyError, MemoryError, OverflowError, NotImplementedError, RuntimeError,
    SyntaxError, TypeError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def dataset(path: Path, normalise: Normalise = "auto") -> Dataset:
    """The data set in the file, checked; nothing is unpickled.

    In the file features are uint8 or floats: vectors (N, F), images (N, H, W) or (N, C, H, W), series (N, C, 1, L); or
    tokens (N, L), any integers but uint8. normalise: "none" leaves floats as they are.
    Labels are integers (N,) from 0. owner_train: integers (N,) from 0 without gaps; time_train: numbers (N,), s.
    round_test: integers (M,) from 1; round t is tested on the samples with the largest that is not above t.
    """
    arrays = _load(path)
    for part in ("train", "test"):
        features, labels = arrays[f"x_{part}"], arrays[f"y_{part}"]
        arrays[f"x_{part}"] = _features(path, f"x_{part}", features)
        arrays[f"y_{part}"] = _labels(path, f"y_{part}", labels)
        if len(features) != len(labels):
            raise DataError(
                f"{path}: x_{part} has {len(features)} samples and y_{part} has {len(labels)} labels; "
                "the two must be equally many"
            )
    x_train, y_train, x_test, y_test = (arrays[key] for key in KEYS)
    _check_together(path, x_train, y_train, x_test, y_test)
    classes = int(max(y_train.max(), y_test.max())) + 1
    y_train, y_test = (labels_of(labels, classes) for labels in (y_train, y_test))
    recording = _recording(path, arrays, len(y_train))
    test_rounds = _test_rounds(path, arrays.get("round_test"), len(y_test))
    facts = [array for array in (recording.owner, recording.time_s, test_rounds) if array is not None]
    digest = digest_of(x_train, y_train, x_test, y_test, *facts)
    train: Features = x_train
    test: Features = x_test
    if x_train.dtype.kind == "f":
        as_they_are = (part.astype(np.float32) for part in (x_train, x_test))
        train, test = standardised(x_train, x_test) if normalise == "auto" else as_they_are
    channels, rows, columns = x_train.shape[1:]
    return Dataset(
        name=str(path),
        classes=classes,
        shape=(channels, rows, columns),
        train_labels=y_train,
        test_labels=y_test,
        digest=digest,
        train_source=train,
        test_source=test,
        recording=recording,
        vocabulary=int(max(x_train.max(), x_test.max())) + 1 if x_train.dtype.kind == "i" else None,
        test_rounds=test_rounds,
    )


def labels_of(labels: NDArray[Any], classes: int) -> Labels:
    """Labels in the smallest type that has room for so many classes."""
    return labels.astype(np.uint8) if classes <= 256 else labels.astype(np.uint16)


def _load(path: Path) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise DataError(f"{path} is not there; data.dataset must be a known name or the path of an .npz file")
    key = "the file"
    try:
        with path.open("rb") as source:
            if source.read(6) == np.lib.format.MAGIC_PREFIX:
                raise DataError(f"{path} holds a single array; an .npz file with {', '.join(KEYS)} is needed")
            with zipfile.ZipFile(source) as archive:
                names = archive.namelist()
                missing = [key for key in KEYS if f"{key}.npy" not in names]
                if missing:
                    raise DataError(f"{path} has no array {missing[0]}; it must hold {', '.join(KEYS)}")
                arrays = {}
                for key in (*KEYS, *(key for key in OPTIONAL if f"{key}.npy" in names)):
                    _check_member(path, key, archive.getinfo(f"{key}.npy"))
                    with archive.open(f"{key}.npy") as member:
                        arrays[key] = _array(member, archive.getinfo(f"{key}.npy").file_size)
                return arrays
    except UNREADABLE as error:
        raise DataError(
            f"{path}: {key} cannot be read as an array of numbers (damaged, or it holds Python objects); "
            "write the file with numpy.savez"
        ) from error


def _check_member(path: Path, key: str, member: zipfile.ZipInfo) -> None:
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(
            f"{path}: {key} is compressed in a way that numpy.savez does not write; "
            "write the file with numpy.savez or numpy.savez_compressed"
        )
    if member.file_size > BOMB_BYTES and member.file_size > BOMB_RATIO * member.compress_size:
        raise DataError(
            f"{path}: {key} would grow from {member.compress_size / 1e6:.3g} MB to {member.file_size / 1e9:.3g} GB, "
            "which no real data does; write the file with numpy.savez"
        )


def _array(member: IO[bytes], size: int) -> NDArray[Any]:
    """The array in an .npy file, whose header must fit its size before anything is read."""
    version = np.lib.format.read_magic(member)
    header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, fortran, dtype = header(member)
    if dtype.hasobject or min(shape, default=0) < 0 or prod(shape) * dtype.itemsize != size - member.tell():
        raise ValueError("a header that does not fit")
    return np.frombuffer(member.read(), dtype).reshape(shape, order="F" if fortran else "C")


def _features(path: Path, key: str, features: NDArray[Any]) -> NDArray[Any]:
    if features.dtype.kind in "iu" and features.dtype != np.uint8:
        return _tokens(path, key, features)
    if features.dtype != np.uint8 and features.dtype.kind != "f":
        raise DataError(
            f"{path}: {key} is {features.dtype}; features must be uint8 (0 to 255), floats or tokens (integers)"
        )
    if features.ndim not in (2, 3, 4) or features.size == 0:
        raise DataError(
            f"{path}: {key} has shape {features.shape}; features must be (N, F), (N, H, W), (N, C, H, W) "
            "or (N, C, 1, L), none 0"
        )
    if features.ndim == 4 and features.shape[3] in (1, 3, 4) and min(features.shape[1:3]) > 4:
        raise DataError(f"{path}: {key} has shape {features.shape}, channels last; they must come second: (N, C, H, W)")
    if features.dtype.kind == "f":
        if not np.isfinite(features).all():
            raise DataError(f"{path}: {key} holds values that are not finite (NaN or infinite); leave them out")
        if np.abs(features).max() > LARGEST_VALUE:
            raise DataError(f"{path}: {key} holds values beyond {LARGEST_VALUE:g}; scale them down")
        # As float64 in this machine's byte order whatever the file has, so that the digest tells values alone.
        features = features.astype(np.float64)
    if features.ndim == 2:
        features = features[:, :, None, None]
    return np.ascontiguousarray(features[:, None] if features.ndim == 3 else features)


def _tokens(path: Path, key: str, tokens: NDArray[Any]) -> NDArray[Any]:
    if tokens.ndim != 2 or tokens.size == 0:
        raise DataError(f"{path}: {key} has shape {tokens.shape}; tokens (integers but uint8) must be (N, L), none 0")
    if tokens.min() < 0 or tokens.max() >= MOST_TOKENS:
        raise DataError(
            f"{path}: {key} goes from {tokens.min()} to {tokens.max()}; tokens must be 0 to {MOST_TOKENS - 1:,}"
        )
    return np.ascontiguousarray(tokens.astype(np.int64)[:, :, None, None])


def _labels(path: Path, key: str, labels: NDArray[Any]) -> NDArray[Any]:
    if labels.dtype.kind == "f":
        raise DataError(
            f"{path}: {key} is {labels.dtype}; feelstream learns classes, so labels must be integers from 0, and "
            "targets of a regression cannot be learned"
        )
    if labels.dtype.kind not in "iu" or labels.ndim != 1 or labels.size == 0:
        raise DataError(f"{path}: {key} is {labels.dtype} of shape {labels.shape}; labels must be integers, shape (N,)")
    if labels.min() < 0 or labels.max() >= MOST_CLASSES:
        raise DataError(
            f"{path}: {key} goes from {labels.min()} to {labels.max()}; labels must be 0 to {MOST_CLASSES - 1}"
        )
    return labels


def _check_together(
    path: Path, x_train: NDArray[Any], y_train: NDArray[Any], x_test: NDArray[Any], y_test: NDArray[Any]
) -> None:
    if x_train.dtype.kind != x_test.dtype.kind:
        raise DataError(
            f"{path}: x_train and x_test must be alike, both uint8, both floats or both tokens (other integers)"
        )
    train, test = x_train.shape[1:], x_test.shape[1:]
    if train != test:
        raise DataError(f"{path}: samples of x_train are {train} and of x_test {test}; they must have one shape")
    if x_train.min() == x_train.max():
        raise DataError(f"{path}: x_train has one value everywhere; there is nothing to learn from such samples")
    if max(y_train.max(), y_test.max()) == 0:
        raise DataError(f"{path}: y_train and y_test hold label 0 alone; at least two classes are needed")


def _recording(path: Path, arrays: dict[str, NDArray[Any]], samples: int) -> Recording:
    owner, time_s = arrays.get("owner_train"), arrays.get("time_train")
    for key, kinds, what in (("owner_train", "iu", "integers"), ("time_train", "iuf", "numbers")):
        facts = arrays.get(key)
        if facts is not None and (facts.dtype.kind not in kinds or facts.shape != (samples,)):
            raise DataError(
                f"{path}: {key} is {facts.dtype} of shape {facts.shape}; it must be {what}, shape ({samples},)"
            )
    if owner is not None:
        found = np.unique(owner)
        if found[0] != 0 or found[-1] != len(found) - 1:
            raise DataError(f"{path}: owner_train must count the owners from 0 without gaps")
        owner = owner.astype(np.int32)
    if time_s is not None:
        time_s = time_s.astype(np.float64)
        if not (np.isfinite(time_s) & (time_s >= 0)).all():
            raise DataError(f"{path}: every time in time_train must be a finite number of seconds, 0 or later")
    return Recording(owner, time_s)


def _test_rounds(path: Path, first: NDArray[Any] | None, samples: int) -> NDArray[np.int64] | None:
    if first is None:
        return None
    if first.dtype.kind not in "iu" or first.shape != (samples,):
        raise DataError(
            f"{path}: round_test is {first.dtype} of shape {first.shape}; it must be integers, shape ({samples},)"
        )
    if first.min() != 1:
        raise DataError(f"{path}: round_test begins with round {first.min()}; it must begin with round 1")
    return first.astype(np.int64)
