"""What reports need of thousands of stored runs, in two files: OUT/index/runs.json and OUT/index/rounds.parquet.

To open a run costs a manifest and a table to parse, which for ten thousand runs takes a minute. The index holds what
was parsed, by the SHA-256 of the bytes that it was parsed from. Nothing is believed that was not checked: every file of
every run is read and hashed whenever results are opened, index or not, and an entry counts only where all of its hashes
are those of the files. So a run that was changed, damaged or removed is treated as if there were no index, and an index
that is damaged, or of another version, as if it were not there. It may be removed at any time.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pydantic import BaseModel, NonNegativeInt, ValidationError

from feelstream.columns import FORMAT as RUN_FORMAT
from feelstream.errors import RunError
from feelstream.run.files import digest_of, read_json, read_table, write_atomically, write_sealed
from feelstream.run.manifest import Manifest
from feelstream.version import __version__

log = logging.getLogger(__name__)
FORMAT = 1
LEAST_RUNS = 100  # fewer are read as fast without
SMALL = 1 << 20  # bytes of a file that is read in one piece
ABOUT = ("feelstream", "engine", "data", "versions", "timings", "quantities")  # of run.json, for reports


@dataclass(frozen=True)
class Known:
    """A complete run as it was when its files were last checked."""

    digest: str  # of run.json
    digests: Mapping[str, str]  # of its other files
    about: Mapping[str, Any]  # the fields ABOUT of run.json

    @classmethod
    def of(cls, manifest: Manifest, content: bytes) -> Known:
        fields = manifest.model_dump(mode="python", include=set(ABOUT))
        about = {name: fields[name] for name in ABOUT if name in fields}
        return cls(hashlib.sha256(content).hexdigest(), manifest.digests, about)

    def is_as_it_was(self, directory: Path) -> bool:
        """Whether all files of the run are, byte for byte, those that are known."""
        place = os.fspath(directory)
        try:
            return _digest(f"{place}/run.json") == self.digest and all(
                _digest(f"{place}/{name}") == digest for name, digest in self.digests.items()
            )
        except OSError:  # whoever looks closer will say what is wrong
            return False


def _digest(path: str) -> str:
    """SHA-256 of a regular file, at a fifth of what `digest_of` costs a small one; a pipe is not waited for."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags)
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            return ""
        if about.st_size < SMALL:
            content = os.read(handle, about.st_size + 1)  # no more: room for what is asked for is made first
            return hashlib.sha256(content).hexdigest()
        with open(handle, "rb", closefd=False) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    finally:
        os.close(handle)


class _Entry(NamedTuple):
    """A run in runs.json; what many runs have in common is written once, and named here by its number."""

    digest: str
    digests: dict[str, str]
    about: NonNegativeInt
    timings: dict[str, Any]
    columns: NonNegativeInt
    rows: NonNegativeInt


class _File(BaseModel):
    format: int
    feelstream: str
    run_format: int
    rounds: str  # SHA-256 of rounds.parquet
    abouts: list[dict[str, Any]]
    columns: list[list[str]]
    runs: dict[str, _Entry]  # by the name of their directory, in the order of their rows


@dataclass(frozen=True)
class Rows:
    """The rounds of many runs below each other."""

    table: pl.DataFrame
    first: Mapping[str, tuple[int, int]]  # of each run, by the name of its directory: first row, number of rows
    columns: Mapping[str, Sequence[str]]  # that the run has itself; in the others' they are null


class Index:
    """The index of a results directory: empty where there is none that can be used."""

    def __init__(self, out: Path) -> None:
        self.folder = out / "index"
        self._file = _read(self.folder / "runs.json")
        entries = self._file.runs if self._file else {}
        self.known = {name: self._known(entry) for name, entry in entries.items()}

    def _known(self, entry: _Entry) -> Known:
        file = self._file
        assert file is not None
        return Known(entry.digest, entry.digests, {**file.abouts[entry.about], "timings": entry.timings})

    def rows(self) -> Rows | None:
        """The rounds of all runs that are in the index; None where they cannot be used."""
        path = self.folder / "rounds.parquet"
        if self._file is None:
            return None
        try:
            if digest_of(path) != self._file.rounds:
                return None
            table = read_table(path)
        except RunError:
            return None
        first, columns, row = dict[str, tuple[int, int]](), dict[str, Sequence[str]](), 0
        for name, entry in self._file.runs.items():
            first[name], columns[name] = (row, entry.rows), self._file.columns[entry.columns]
            row += entry.rows
        whole = row == len(table) and all(set(own) <= set(table.columns) for own in self._file.columns)
        return Rows(table, first, columns) if whole else None

    def write(self, known: Mapping[str, Known], rows: Rows) -> None:
        """Keep these runs, and no others; rows: theirs, in the same order."""
        abouts, columns = _Numbered(), _Numbered()
        runs = {
            name: (
                run.digest, dict(run.digests), abouts.number({k: v for k, v in run.about.items() if k != "timings"}),
                run.about["timings"], columns.number(list(rows.columns[name])), rows.first[name][1],
            )
            for name, run in known.items()
        }  # fmt: skip
        try:
            self.folder.mkdir(exist_ok=True)
            digest = write_atomically(self.folder / "rounds.parquet", rows.table.write_parquet)
            about = {
                "format": FORMAT, "feelstream": __version__, "run_format": RUN_FORMAT, "rounds": digest,
                "abouts": abouts.values, "columns": columns.values, "runs": runs,
            }  # fmt: skip
            write_sealed(self.folder / "runs.json", about)
        except (OSError, RunError) as problem:  # results may be read where nobody may write: it only takes longer
            log.debug("no index was written: %s", problem)


class _Numbered:
    """Distinct values in the order in which they came."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[str, int] = {}

    def number(self, value: Any) -> int:
        key = repr(value)
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


def _read(file: Path) -> _File | None:
    if not file.is_file():
        return None
    try:
        found = _File.model_validate(read_json(file))
    except (RunError, ValidationError):  # damaged: the runs themselves are read
        return None
    usable = (found.format, found.feelstream, found.run_format) == (FORMAT, __version__, RUN_FORMAT)
    in_range = all(
        entry.about < len(found.abouts) and entry.columns < len(found.columns) for entry in found.runs.values()
    )
    return found if usable and in_range else None
