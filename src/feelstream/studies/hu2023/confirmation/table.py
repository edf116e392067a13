"""One small table of all runs: a row per run, with its curves where it was tested.

It is kept in the repository, so that pages are made again in seconds and a search goes on from it on any machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from feelstream.run.files import write_atomically

COLUMNS = ("settings", "fresh", "arm", "seed", "rounds", "accuracy", "loss", "energy_mj", "empty_slots")
ANY = "any"  # of `fresh`: random looks at none
Key = tuple[str, str, str, int]


def is_blind(label: str) -> bool:
    """Whether an arm's policy never looks at fresh data."""
    return " random " in label


def key(settings: str, fresh: str, label: str, seed: int) -> Key:
    return settings, ANY if is_blind(label) else fresh, label, seed


def row(key: Key, rounds: pl.DataFrame, empty: float | None) -> dict[str, object]:
    """A row of the table from the rounds of one run: four digits of each curve, in the rounds that were tested."""
    tested = rounds.drop_nulls("accuracy")
    settings, fresh, label, seed = key
    return {
        "settings": settings, "fresh": fresh, "arm": label, "seed": seed,
        "rounds": _joined(tested["round"], "d"), "accuracy": _joined(tested["accuracy"], ".4f"),
        "loss": _joined(tested["loss"], ".4f"), "energy_mj": _joined(1e3 * tested["energy_mean_cum_j"], ".4g"),
        "empty_slots": None if empty is None else round(empty, 4),
    }  # fmt: skip


def _joined(values: Iterable[float], form: str) -> str:
    return " ".join(format(value, form) for value in values)


def read(path: Path) -> pl.DataFrame:
    """The table; empty where there is no file yet."""
    kinds = dict.fromkeys(COLUMNS, pl.String) | {"seed": pl.Int64, "empty_slots": pl.Float64}
    return pl.read_csv(path, schema=kinds) if path.is_file() else pl.DataFrame(schema=kinds)


def keys(table: pl.DataFrame) -> set[Key]:
    return set(table.select("settings", "fresh", "arm", "seed").iter_rows())


def add(path: Path, rows: Iterable[dict[str, object]]) -> pl.DataFrame:
    """Write the table with more rows, in a fixed order, whatever order they were made in."""
    before = read(path)
    after = pl.concat([before, pl.DataFrame(list(rows), schema=before.schema)]).unique(
        ["settings", "fresh", "arm", "seed"], keep="last"
    )
    after = after.sort("settings", "fresh", "arm", "seed")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, after.write_csv)
    return after


def rounds_of(table: pl.DataFrame, settings: str, fresh: str) -> pl.DataFrame:
    """The curves of one specification as the rows of all its runs: arm, seed, round and what was measured."""
    own = table.filter(pl.col("settings") == settings, pl.col("fresh").is_in([fresh, ANY]))
    lists = [
        pl.col("rounds").str.split(" ").cast(pl.List(pl.Int32)).alias("round"),
        *(pl.col(name).str.split(" ").cast(pl.List(pl.Float64)) for name in ("accuracy", "loss")),
        pl.col("energy_mj").str.split(" ").cast(pl.List(pl.Float64)).alias("energy_mean_cum_j"),
    ]
    long = own.select("arm", "seed", *lists).explode("round", "accuracy", "loss", "energy_mean_cum_j")
    return long.with_columns(pl.col("energy_mean_cum_j") / 1e3)
