"""Panels as matplotlib figures, from curves that are already computed.

Everything goes through Figure objects, never pyplot: no global state is left behind, and any thread may draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from feelstream.display.picture import ONE_AT_A_TIME, draw_limit, draw_line, label_beside, round_axis
from feelstream.display.quantities import QUANTITIES, Quantity
from feelstream.errors import RunError
from feelstream.experiment.panels import Panel, PanelFigure
from feelstream.experiment.statistics import LEAST_SEEDS
from feelstream.report.drawing.energy_axis import log_ticks
from feelstream.report.drawing.legend import legend_below
from feelstream.report.drawing.limits import MOST_BANDS, axis_limits, final_values, log_limits, wants_logarithm
from feelstream.report.drawing.style import (
    COLUMN_WIDTH_IN,
    PANEL_HEIGHT_IN,
    PNG_DPI,
    RC,
    legible,
    line_colour,
    line_style,
)
from feelstream.run.files import usable_directory, write_atomically

# No creation date in the files: the same results give the same bytes.
_METADATA: dict[str, dict[str, str | None]] = {
    "pdf": {"CreationDate": None, "Title": "feelstream"},
    "png": {"Software": None},
    "svg": {"Date": None},
}


@contextmanager
def styled() -> Iterator[None]:
    """Our look while a figure is made; the user's own settings come back after."""
    settings: Any = RC  # matplotlib types the keys as a list of literals
    with ONE_AT_A_TIME, mpl.rc_context(settings):
        yield


def panel_figure(panel: Panel, curves: pl.DataFrame, rounds: pl.DataFrame | None = None) -> Figure:
    """One panel, one column wide.

    Args:
        panel: what is shown.
        curves: rows (panel, arm, round, mean, low, high, n) in the units of the rounds table.
        rounds: those of all runs, to draw single seeds where they are few.
    """
    with styled():
        figure = Figure(figsize=(COLUMN_WIDTH_IN, PANEL_HEIGHT_IN), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        draw_panel(axes, panel, curves, rounds)
        legend_below(figure, [axes])
    return figure


def composite(whole: PanelFigure, curves: pl.DataFrame, rounds: pl.DataFrame | None = None) -> Figure:
    """All panels of a figure, two to a row, under one legend."""
    panels = [panel for panel in whole.panels if has_data(panel, curves)]
    if not panels:
        raise RunError(f"{whole.key} has nothing to show: no run of it has the quantity it draws")
    across = min(2, len(panels))
    down = -(-len(panels) // across)
    with styled():
        size = (COLUMN_WIDTH_IN * across, PANEL_HEIGHT_IN * down * 0.94 + 0.15)
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(down, across, squeeze=False)
        for axes, panel in zip(grid.flat, panels, strict=False):
            draw_panel(axes, panel, curves, rounds)
        for axes in list(grid.flat)[len(panels) :]:
            axes.set_visible(False)
        legend_below(figure, list(grid.flat)[: len(panels)])
    return figure


def has_data(panel: Panel, curves: pl.DataFrame) -> bool:
    return curves.filter(pl.col("panel") == panel.key).height > 0


def draw_panel(axes: Axes, panel: Panel, curves: pl.DataFrame, rounds: pl.DataFrame | None = None) -> None:
    """The curves of a panel, with its letter at the top left."""
    rows = curves.filter(pl.col("panel") == panel.key)
    names = [(curve.arm, curve.name) for curve in panel.curves]
    draw_curves(axes, QUANTITIES[panel.quantity], names, rows, rounds=rounds)
    axes.set_title(f"({panel.letter}) {panel.setting}" if panel.letter else panel.setting, loc="left", pad=4)


def draw_curves(
    axes: Axes,
    quantity: Quantity,
    lines: Sequence[tuple[str, str]],
    curves: pl.DataFrame,
    limit: float | None = None,
    rounds: pl.DataFrame | None = None,
    styles: Sequence[str] = (),
) -> None:
    """Means as lines, 95 % bands as shades behind them; below five seeds the seeds themselves, if given as `rounds`.

    lines: arm and name of each. curves: rows (arm, round, mean, low, high, n). limit: a line across, in the same unit;
    one that is far from all curves is named in the legend, since an axis that reached it would crush them. styles: the
    names of all lines of the figure, of which each has a style; by default, those of these axes.
    """
    few = rounds is not None and not curves.is_empty() and int(curves["n"].to_numpy().max()) < LEAST_SEEDS
    order = {name: index for index, name in enumerate(styles or [name for _, name in lines])}
    for arm, name in lines:
        index = order[name]
        rows = curves.filter(pl.col("arm") == arm).sort("round")
        if rows.is_empty():
            continue
        style, colour = line_style(index), line_colour(index)
        at = rows["round"].to_numpy()
        mean, low, high = (rows[end].to_numpy() * quantity.scale for end in ("mean", "low", "high"))
        if few and rounds is not None:
            for _, one in rounds.filter(arm=arm).drop_nulls(quantity.name).group_by("seed", maintain_order=True):
                own = one[quantity.name] * quantity.scale
                dot = "." if len(one) == 1 else None  # a line of one point would not be seen
                axes.plot(one["round"], own, marker=dot, color=colour, alpha=0.4, linewidth=0.6, zorder=1.5)
        elif len(lines) <= MOST_BANDS:
            axes.fill_between(at, low, high, color=colour, alpha=0.16, linewidth=0)
        draw_line(axes, at, mean, index, len(order), linestyle=style.mpl_dash, label=legible(name))
    round_axis(axes)
    label_beside(axes, quantity)
    if curves.is_empty():
        return
    mean, low, high = ((curves[end].drop_nulls() * quantity.scale).to_list() for end in ("mean", "low", "high"))
    ends = final_values(curves) * quantity.scale
    logarithmic = wants_logarithm(quantity, ends, mean)
    if few and rounds is not None:
        arms = [arm for arm, _ in lines]
        seeds = rounds.filter(pl.col("arm").is_in(arms))[quantity.name].drop_nulls() * quantity.scale
        mean, low, high = [*mean, *seeds.to_list()], [], []  # what was measured stays in the picture
    if limit is not None:
        mean += draw_limit(axes, limit * quantity.scale, quantity.unit, ends)
    if logarithmic:
        axes.set_yscale("log")
        low_end, high_end = log_limits(mean)
        axes.set_ylim(low_end, high_end)
        ticks = log_ticks(low_end, high_end)
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(*axis_limits(quantity, mean, low, high))
        if quantity.digits == 0:
            axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


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


def save_all(
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
