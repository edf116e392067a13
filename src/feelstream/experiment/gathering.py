"""The rounds of all runs of a plan in one table: from the index where it knows them, else from the runs' own files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from feelstream.experiment.index import LEAST_RUNS, Index, Known, Rows
from feelstream.quantities import introduce
from feelstream.run.trace import ROUNDS

Wanted = tuple[str, int, Path]  # label of the arm, seed, directory


def gather(
    runs: Sequence[Wanted], known: Mapping[Path, Known], index: Index | None, read: Callable[[Path], pl.DataFrame]
) -> pl.DataFrame:
    """Columns arm, seed and those of rounds.parquet, run after run in this order.

    known: what was found when the files were checked; rows come from the index only where it has these very files.
    read: the rows of one run from its own file. What is read becomes part of the index, where there are many runs.
    """
    if not runs:
        return pl.DataFrame(schema={"arm": pl.String(), "seed": pl.Int64(), **ROUNDS})
    distinct = list(dict.fromkeys(path for _, _, path in runs))  # arms may share a run
    rows, complete = _rows(distinct, known, index, read)
    columns = list(dict.fromkeys(column for path in distinct for column in rows.columns[path.name]))
    for own, path in {tuple(rows.columns[path.name]): path for path in distinct}.items():
        introduce(own, known[path].about if path in known else {})
    if index is not None and not complete and len(distinct) >= LEAST_RUNS and all(path in known for path in distinct):
        names = [path.name for path in distinct]
        kept = Rows(_taken(rows, names), {name: rows.first[name] for name in names}, rows.columns)
        index.write({path.name: known[path] for path in distinct}, kept)
    names = [path.name for _, _, path in runs]
    lengths = np.array([rows.first[name][1] for name in names])
    which = np.repeat(np.arange(len(runs)), lengths)
    arms = pl.Series("arm", [arm for arm, _, _ in runs], pl.String)[which]
    seeds = pl.Series("seed", [seed for _, seed, _ in runs], pl.Int64)[which]
    return pl.DataFrame([arms, seeds]).hstack(_taken(rows, names).select(columns)).rechunk()


def _rows(
    paths: Sequence[Path], known: Mapping[Path, Known], index: Index | None, read: Callable[[Path], pl.DataFrame]
) -> tuple[Rows, bool]:
    """The rows of these runs, and whether the index had them all."""
    there = index.rows() if index is not None and index.known else None
    theirs = index.known if index is not None and there is not None else {}
    # One object: `store.checked` found the files to be those of this entry.
    own = [path for path in paths if path not in known or theirs.get(path.name) is not known[path]]
    if there is not None and not own:
        return there, True
    tables = [read(path) for path in own]
    start = len(there.table) if there is not None else 0
    first = dict(there.first) if there is not None else {}
    columns = dict(there.columns) if there is not None else {}
    for path, table in zip(own, tables, strict=True):
        first[path.name], columns[path.name] = (start, len(table)), table.columns
        start += len(table)
    parts = [*([there.table] if there is not None else []), *tables]
    return Rows(pl.concat(parts, how="diagonal", rechunk=True), first, columns), False


def _taken(rows: Rows, names: Sequence[str]) -> pl.DataFrame:
    """The rows of these runs, in this order."""
    starts = np.array([rows.first[name][0] for name in names])
    lengths = np.array([rows.first[name][1] for name in names])
    ends = np.cumsum(lengths)
    numbers = np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)
    as_they_are = len(numbers) == len(rows.table) and np.array_equal(numbers, np.arange(len(numbers)))
    return rows.table if as_they_are else rows.table[numbers]
