"""One reader for all tables that a scenario names: arrivals, frequencies, availability, devices.

Their origin is unknown, so nothing in them is believed: a column has the kind and the range that are asked for, or a
sentence says which does not. A Parquet file is parsed in a process of its own, since one wrong byte in it can end the
process that does.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from math import inf
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from feelstream import code
from feelstream.errors import ScenarioError

MOST_ROUNDS = 2**31 - 1
# From one pipe to another: the bytes that are parsed are those that were hashed. -c would put the working directory,
# where anything may lie, first among the places to import from; -P does not.
PARSER = "import io, sys, polars; polars.read_parquet(io.BytesIO(sys.stdin.buffer.read())).write_ipc(sys.stdout.buffer)"
UNREADABLE = (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException)


@dataclass(frozen=True)
class Wanted:
    """What a column must hold: numbers from least to most, whole ones or any that are finite."""

    name: str
    least: float = -inf
    most: float = inf
    whole: bool = False

    @property
    def allowed(self) -> str:
        if self.least == -inf:
            return "a finite number"
        return f"{self.least:.15g} or more" if self.most == inf else f"{self.least:.15g} to {self.most:.15g}"


class TableFile:
    """A .csv, .jsonl or .parquet file as it was read. Problems are ScenarioErrors that begin with the field's name."""

    def __init__(self, field: str, path: str | Path) -> None:
        self.field, self.path = field, Path(path)
        if self.path.suffix.lower() not in (".csv", ".jsonl", ".parquet"):
            raise self.problem("must end in .csv, .jsonl or .parquet")
        if not self.path.is_file():
            raise self.problem("is not a file; give a CSV, JSON Lines or Parquet file")
        try:
            content, self.digest = code.read(self.path)
        except (OSError, ValueError) as problem:
            raise self.problem(f"cannot be read: {getattr(problem, 'strerror', None) or problem}") from problem
        kind = self.path.suffix.lower()[1:]
        try:
            self.table = _parsed(kind, content)
        except UNREADABLE as problem:
            why = next(iter(str(problem).strip().splitlines()), type(problem).__name__)
            raise self.problem(f"cannot be read as {kind}: {why}") from problem

    def problem(self, what: str) -> ScenarioError:
        return ScenarioError(f"{self.field}: {self.path} {what}")

    def columns(self, wanted: Sequence[Wanted]) -> list[NDArray]:
        """The values of each, int64 or float64 (rows,), in the order of the file."""
        for column in wanted:
            if column.name not in self.table.columns:
                needed = ", ".join(each.name for each in wanted)
                raise self.problem(f"has no column {column.name}; it needs {needed}")
        return [self._column(column) for column in wanted]

    def _column(self, column: Wanted) -> NDArray:
        given, name = self.table[column.name], column.name
        if not len(given):  # without rows a column has no type; that is a legal, if quiet, table
            return np.zeros(0, np.int64 if column.whole else np.float64)
        if given.null_count():
            raise self.problem(f"has empty cells in the column {name}; every row needs a number")
        if not (given.dtype.is_numeric() or given.dtype == pl.Boolean):
            raise self.problem(f"must hold numbers in the column {name}, not {given.dtype}")
        values = given.cast(pl.Float64).to_numpy()
        wrong = ~(np.isfinite(values) & (values >= column.least) & (values <= column.most))
        if wrong.any():
            row = int(wrong.argmax())
            raise self.problem(f"says {name} {given[row]} in row {row + 1}; it must be {column.allowed}")
        if column.whole and not (values == np.floor(values)).all():
            raise self.problem(f"must hold whole numbers in the column {name}")
        return given.cast(pl.Int64).to_numpy() if column.whole else values


@lru_cache(maxsize=8)  # a process that plays many runs parses the same bytes once
def _parsed(kind: str, content: bytes) -> pl.DataFrame:
    read = {"csv": pl.read_csv, "jsonl": pl.read_ndjson}.get(kind)
    return read(BytesIO(content), infer_schema_length=None) if read else _parsed_elsewhere(content)


def _parsed_elsewhere(content: bytes) -> pl.DataFrame:
    parser = subprocess.run([sys.executable, "-P", "-c", PARSER], input=content, capture_output=True, check=False)
    if parser.returncode:
        raise OSError("it is damaged")
    return pl.read_ipc(BytesIO(parser.stdout))
