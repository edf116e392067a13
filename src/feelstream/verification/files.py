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
from pydantic import ValidationError

from feelstream.columns import COUNTS, FORMAT, REAL, TRUTH, Column
from feelstream.constants import BUDGET, CONSTANT_COLUMNS, TABLE, Resolved, budget_column
from feelstream.errors import RunError
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
BLOCK_ROWS = 200_000  # rows held at a time, so that a run of any length needs bounded memory

Columns = tuple[dict[str, Array], dict[str, Array]]  # values, and where they are null, by name


@dataclass(frozen=True)
class Stored:
    """What run.json says, and the constants of the devices [K]."""

    directory: Path
    run: Resolved
    facts: frozenset[str]
    constants: Mapping[str, Array]
    files: int  # that were compared with their SHA-256

    @property
    def deployed(self) -> bool:
        return "deployed" in self.facts


def read_run(directory: Path) -> Stored:
    """run.json of a complete run whose files are all there and whole; RunError says in one sentence what is not."""
    path = directory / "run.json"
    if not directory.is_dir():
        raise RunError(f"{directory} is not a run directory: there is no such directory.")
    about = _read_sealed(path)
    about = about if isinstance(about, dict) else {}
    for name, wanted, meaning in (
        ("format", FORMAT, f"this version can verify only format {FORMAT}"),
        ("status", "complete", "a run that is not complete can only be finished"),
    ):
        if name not in about:
            raise RunError(f"run.json lacks {name}, without which the run cannot be verified.")
        if about[name] != wanted:
            raise RunError(f"{path} has {name} {about[name]!r:.40}, and {meaning}.")
    try:
        run = Resolved.model_validate(about.get("resolved"))
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in ("resolved", *first["loc"]))
        raise RunError(f"run.json: {where}: {first['msg'][:1].lower()}{first['msg'][1:]}.") from None
    files = _check_digests(directory, about, _tables(run, about))
    firsts = [phase.first for phase in run.phases]
    if firsts[0] != 1 or firsts != sorted(set(firsts)) or firsts[-1] > run.rounds:
        raise RunError(f"run.json: resolved.phases must begin in round 1 and be in order, not in rounds {firsts}.")
    constants = _constants(directory, run)
    facts = about.get("facts")
    if not isinstance(facts, list) or not all(isinstance(fact, str) for fact in facts):
        raise RunError("run.json: facts must be a list of names.")
    engine = about.get("engine")
    deployed = isinstance(engine, dict) and engine.get("name") == "flower"
    _check_facts(run, frozenset(facts), deployed, bool((constants["download_s"] > 0).any()))
    return Stored(directory, run, frozenset(facts), constants, files)


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


def has_arrays(run: Resolved) -> bool:
    """Whether evaluators of ours must have left an evaluations.parquet; one of the user's own may have."""
    return (
        run.trace == "full"
        and run.learning.learns
        and bool({"stream", "devices", "classes"} & {*run.learning.evaluators})
    )


def _tables(run: Resolved, about: Mapping[str, Any]) -> list[str]:
    deployed = "deployed" in about.get("facts", ())
    wanted = {
        "rounds.parquet": True,
        "devices.parquet": run.trace == "full",
        "evaluations.parquet": has_arrays(run) and not deployed,
        TABLE: not run.alike.keys() >= CONSTANT_COLUMNS.keys() - {"device", BUDGET}
        or any(phase.energy_budget_j is None for phase in run.phases),
    }
    return [name for name, must_be in wanted.items() if must_be]


def _check_digests(directory: Path, about: Mapping[str, Any], tables: list[str]) -> int:
    """Compare every file that run.json lists, `tables` among them, with its SHA-256; how many, run.json included."""
    digests = about.get("digests")
    if SEAL not in about or not isinstance(digests, dict) or not digests.keys() >= set(tables):
        names = " and ".join(("run.json", *tables))
        raise RunError(f"run.json lacks the SHA-256 of {names}, without which the run cannot be verified.")
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
    return 1 + len(digests)


def _check_facts(run: Resolved, facts: frozenset[str], deployed: bool, downloads: bool) -> None:
    """No run may state what its numbers do not say: then it would be held to other rules."""
    by_numbers = {
        "packet_errors": run.radio.block_bits > 0,
        "own_costs": "costs.rule" in run.own,
        "downloads": downloads or "costs.rule" in run.own,
        "asks": run.slot is not None,
        "fallible": "fallible" in facts and (deployed or run.world.fails),  # it may also be ignored
        "batteries": not deployed and (run.world.battery_j is not None or "batteries" in facts),  # unknown of some
        "deployed": deployed,
    }
    for name, holds in by_numbers.items():
        if holds != (name in facts):
            raise RunError(f"run.json: by its settings '{name}' {'belongs' if holds else 'does not belong'} to facts.")


