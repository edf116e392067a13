"""Reads the Parquet files of a run into arrays [rounds] and, block by block, [rounds, devices]."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from feelstream.columns import (
    COUNTS,
    DEVICE_COLUMNS,
    OUR_EVALUATORS,
    REAL,
    ROUND_COLUMNS,
    TRUTH,
    Column,
    columns_of,
    spent_j,
)
from feelstream.errors import RunError
from feelstream.verification.findings import Array
from feelstream.verification.stored import StoredSettings

# What a column of each type must hold, as what it is read, and what stands for a missing value.
READ: dict[Any, tuple[str, Any, Any]] = {
    **dict.fromkeys((pl.Int32(), pl.Int64()), ("whole numbers", pl.Int64, 0)),
    REAL: ("real numbers", pl.Float64, float("nan")),
    TRUTH: ("booleans", pl.Boolean, False),
    COUNTS: ("lists of whole numbers", None, None),
}
OF_THE_USER = Column(REAL, "", "a number of an evaluator of the user's own", "where not evaluated")
ESTIMATES = ("total", "weight", "waiting", "read")  # of each, replayed from block to block
TURNS = ("turns_delivered", "turns_failed", "turns_in_a_row", "rests_until")  # replayed, from block to block

# Rows held at a time, so that a run of any length needs bounded memory.
BLOCK_ROWS = 200_000


@dataclass(frozen=True)
class Table:
    """Columns of some rounds: values [R], [R, K] or [R, K, classes], and where they are null (NaN or 0)."""

    rounds: Array  # [R], what the round numbers must be
    values: dict[str, Array]
    nulls: dict[str, Array]

    def __getitem__(self, column: str) -> Array:
        return self.values[column]


@dataclass(frozen=True)
class Block(Table):
    """Some successive rounds of devices.parquet, and the last round before them."""

    last: dict[str, Array]  # [K] or [K, classes]

    @property
    def sent(self) -> Array:
        """Who used the band, whether the update arrived or was lost. [R, K]"""
        return self["transmitted"] | self["lost"]

    @property
    def energy_j(self) -> Array:
        """What each device spent in the round. [R, K]"""
        return spent_j(self.values)

    def before(self, column: str) -> Array:
        """The column one round earlier; before the first round everything is zero (β: its first value)."""
        return np.concatenate([self.last[column][None], self.values[column][:-1]])


def read_rounds(directory: Path, settings: StoredSettings) -> Table:
    """rounds.parquet as arrays [T]."""
    path = directory / "rounds.parquet"
    columns = columns_of(ROUND_COLUMNS, settings.facts)
    if "deployed" not in settings.facts and not set(settings.evaluators) <= {"test", *OUR_EVALUATORS}:
        columns |= {name: OF_THE_USER for name in _columns(path) if name not in ROUND_COLUMNS}
    _check_shape(path, columns, settings.T, f"{settings.T} rounds")
    frame = _load(path, 0, settings.T, list(columns))
    values, nulls = _arrays(path, frame, columns, (settings.T,))
    return Table(np.arange(1, settings.T + 1), values, nulls)


def read_blocks(directory: Path, settings: StoredSettings, phases: Iterable[int] = (1,)) -> Iterator[Block]:
    """devices.parquet in blocks of rounds, in order; a block ends where one of the phases begins."""
    path, K = directory / "devices.parquet", settings.K
    columns = columns_of(DEVICE_COLUMNS, settings.facts)
    usual = {"priority": settings.priority, "reliability": 1.0}  # what stands for a column that the run has not
    usual |= {
        name: False if column.kind == TRUTH else 0.0 for name, column in DEVICE_COLUMNS.items() if name not in usual
    }
    _check_shape(path, columns, settings.T * K, f"{settings.T} rounds of {K} devices")
    step = max(1, BLOCK_ROWS // K)
    last: dict[str, Array] | None = None
    starts = sorted({*range(0, settings.T, step), *(first - 1 for first in phases)})
    for start, end in pairwise([*starts, settings.T]):
        R = end - start
        frame = _load(path, start * K, R * K, list(columns))
        values, nulls = _arrays(path, frame, columns, (R, K), settings.classes)
        values = {name: np.broadcast_to(value, (R, K)) for name, value in usual.items()} | values
        if last is None:
            last = {name: np.zeros_like(column[0]) for name, column in values.items()}
            last["beta"] = values["beta"][0]
            last["battery_next_j"] = np.full(K, settings.around.start_j)
            last |= {name: np.zeros(K) for name in TURNS}
            last["tried"] = np.zeros(K)
            for name in ("t", "e"):
                last |= {f"{name}_total": np.zeros(K), f"{name}_weight": np.zeros(K)}
                last |= {f"{name}_waiting": np.full(K, np.nan), f"{name}_read": np.full(K, -np.inf)}
            last["report_age"] = np.full(K, -1 if "deployed" in settings.facts else 0)
        lists = [name for name, column in columns.items() if column.kind == COUNTS]
        if any(values[name].shape[2:] != last[name].shape[1:] for name in lists):
            raise RunError(f"{path}: the label lists do not all have one length.")
        yield Block(np.arange(start + 1, start + R + 1), values, nulls, last)
        last = {name: column[-1] for name, column in values.items()}


def _columns(path: Path) -> list[str]:
    try:
        return pl.scan_parquet(path, glob=False).collect_schema().names()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return []  # what is wrong with the file is said where it is read


def _check_shape(path: Path, columns: dict[str, Column], rows: int, meaning: str) -> None:
    if not path.is_file():
        raise RunError(f"{path.parent} is not a whole run: {path.name} is missing.")
    try:
        table = pl.scan_parquet(path, glob=False)  # a path may hold [ or *
        schema, found = table.collect_schema(), table.select(pl.len()).collect().item()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        raise RunError(f"{path} is damaged: it cannot be read as a Parquet file.") from None
    for name, column in columns.items():
        if name not in schema:
            raise RunError(f"{path} lacks the column {name}.")
        if not _is_kind(schema[name], column.kind) and not (column.may_be_null and schema[name] == pl.Null):
            raise RunError(f"{path}: the column {name} must hold {READ[column.kind][0]}, not {schema[name]}.")
    if found != rows:
        raise RunError(f"{path} has {found} rows, but {meaning} need {rows}.")


def _is_kind(dtype: pl.DataType, kind: pl.DataType) -> bool:
    if kind == COUNTS:
        return isinstance(dtype, pl.List | pl.Array) and dtype.inner.is_integer()
    return dtype.is_integer() if kind.is_integer() else dtype.is_float() if kind == REAL else dtype == kind


def _load(path: Path, start: int, rows: int, columns: list[str]) -> pl.DataFrame:
    try:
        return pl.scan_parquet(path, glob=False).slice(start, rows).select(columns).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        raise RunError(f"{path} is damaged: its rows cannot be read.") from None


def _arrays(
    path: Path,
    frame: pl.DataFrame,
    columns: dict[str, Column],
    shape: tuple[int, ...],
    classes: int | None = None,
) -> tuple[dict[str, Array], dict[str, Array]]:
    values: dict[str, Array] = {}
    nulls: dict[str, Array] = {}
    for name, column in columns.items():
        series = frame[name]
        some = series.null_count() > 0  # most columns lack nothing, and to ask for nulls or fill them is a query each
        nulls[name] = series.is_null().to_numpy().reshape(shape) if some else np.zeros(shape, bool)
        if column.kind == COUNTS:
            values[name] = _label_counts(path, series, classes).reshape(*shape, -1)
            continue
        _, dtype, missing = READ[column.kind]
        series = series.cast(dtype)
        values[name] = (series.fill_null(missing) if some else series).to_numpy().reshape(shape)
    return values, nulls


def _label_counts(path: Path, series: pl.Series, classes: int | None) -> Array:
    """A column of equally long lists as one flat array; a missing count reads as −1, which no rule allows."""
    lists = series.cast(pl.List(pl.Int64))
    lengths = lists.list.len()
    wanted = classes if classes is not None else lengths.max()
    if wanted == 0 or lists.null_count() or (lengths.to_numpy() != wanted).any():
        raise RunError(f"{path}: every list in the column {series.name} must have one entry per class ({wanted}).")
    counts = lists.explode()
    return (counts.fill_null(-1) if counts.null_count() else counts).to_numpy()
