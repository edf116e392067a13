"""Figures of a paper as data: which arms each panel shows, and every curve as a table by panel, arm and round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from feelstream.experiment.statistics import band_by_round


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
    """Columns panel, quantity, arm, round, mean, low, high, n: mean and 95 % band over seeds of all panels whose
    quantity was measured, in the units of the rounds table.
    """
    tables = []
    for panel in (panel for figure in figures for panel in figure.panels):
        shown = band_by_round(rounds.filter(pl.col("arm").is_in([curve.arm for curve in panel.curves])), panel.quantity)
        tables.append(
            shown.select(pl.lit(panel.key).alias("panel"), pl.lit(panel.quantity).alias("quantity"), pl.all())
        )
    return pl.concat(tables)