def _constants(directory: Path, run: Resolved) -> dict[str, Array]:
    """Of every device [K], by column: from the table where devices differ, else the number that they share."""
    K, path = run.devices, directory / TABLE
    budgets = {budget_column(phase.first): phase.energy_budget_j for phase in run.phases}
    alike = run.alike | {name: value for name, value in budgets.items() if value is not None}
    names = {*CONSTANT_COLUMNS, *budgets} - {"device", *alike}
    if unknown := sorted(run.alike.keys() - CONSTANT_COLUMNS.keys()):
        raise RunError(f"run.json: resolved.alike must be of known constants, not of {unknown[0]!r}.")
    found: dict[str, Array] = {}
    if names:
        columns = {name: CONSTANT_COLUMNS.get(name, CONSTANT_COLUMNS[BUDGET]) for name in ("device", *sorted(names))}
        check_shape(path, columns, K, f"{K} devices")
        found, nulls = arrays(path, 0, columns, (K,))
        if any(null.any() for null in nulls.values()) or (found.pop("device") != np.arange(K)).any():
            raise RunError(f"{path} must have a row for every device in order, and no value missing.")
    found |= {name: np.broadcast_to(np.float64(value), K) for name, value in alike.items()}
    for name, values in found.items():
        positive = name not in (BUDGET, *budgets, "download_s", "download_j", "core", "deadline_s")
        wrong = np.isnan(values) | (np.isinf(values) & (name != "power_max_w")) | (values <= 0 if positive else False)
        if wrong.any():
            raise RunError(
                f"run.json: the constant {name} of device {int(np.argmax(wrong))} cannot be {values[wrong][0]}."
            )
    cores = len(run.law.cores) if run.law.kind == "voltage" else 1
    if run.law.kind == "voltage" and not ((found["core"] >= 0) & (found["core"] < cores)).all():
        raise RunError(f"run.json: resolved.law has {cores} cores, and a device has another.")
    return found


def read_table(path: Path, columns: dict[str, Column], rows: int) -> Columns:
    """A whole table of so many rounds."""
    check_shape(path, columns, rows, f"{rows} rounds")
    return arrays(path, 0, columns, (rows,))


def read_blocks(stored: Stored, columns: dict[str, Column]) -> Iterator[tuple[int, dict[str, Array], dict[str, Array]]]:
    """devices.parquet in blocks of rounds, in order: the first round, values and nulls [R, K].

    A block ends where a phase begins.
    """
    run, path = stored.run, stored.directory / "devices.parquet"
    K, T = run.devices, run.rounds
    check_shape(path, columns, T * K, f"{T} rounds of {K} devices")
    step = max(1, BLOCK_ROWS // K)
    starts = sorted({*range(0, T, step), *(phase.first - 1 for phase in run.phases)})
    classes = run.data.classes
    for start, end in pairwise([*starts, T]):
        values, nulls = arrays(path, start * K, columns, (end - start, K), classes)
        lengths = {name: values[name].shape[-1] for name, column in columns.items() if column.kind == COUNTS}
        classes = classes or next(iter(lengths.values()))
        if set(lengths.values()) != {classes}:
            raise RunError(f"{path}: the label lists do not all have one length.")
        yield start + 1, values, nulls


def names_in(path: Path) -> list[str]:
    """The columns that a table has; none where it is damaged, which is said where it is read."""
    try:
        return pl.scan_parquet(path, glob=False).collect_schema().names()
    except DAMAGE:
        return []


def check_shape(path: Path, columns: Mapping[str, Column], rows: int, meaning: str) -> None:
    if not path.is_file():
        raise RunError(f"{path.parent} is not a whole run: {path.name} is missing.")
    try:
        table = pl.scan_parquet(path, glob=False)  # a path may hold [ or *
        schema, found = table.collect_schema(), table.select(pl.len()).collect().item()
    except DAMAGE:
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


def rows_of(path: Path, query: pl.LazyFrame) -> pl.DataFrame:
    try:
        return query.collect()
    except DAMAGE:
        raise RunError(f"{path} is damaged: its rows cannot be read.") from None


def arrays(
    path: Path, start: int, columns: Mapping[str, Column], shape: tuple[int, ...], classes: int | None = None
) -> Columns:
    """Rows of a table from `start` on, as arrays of this shape."""
    length = int(np.prod(shape))
    frame = rows_of(path, pl.scan_parquet(path, glob=False).slice(start, length).select(list(columns)))
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
