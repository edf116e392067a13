"""Every curve of the paper's figures as a table: mean and 95 % band over seeds, by panel, arm and round."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from feelstream.experiment.paper import PaperFigure
from feelstream.experiment.statistics import band_by_round
from feelstream.run.files import write_atomically

CURVES: dict[str, pl.DataType] = {
    "panel": pl.String(),
    "quantity": pl.String(),
    "arm": pl.String(),
    "round": pl.Int32(),
    "mean": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "n": pl.Int32(),
}


def curves(figures: Sequence[PaperFigure], rounds: pl.DataFrame) -> pl.DataFrame:
    """The curves of all panels whose quantity was measured, in the units of the rounds table."""
    tables = [pl.DataFrame(schema=CURVES)]
    for figure in figures:
        for panel in figure.panels:
            arms = [curve.arm for curve in panel.curves]
            shown = band_by_round(rounds.filter(pl.col("arm").is_in(arms)), panel.quantity)
            names = (pl.lit(panel.key).alias("panel"), pl.lit(panel.quantity).alias("quantity"))
            tables.append(shown.with_columns(*names).select(pl.col(name).cast(kind) for name, kind in CURVES.items()))
    return pl.concat(tables)


def save(table: pl.DataFrame, directory: Path) -> list[Path]:
    """curves.csv and curves.parquet."""
    csv, parquet = directory / "curves.csv", directory / "curves.parquet"
    write_atomically(csv, table.write_csv)
    write_atomically(parquet, table.write_parquet)
    return [csv, parquet]
