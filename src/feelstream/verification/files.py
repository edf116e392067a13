"""Reads the files of a run: run.json and its seal, the constants, and the tables as arrays, block by block.

Nothing parses a table before its SHA-256 was found to be the one that run.json states.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import BaseModel, ValidationError

from feelstream.columns import (
    BUDGET,
    CONSTANT_COLUMNS,
    CONSTANTS,
    COUNTS,
    FORMAT,
    REAL,
    TRUTH,
    Column,
    budget_column,
    constant_columns,
)
from feelstream.errors import RunError
from feelstream.resolved import Resolved
from feelstream.verification.findings import Array

SEAL = "sha256"  # the field of run.json that holds the SHA-256 of all others
DAMAGE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
# What a column of each type must hold, as what it is read, and what stands for a missing value.
READ: dict[Any, tuple[str, Any, Any]] = {
    **dict.fromkeys((pl.Int32(), pl.Int64()), ("whole numbers", pl.Int64, 0)),
    REAL: ("real numbers", pl.Float64, float("nan")),
    TRUTH: ("booleans", pl.Boolean, False),
    COUNTS: ("lists of whole numbers", None, None),
    pl.String(): ("texts", pl.String, ""),
}
HAVE_ARRAYS = {"stream", "devices", "classes"}  # evaluators of ours
BLOCK_ROWS = 200_000  # rows held at a time, so that a run of any length needs bounded memory

Read = tuple[dict[str, Array], dict[str, Array]]  # values, and where they are null, by name


class About(BaseModel):
    """What a re-check needs of run.json."""

    resolved: Resolved
    facts: frozenset[str]
    engine: dict[str, Any]
    digests: dict[str, str]
    sha256: str  # of all other fields


@dataclass(frozen=True)
class Stored:
    """What run.json says, and the constants of the devices [K]."""

    directory: Path
    run: Resolved
    facts: frozenset[str]
    constants: Mapping[str, Array]
    files: int  # that were compared with their SHA-256


def read_run(directory: Path) -> Stored:
    """run.json of a complete run whose files are all there and whole; RunError says in one sentence what is not."""
    path = directory / "run.json"
    if not directory.is_dir():
        raise RunError(f"{directory} is not a run directory: there is no such directory.")
    tree = _read_sealed(path)
    for name, wanted, meaning in (
        ("format", FORMAT, f"this version can verify only format {FORMAT}"),
        ("status", "complete", "a run that is not complete can only be finished"),
    ):
        if not isinstance(tree, dict) or name not in tree:
            raise RunError(f"run.json lacks {name}, without which the run cannot be verified.")
        if tree[name] != wanted:
            raise RunError(f"{path} has {name} {tree[name]!r:.40}, and {meaning}.")
    try:
        about = About.model_validate(tree)
    except ValidationError as problem:
        first = problem.errors()[0]
        where, said = ".".join(map(str, first["loc"])), first["msg"]
        raise RunError(f"run.json: {where}: {said[:1].lower()}{said[1:]}.") from None
    run, deployed = about.resolved, about.engine.get("name") == "flower"
    firsts = [phase.first for phase in run.phases]
    if firsts[0] != 1 or firsts != sorted(set(firsts)) or firsts[-1] > run.rounds:
        raise RunError(f"run.json: resolved.phases must begin in round 1 and be in order, not in rounds {firsts}.")
    _check_digests(directory, about.digests, _tables(run, deployed))
    constants = _constants(directory, run)
    _check_facts(run, about.facts, deployed, bool((constants["download_s"] > 0).any()))
    return Stored(directory, run, about.facts, constants, 1 + len(about.digests))


def _read_sealed(path: Path) -> Any:
    """run.json, which must have the SHA-256 that it states: that of its fields, sorted and written without spaces."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        fields = {name: value for name, value in tree.items() if name != SEAL} if isinstance(tree, dict) else tree
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    except FileNotFoundError:
        raise RunError(f"{path.parent} is not a run directory: it has no run.json.") from None
    except (OSError, ValueError, RecursionError):
        raise RunError(f"{path} is damaged: it cannot be read as JSON.") from None
    if isinstance(tree, dict) and SEAL in tree and tree[SEAL] != hashlib.sha256(text.encode()).hexdigest():
        raise RunError(f"{path} is damaged: its contents do not have the SHA-256 that it states.")
    return tree


def _tables(run: Resolved, deployed: bool) -> list[str]:
    """Those that the run must have; with an evaluator of the user's own it may have arrays in any case."""
    full, learning = run.trace == "full", run.learning
    differ = run.alike.keys() | {"device", BUDGET} != CONSTANT_COLUMNS.keys()
    wanted = {
        "rounds.parquet": True,
        "devices.parquet": full,
        "evaluations.parquet": full and learning.learns and not deployed and HAVE_ARRAYS & {*learning.evaluators},
        CONSTANTS: differ or any(phase.energy_budget_j is None for phase in run.phases),
    }
    return [name for name, must_be in wanted.items() if must_be]


def _check_digests(directory: Path, digests: Mapping[str, str], tables: list[str]) -> None:
    """Compare every file that run.json lists, `tables` among them, with its SHA-256."""
    for name in tables:
        if name not in digests:
            raise RunError(f"run.json lacks the SHA-256 of {name}, without which the run cannot be verified.")
    for name, wanted in digests.items():
        path = directory / name
        if Path(name).name != name or not path.is_file():
            raise RunError(f"{directory} is not a whole run: {name} is missing.")
        try:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as problem:
            raise RunError(f"{path} cannot be read: {problem.strerror}.") from None
        if found != wanted:
            raise RunError(f"{path} is damaged or was changed: its SHA-256 is not the one in run.json.")


