"""Repeat a stored run and compare: the one check that also covers the draws, the accuracy and a user's policy."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from feelstream.errors import RunError
from feelstream.loop.changes import from_list
from feelstream.run.files import read_table
from feelstream.run.manifest import Manifest, check_same_run
from feelstream.run.play import Progress, simulate_in
from feelstream.run.run import read_stored
from feelstream.scenario import Scenario
from feelstream.scenario.files import from_dict


@dataclass(frozen=True)
class Replay:
    """What came of it: a sentence for the first difference, None if all tables are the same bytes."""

    path: str
    tables: list[str]  # that were compared
    difference: str | None

    @property
    def ok(self) -> bool:
        return self.difference is None

    def as_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, "tables": self.tables, "difference": self.difference}

    def __str__(self) -> str:
        if self.difference is None:
            return f"{self.path}: repeated, and {' and '.join(self.tables)} are the same bytes"
        return f"{self.path}: repeated, and it DIFFERS: {self.difference}"


def replay(
    directory: str | Path,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    begin: Callable[[Scenario], None] | None = None,
) -> Replay:
    """Repeat the run in `directory`, elsewhere, and compare the bytes of its tables.

    This runs the code that run.json names: a policy, metric, model or data set of the user's own.
    """
    path = Path(directory)
    manifest = Manifest.of_finished(path)
    if "deployed" in manifest.facts:
        raise RunError(f"{path} holds a run of real devices, which cannot be repeated")
    stored = {name: read_stored(path, name, manifest) for name in manifest.digests if name.endswith(".parquet")}
    scenario = from_dict(manifest.scenario)
    changes = from_list(manifest.as_dict().get("changes", ()))
    if begin:
        begin(scenario)
    with tempfile.TemporaryDirectory(prefix="feelstream-") as elsewhere:
        again = simulate_in(
            elsewhere, scenario, manifest.seed, changes=changes, threads=threads, progress=progress
        ).manifest
        for name, rows in stored.items():
            if again.digests.get(name) != manifest.digests[name]:
                there = _first_difference(name, rows, read_table(Path(elsewhere) / name))
                return Replay(str(path), list(stored), f"{there}{_other_conditions(path, manifest, again)}")
    return Replay(str(path), list(stored), None)


def _first_difference(name: str, stored: pl.DataFrame, again: pl.DataFrame) -> str:
    if stored.schema != again.schema or stored.height != again.height:
        return f"{name} has other columns or rows"
    for column in stored.columns:
        same = stored[column].eq_missing(again[column])
        if not same.all():
            row = int((~same).arg_true()[0])
            who = {key: stored[key][row] for key in ("round", "device") if key in stored.columns}
            where = ", ".join(f"{key} {value}" for key, value in who.items())
            return f"{name}, {where}, {column}: stored {stored[column][row]!r}, now {again[column][row]!r}"
    return f"{name} has the same values in other bytes"


def _other_conditions(path: Path, stored: Manifest, again: Manifest) -> str:
    """Another engine, data set or release explains a difference, and is no proof of damage."""
    try:
        check_same_run(path, stored, again.as_dict())
    except RunError as problem:
        return f" (but {str(problem).partition(';')[0]})"
    return ""
