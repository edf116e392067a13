"""Charts of results as figures for print, and the files that a report keeps of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from feelstream.display.chart import Chart
from feelstream.display.picture import COLUMN_WIDTH_IN, PANEL_HEIGHT_IN, PNG_DPI, Look, drawable, figure_of, styled
from feelstream.display.quantities import QUANTITIES
from feelstream.errors import RunError
from feelstream.experiment import Plan
from feelstream.experiment.measures import Point
from feelstream.experiment.panels import Panel, PanelFigure
from feelstream.experiment.statistics import per_run
from feelstream.experiment.tuning import Trade
from feelstream.report.charts import (
    curve_chart,
    ends_charts,
    group_chart,
    pareto_chart,
    trade_off_charts,
    varied_charts,
)
from feelstream.report.groups import Group, Varied, same_budget_j, varied
from feelstream.run.files import usable_directory, write_atomically

BY_ROUND = {"accuracy": "accuracy", "energy": "energy_mean_cum_j"}  # name of the file → column
AGAINST = ("late_accuracy", "energy_j")
ROW_IN, AROUND_IN = 0.19, 0.75  # of whole runs: height of a row, and of all that is not rows
PANEL = (COLUMN_WIDTH_IN, PANEL_HEIGHT_IN)

# No creation date in the files: the same results give the same bytes.
_METADATA: dict[str, dict[str, str | None]] = {
    "pdf": {"CreationDate": None, "Title": "feelstream"},
    "png": {"Software": None},
    "svg": {"Date": None},
}


def curve_figure(
    groups: Sequence[Group],
    rounds: pl.DataFrame,
    columns: Sequence[str],
    budget_j: float | None,
    look: Look | None = None,
) -> Figure:
    """A row of panels for each group of arms, a column for each quantity. look: the user's, or a paper's."""
    measured = drawable(rounds, columns, "no run has")
    names = list(dict.fromkeys(name for group in groups for _, name in group.arms))
    shown = groups if len(groups) > 1 else [Group("", groups[0].arms)]  # one needs no title
    charts = [group_chart(group, rounds, column, budget_j, names) for group in shown for column in measured]
    return figure_of(charts, len(measured), PANEL, look)


def varied_figure(
    axis: Varied,
    summary: pl.DataFrame,
    runs: pl.DataFrame,
    quantities: Sequence[str] = AGAINST,
    look: Look | None = None,
    budget_j: float | None = None,
) -> Figure:
    """Each quantity against the field, side by side; see `varied_charts`."""
    charts = varied_charts(axis, summary, runs, quantities, budget_j)
    if not charts:
        raise RunError(f"no run along {axis.field} has finished")
    return figure_of(charts, len(charts), PANEL, look)


def ends_figure(
    arms: Sequence[str], summary: pl.DataFrame, runs: pl.DataFrame, quantities: Sequence[str], look: Look
) -> Figure:
    """What runs came to, side by side; see `ends_charts`. runs: `statistics.per_run`."""
    charts = ends_charts(arms, summary, runs, quantities)
    size = (COLUMN_WIDTH_IN * max(1 / len(charts), 0.7), ROW_IN * len(arms) + AROUND_IN)
    return figure_of(charts, len(charts), size, look)


def pareto_figure(points: Sequence[Point], look: Look | None = None) -> Figure:
    """All arms with 95 % intervals, those on the front filled and joined."""
    return figure_of([pareto_chart(points)], 1, (2 * COLUMN_WIDTH_IN, 1.15 * COLUMN_WIDTH_IN), look)


def trade_off_figure(field: str, trades: Sequence[Trade], budget_j: float, look: Look | None = None) -> Figure:
    """What each weight brought against its energy; see `trade_off_charts`."""
    charts = trade_off_charts(field, trades, budget_j)
    return figure_of(charts, 2, (COLUMN_WIDTH_IN, 0.9 * COLUMN_WIDTH_IN), look)


def panel_figure(panel: Panel, curves: pl.DataFrame, rounds: pl.DataFrame | None = None) -> Figure:
    """One panel, one column wide.

    Args:
        panel: what is shown.
        curves: rows (panel, arm, round, mean, low, high, n) in the units of the rounds table.
        rounds: those of all runs, to draw single seeds where they are few.
    """
    return figure_of([_chart(panel, curves, rounds)], 1, PANEL)


def composite(whole: PanelFigure, curves: pl.DataFrame, rounds: pl.DataFrame | None = None) -> Figure:
    """All panels of a figure, two to a row, under one legend."""
    charts = [_chart(panel, curves, rounds) for panel in whole.panels if has_data(panel, curves)]
    if not charts:
        raise RunError(f"{whole.key} has nothing to show: no run of it has the quantity it draws")
    return figure_of(charts, 2, PANEL)


def has_data(panel: Panel, curves: pl.DataFrame) -> bool:
    return curves.filter(pl.col("panel") == panel.key).height > 0


def _chart(panel: Panel, curves: pl.DataFrame, rounds: pl.DataFrame | None) -> Chart:
    """The curves of a panel, with its letter before its heading."""
    names = [(curve.arm, curve.name) for curve in panel.curves]
    heading = f"({panel.letter}) {panel.setting}" if panel.letter else panel.setting
    return curve_chart(QUANTITIES[panel.quantity], names, curves.filter(panel=panel.key), rounds, heading=heading)


def save(
    figure: Figure, directory: Path, name: str, formats: Sequence[str] = ("pdf", "png", "svg"), dpi: int = PNG_DPI
) -> list[Path]:
    """Write `name.pdf`, `.png` and `.svg`, each whole or not at all."""
    written, layout = [], figure.get_layout_engine()
    with styled():
        figure.draw_without_rendering()  # laid out once: every format would draw all of it once more for that
        figure.set_layout_engine(None)
        try:
            for kind in formats:
                path = directory / f"{name}.{kind}"
                options = {"format": kind, "dpi": dpi, "metadata": _METADATA.get(kind)}
                write_atomically(path, lambda file, options=options: figure.savefig(file, **options))
                written.append(path)
        finally:
            figure.set_layout_engine(layout)
    return written


def save_panels(
    figures: Sequence[PanelFigure], curves: pl.DataFrame, directory: Path, rounds: pl.DataFrame | None = None
) -> list[Path]:
    """Every panel and every figure that has data, as PDF, PNG and SVG."""
    usable_directory(directory)
    written: list[Path] = []
    for whole in figures:
        shown = [panel for panel in whole.panels if has_data(panel, curves)]
        for panel in shown:
            written += save(panel_figure(panel, curves, rounds), directory, f"fig{panel.key}")
        if shown:
            written += save(composite(whole, curves, rounds), directory, whole.key)
    return written


def save_curves(
    plan: Plan, groups: Sequence[Group], rounds: pl.DataFrame, summary: pl.DataFrame, out: Path
) -> list[Path]:
    """accuracy and energy by round, and both against each field that was varied, as PDF, PNG and SVG."""
    usable_directory(out)
    written: list[Path] = []
    for name, column in BY_ROUND.items():
        if rounds[column].null_count() < len(rounds):
            written += save(curve_figure(groups, rounds, [column], same_budget_j(plan)), out, name)
    axes = varied(plan)
    runs = per_run(rounds) if axes else rounds.clear()
    for axis in axes:
        if charts := varied_charts(axis, summary, runs, AGAINST, same_budget_j(plan)):
            written += save(figure_of(charts, len(charts), PANEL), out, f"against-{axis.field}")
    return written


def save_pareto(worlds: Sequence[tuple[str, Sequence[Point]]], directory: Path) -> list[Path]:
    """pareto.pdf, .png and .svg, or pareto-1, pareto-2, … where there are several worlds."""
    written: list[Path] = []
    for number, (_, points) in enumerate(worlds, start=1):
        usable_directory(directory)
        written += save(pareto_figure(points), directory, "pareto" if len(worlds) == 1 else f"pareto-{number}")
    return written
