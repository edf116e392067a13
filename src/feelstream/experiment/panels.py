"""Figures of a paper as data: which arms each panel shows, and every curve as a table by panel, arm and round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

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


@dataclass(frozen=True)
class Curve:
    """One line of a panel: an arm of the plan, and what the legend calls it."""

    arm: str
    name: str


@dataclass(frozen=True)
class Panel:
    """One panel of a figure: a quantity by round, for several arms.

    Attributes:
        key: Number of the figure and letter, "1a"; what may follow is not shown: "1a-with-data".
        setting: The data, in words.
        quantity: A column of the rounds table.
        curves: One for each arm.
    """

    key: str
    setting: str
    quantity: str
    curves: tuple[Curve, ...]

    @property
    def letter(self) -> str:
        return self.key.lstrip("0123456789")[:1]


@dataclass(frozen=True)
class PanelFigure:
    """A figure of a paper: its panels share a legend.

    Attributes:
        key: As files are called: "fig1".
        title: "Figure 1".
        caption: What stands under it.
        panels: From left to right.
    """

    key: str
    title: str
    caption: str
    panels: tuple[Panel, ...]


def curves(figures: Sequence[PanelFigure], rounds: pl.DataFrame) -> pl.DataFrame:
    """Mean and 95 % band over seeds of all panels whose quantity was measured, in the units of the rounds table."""
    tables = [pl.DataFrame(schema=CURVES)]
    for figure in figures:
        for panel in figure.panels:
            arms = [curve.arm for curve in panel.curves]
            shown = band_by_round(rounds.filter(pl.col("arm").is_in(arms)), panel.quantity)
            names = (pl.lit(panel.key).alias("panel"), pl.lit(panel.quantity).alias("quantity"))
            tables.append(shown.with_columns(*names).select(pl.col(name).cast(kind) for name, kind in CURVES.items()))
    return pl.concat(tables)


def save_curves(table: pl.DataFrame, directory: Path) -> list[Path]:
    """curves.csv and curves.parquet."""
    csv, parquet = directory / "curves.csv", directory / "curves.parquet"
    write_atomically(csv, table.write_csv)
    write_atomically(parquet, table.write_parquet)
    return [csv, parquet]
