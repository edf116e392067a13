"""Values that were recorded: a table of (round, device, value), read once and looked up by round."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from feelstream.arrays import Ids, Reals
from feelstream.errors import ScenarioError


@dataclass(frozen=True)
class Recorded:
    """All rows in order of rounds; `starts[t]` is the first row of round t."""

    devices: Ids
    values: Reals
    starts: Ids

    def of(self, round: int) -> tuple[Ids, Reals]:
        """The devices that have a row in this round, and their values."""
        if round + 1 >= len(self.starts):
            return self.devices[:0], self.values[:0]
        rows = slice(self.starts[round], self.starts[round + 1])
        return self.devices[rows], self.values[rows]


def values_by_round(field: str, path: Path, column: str, devices: int) -> Recorded:
    """The table of a .csv or .parquet file with the columns round, device and `column`."""
    try:
        changed = path.stat().st_mtime_ns
    except OSError as problem:
        raise ScenarioError(f"{field}: cannot read {path}: {problem.strerror}") from problem
    return _read(field, path, column, devices, changed)


@lru_cache(maxsize=8)
def _read(field: str, path: Path, column: str, devices: int, changed_ns: int) -> Recorded:
    rows = read_columns(field, path, {"round": pl.Int64, "device": pl.Int64, column: pl.Float64})
    round, device = rows["round"].to_numpy(), rows["device"].to_numpy()
    values = rows[column].to_numpy()
    if (round < 1).any() or (device < 0).any() or (device >= devices).any():
        raise ScenarioError(f"{field}: {path} must have rounds from 1 and devices from 0 to {devices - 1}")
    if not np.isfinite(values).all():
        raise ScenarioError(f"{field}: {path} holds a {column} that is not a finite number")
    order = np.argsort(round, kind="stable")
    last = int(round.max(initial=0))
    starts = np.searchsorted(round[order], np.arange(last + 2))
    return Recorded(device[order], values[order], starts.astype(np.int64))


def read_columns(field: str, path: Path, columns: dict[str, type[pl.DataType]]) -> pl.DataFrame:
    """Columns of a .csv or .parquet file, without missing values, or a ScenarioError that names the field."""
    try:
        table = pl.read_parquet(path, glob=False) if path.suffix == ".parquet" else pl.read_csv(path, glob=False)
        missing = [name for name in columns if name not in table.columns]
        if missing:
            raise ScenarioError(f"{field}: {path} lacks the column {missing[0]}")
        chosen = table.select([pl.col(name).cast(kind, strict=True) for name, kind in columns.items()])
    except ScenarioError:
        raise
    except (OSError, pl.exceptions.PolarsError) as problem:
        why = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        raise ScenarioError(f"{field}: cannot read {path} as a table: {why}") from problem
    if any(count for count in chosen.null_count().row(0)):
        raise ScenarioError(f"{field}: {path} has missing values")
    return chosen
