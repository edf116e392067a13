"""Charts of results as figures for print, and the files that a report keeps of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from feelstream.display.chart import Chart
from feelstream.display.picture import COLUMN_WIDTH_IN, PANEL_HEIGHT_IN, PNG_DPI, Look, drawable, figure_of, styled
from feelstream.experiment.statistics import band_by_round
from feelstream.report.charts import curve_chart, ends_charts
from feelstream.report.groups import Group, Panel, PanelFigure
from feelstream.run.files import write_atomically

BY_ROUND = {"accuracy": "accuracy", "energy": "energy_mean_cum_j"}  # name of the file → column
ROW_IN, AROUND_IN = 0.19, 0.75  # of whole runs: height of a row, and of all that is not rows
PANEL = (COLUMN_WIDTH_IN, PANEL_HEIGHT_IN)
FRONT = (2 * COLUMN_WIDTH_IN, 1.15 * COLUMN_WIDTH_IN)

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
    charts = [
        curve_chart(column, group.arms, rounds, budget_j, names, group.title) for group in shown for column in measured
    ]
    return figure_of(charts, len(measured), PANEL, look)


def ends_figure(
    arms: Sequence[str], summary: pl.DataFrame, runs: pl.DataFrame, quantities: Sequence[str], look: Look
) -> Figure:
    """What runs came to, side by side; see `ends_charts`. runs: `runs.of_rounds`."""
    charts = ends_charts(arms, summary, runs, quantities)
    size = (COLUMN_WIDTH_IN * max(1 / len(charts), 0.7), ROW_IN * len(arms) + AROUND_IN)
    return figure_of(charts, len(charts), size, look)


def panel_chart(panel: Panel, rounds: pl.DataFrame) -> Chart:
    """The curves of a panel, with its letter before its heading; without lines where no run has the quantity."""
    names = [(curve.arm, curve.name) for curve in panel.curves]
    heading = f"({panel.letter}) {panel.setting}" if panel.letter else panel.setting
    return curve_chart(panel.quantity, names, rounds, heading=heading)


def panel_curves(figures: Sequence[PanelFigure], rounds: pl.DataFrame) -> pl.DataFrame:
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


def panel_figures(figures: Sequence[PanelFigure], rounds: pl.DataFrame) -> Iterator[tuple[str, Figure]]:
    """Name and picture of every panel that has data, one column wide, and of every figure, two panels to a row."""
    for whole in figures:
        charts = {panel.key: chart for panel in whole.panels if (chart := panel_chart(panel, rounds)).lines}
        for key, chart in charts.items():
            yield f"fig{key}", figure_of([chart], 1, PANEL)
        if charts:
            yield whole.key, figure_of([*charts.values()], 2, PANEL)


def comparison_figures(
    groups: Sequence[Group],
    rounds: pl.DataFrame,
    budget_j: float | None,
    ahead: Sequence[Chart],
    against: Mapping[str, Sequence[Chart]],
) -> Iterator[tuple[str, Figure]]:
    """Name and picture of accuracy against energy in each world, of both by round, and against what was varied."""
    for number, chart in enumerate(ahead, start=1):
        yield "pareto" if len(ahead) == 1 else f"pareto-{number}", figure_of([chart], 1, FRONT)
    for name, column in BY_ROUND.items():
        if rounds[column].null_count() < len(rounds):
            yield name, curve_figure(groups, rounds, [column], budget_j)
    for field, charts in against.items():
        yield f"against-{field}", figure_of(charts, len(charts), PANEL)


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
