"""The table of the confirmation: a row per run, by settings, reading of fresh data, arm and seed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from feelstream.studies.hu2023 import stored

KEY = ("settings", "fresh", "arm", "seed")
COLUMNS = (*KEY, *stored.CURVES, "empty_slots")
ANY = "any"  # of `fresh`: random looks at none
Key = tuple[str, str, str, int]


def is_blind(label: str) -> bool:
    """Whether an arm's policy never looks at fresh data."""
    return " random " in label


def key(settings: str, fresh: str, label: str, seed: int) -> Key:
    return settings, ANY if is_blind(label) else fresh, label, seed


def row(key: Key, rounds: pl.DataFrame, empty: float | None) -> dict[str, object]:
    """A row of the table from the rounds of one run."""
    own = dict(zip(KEY, key, strict=True)) | stored.curves_of(rounds)
    return own | {"empty_slots": None if empty is None else round(empty, 4)}


def read(path: Path) -> pl.DataFrame:
    return stored.read(path, COLUMNS)


def keys(table: pl.DataFrame) -> set[Key]:
    return set(table.select(KEY).iter_rows())


def add(path: Path, rows: Iterable[dict[str, object]]) -> pl.DataFrame:
    return stored.add(path, rows, COLUMNS, KEY)


def rounds_of(table: pl.DataFrame, settings: str, fresh: str) -> pl.DataFrame:
    """The curves of one specification as the rows of all its runs."""
    return stored.long(table.filter(pl.col("settings") == settings, pl.col("fresh").is_in([fresh, ANY])))
