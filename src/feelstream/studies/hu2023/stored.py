"""Small tables of runs: a row per run, with its curves where the model was tested.

They are kept in the repository, so that pages are made again in seconds and a search goes on from them on any machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from feelstream.run.files import write_atomically

CURVES = ("rounds", "accuracy", "loss", "energy_mj")


def curves_of(rounds: pl.DataFrame) -> dict[str, object]:
    """The curves of one run as texts: four digits each, in the rounds that were tested."""
    tested = rounds.drop_nulls("accuracy")
    return {
        "rounds": _joined(tested["round"], "d"), "accuracy": _joined(tested["accuracy"], ".4f"),
        "loss": _joined(tested["loss"], ".4f"), "energy_mj": _joined(1e3 * tested["energy_mean_cum_j"], ".4g"),
    }  # fmt: skip


def _joined(values: Iterable[float], form: str) -> str:
    return " ".join(format(value, form) for value in values)


def read(path: Path, columns: Sequence[str]) -> pl.DataFrame:
    """The table; empty where there is no file yet."""
    kinds = dict.fromkeys(columns, pl.String) | {"seed": pl.Int64}
    kinds |= {name: pl.Float64 for name in columns if name == "empty_slots"}
    return pl.read_csv(path, schema=kinds) if path.is_file() else pl.DataFrame(schema=kinds)


def add(path: Path, rows: Iterable[dict[str, object]], columns: Sequence[str], key: Sequence[str]) -> pl.DataFrame:
    """Write the table with more rows, in a fixed order, whatever order they were made in."""
    before = read(path, columns)
    after = pl.concat([before, pl.DataFrame(list(rows), schema=before.schema)]).unique(list(key), keep="last")
    after = after.sort(*key)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, after.write_csv)
    return after


def long(table: pl.DataFrame) -> pl.DataFrame:
    """The curves as rows, one per tested round: arm, seed, round and what was measured."""
    lists = [
        pl.col("rounds").str.split(" ").cast(pl.List(pl.Int32)).alias("round"),
        *(pl.col(name).str.split(" ").cast(pl.List(pl.Float64)) for name in ("accuracy", "loss")),
        pl.col("energy_mj").str.split(" ").cast(pl.List(pl.Float64)).alias("energy_mean_cum_j"),
    ]
    rows = table.select("arm", "seed", *lists).explode("round", "accuracy", "loss", "energy_mean_cum_j")
    return rows.with_columns(pl.col("energy_mean_cum_j") / 1e3)
