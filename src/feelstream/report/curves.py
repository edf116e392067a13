"""Every curve of the paper's figures as a table: mean and 95 % band over seeds, by panel, arm and round."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from feelstream.files import write_atomically
from feelstream.report.series import Series, series
from feelstream.reproduce import PaperFigure
from feelstream.statistics import interval

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


def band(values: Series) -> pl.DataFrame:
    """Columns round, mean, low, high, n; low and high are null where one seed gives no interval."""
    intervals = [interval(column) for column in values.values.T]
    return pl.DataFrame(
        {
            "round": pl.Series(values.rounds, dtype=pl.Int32),
            "mean": [found.mean for found in intervals],
            "low": [found.low if np.isfinite(found.low) else None for found in intervals],
            "high": [found.high if np.isfinite(found.high) else None for found in intervals],
            "n": pl.Series([found.n for found in intervals], dtype=pl.Int32),
        },
        schema_overrides={"low": pl.Float64, "high": pl.Float64},
    )


def curves(figures: Sequence[PaperFigure], rounds: pl.DataFrame) -> pl.DataFrame:
    """The curves of all panels whose quantity was measured, in the units of the rounds table."""
    tables = [pl.DataFrame(schema=CURVES)]
    for figure in figures:
        for panel in figure.panels:
            for curve in panel.curves:
                found = series(rounds, curve.arm, panel.quantity)
                if found is not None:
                    names = {"panel": panel.key, "quantity": panel.quantity, "arm": curve.arm}
                    columns = [pl.lit(value).alias(name) for name, value in names.items()]
                    tables.append(band(found).with_columns(columns).select(list(CURVES)))
    return pl.concat(tables)


def save(table: pl.DataFrame, directory: Path) -> list[Path]:
    """curves.csv and curves.parquet."""
    csv, parquet = directory / "curves.csv", directory / "curves.parquet"
    write_atomically(csv, table.write_csv)
    write_atomically(parquet, table.write_parquet)
    return [csv, parquet]