def _check_facts(run: Resolved, facts: frozenset[str], deployed: bool, downloads: bool) -> None:
    """No run may state what its numbers do not say: then it would be held to other rules."""
    by_numbers = {
        "packet_errors": run.radio.block_bits > 0,
        "own_costs": "costs.rule" in run.own,
        "downloads": downloads or "costs.rule" in run.own,
        "asks": run.slot is not None,
        "features": run.features is not None and not deployed,  # there they are counted as labels are
        "fallible": "fallible" in facts and (deployed or run.world.fails),  # it may also be ignored
        "batteries": not deployed and (run.world.battery_j is not None or "batteries" in facts),  # unknown of some
        "deployed": deployed,
    }
    for name, holds in by_numbers.items():
        if holds != (name in facts):
            raise RunError(f"run.json: by its settings '{name}' {'belongs' if holds else 'does not belong'} to facts.")


def _constants(directory: Path, run: Resolved) -> dict[str, Array]:
    """Of every device [K], by column: from the table where devices differ, else the number that they share."""
    K, path, columns = run.devices, directory / CONSTANTS, constant_columns(phase.first for phase in run.phases)
    budgets = {budget_column(phase.first): phase.energy_budget_j for phase in run.phases}
    alike = run.alike | {name: value for name, value in budgets.items() if value is not None}
    found: dict[str, Array] = {}
    if names := columns.keys() - {"device", *alike}:
        differing = {name: columns[name] for name in ("device", *sorted(names))}
        check_shape(path, differing, K, f"{K} devices")
        found, nulls = arrays(path, 0, differing, (K,))
        if any(null.any() for null in nulls.values()) or (found.pop("device") != np.arange(K)).any():
            raise RunError(f"{path} must have a row for every device in order, and no value missing.")
    found |= {name: np.broadcast_to(np.float64(value), K) for name, value in alike.items()}
    for name, values in found.items():
        least, most = columns[name].range
        right = (values >= least) & (values <= (max(len(run.law.cores) - 1, 0) if name == "core" else most))
        if not right.all():
            wrong = int(np.argmin(right))
            raise RunError(f"run.json: the constant {name} of device {wrong} cannot be {values[wrong]}.")
    return found


def read_blocks(stored: Stored, columns: dict[str, Column]) -> Iterator[tuple[int, dict[str, Array], dict[str, Array]]]:
    """devices.parquet in blocks of rounds, in order: the first round, values and nulls [R, K].

    A block ends where a phase begins.
    """
    run, path = stored.run, stored.directory / "devices.parquet"
    K, T = run.devices, run.rounds
    check_shape(path, columns, T * K, f"{T} rounds of {K} devices")
    step = max(1, BLOCK_ROWS // K)
    starts = sorted({*range(0, T, step), *(phase.first - 1 for phase in run.phases)})
    of_features = {name for name in columns if name.endswith("_features")}
    lists = [name for name, column in columns.items() if column.kind == COUNTS]
    lengths = {name: run.features.size if run.features and name in of_features else run.data.classes for name in lists}
    for start, end in pairwise([*starts, T]):
        values, nulls = arrays(path, start * K, columns, (end - start, K), lengths)
        lengths = {name: values[name].shape[-1] for name in lists}
        if len({lengths[name] for name in lists if name not in of_features}) > 1:
            raise RunError(f"{path}: the label lists do not all have one length.")
        yield start + 1, values, nulls


def schema_of(path: Path) -> dict[str, pl.DataType]:
    try:
        return dict(pl.scan_parquet(path, glob=False).collect_schema())  # a path may hold [ or *
    except DAMAGE:
        raise RunError(f"{path} is damaged: it cannot be read as a Parquet file.") from None


def check_shape(path: Path, columns: Mapping[str, Column], rows: int, meaning: str) -> None:
    schema = schema_of(path)
    found = rows_of(path, pl.scan_parquet(path, glob=False).select(pl.len())).item()
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


def rows_of(path: Path, query: pl.LazyFrame) -> pl.DataFrame:
    try:
        return query.collect()
    except DAMAGE:
        raise RunError(f"{path} is damaged: its rows cannot be read.") from None


def arrays(
    path: Path,
    start: int,
    columns: Mapping[str, Column],
    shape: tuple[int, ...],
    lengths: Mapping[str, int | None] | None = None,
) -> Read:
    """Rows of a table from `start` on, as arrays of this shape. lengths: of the lists in a column, where known."""
    length = int(np.prod(shape))
    frame = rows_of(path, pl.scan_parquet(path, glob=False).slice(start, length).select(list(columns)))
    values: dict[str, Array] = {}
    nulls: dict[str, Array] = {}
    for name, column in columns.items():
        series = frame[name]
        some = series.null_count() > 0  # most columns lack nothing, and to ask for nulls or fill them is a query each
        nulls[name] = series.is_null().to_numpy().reshape(shape) if some else np.zeros(shape, bool)
        if column.kind == COUNTS:
            values[name] = _counts(path, series, (lengths or {}).get(name)).reshape(*shape, -1)
            continue
        _, dtype, missing = READ[column.kind]
        series = series.cast(dtype)
        values[name] = (series.fill_null(missing) if some else series).to_numpy().reshape(shape)
    return values, nulls


def _counts(path: Path, series: pl.Series, length: int | None) -> Array:
    """A column of equally long lists as one flat array; a missing count reads as −1, which no rule allows."""
    lists = series.cast(pl.List(pl.Int64))
    lengths = lists.list.len()
    wanted = length if length is not None else lengths.max()
    if wanted == 0 or lists.null_count() or (lengths.to_numpy() != wanted).any():
        raise RunError(f"{path}: every list in the column {series.name} must have {wanted} entries.")
    counts = lists.explode()
    return (counts.fill_null(-1) if counts.null_count() else counts).to_numpy()
