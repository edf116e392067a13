"""Panels as matplotlib figures, from curves that are already computed.

Everything goes through Figure objects, never pyplot: no global state is left behind, and any thread may draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from feelstream.errors import RunError
from feelstream.experiment.panels import Panel, PanelFigure
from feelstream.quantities import QUANTITIES, ROUND_AXIS, Quantity
from feelstream.report.drawing.limits import axis_limits, final_values, log_limits, spans_decades
from feelstream.report.drawing.style import COLUMN_WIDTH_IN, FEW_SEEDS, PANEL_HEIGHT_IN, PNG_DPI, RC, line_style
from feelstream.run.files import write_atomically

_ONE_AT_A_TIME = RLock()

# No creation date in the files: the same results give the same bytes.
_METADATA: dict[str, dict[str, str | None]] = {
    "pdf": {"CreationDate": None, "Title": "feelstream"},
    "png": {"Software": None},
    "svg": {"Date": None},
}


@contextmanager
def styled() -> Iterator[None]:
    """Our look while a figure is made; the user's own settings come back after.

    matplotlib keeps its settings in one place for all threads, so figures are made one at a time.
    """
    settings: Any = RC  # matplotlib types the keys as a list of literals
    with _ONE_AT_A_TIME, mpl.rc_context(settings):
        yield


def panel_figure(panel: Panel, curves: pl.DataFrame) -> Figure:
    """One panel, one column wide.

    Args:
        panel: what is shown.
        curves: rows (panel, arm, round, mean, low, high, n) in the units of the rounds table.
    """
    with styled():
        figure = Figure(figsize=(COLUMN_WIDTH_IN, PANEL_HEIGHT_IN), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        draw_panel(axes, panel, curves)
        legend_below(figure, axes, columns=2 if len(panel.curves) > 3 else len(panel.curves))
    return figure


def composite(whole: PanelFigure, curves: pl.DataFrame) -> Figure:
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
            draw_panel(axes, panel, curves)
        for axes in list(grid.flat)[len(panels) :]:
            axes.set_visible(False)
        legend_below(figure, grid.flat[0], columns=max(len(panel.curves) for panel in panels))
    return figure


def has_data(panel: Panel, curves: pl.DataFrame) -> bool:
    return curves.filter(pl.col("panel") == panel.key).height > 0


def draw_panel(axes: Axes, panel: Panel, curves: pl.DataFrame) -> None:
    """The curves of a panel, with its letter at the top left."""
    rows = curves.filter(pl.col("panel") == panel.key)
    draw_curves(axes, QUANTITIES[panel.quantity], [(curve.arm, curve.name) for curve in panel.curves], rows)
    axes.set_title(f"({panel.letter}) {panel.setting}" if panel.letter else panel.setting, loc="left", pad=4)


def draw_curves(
    axes: Axes, quantity: Quantity, lines: Sequence[tuple[str, str]], curves: pl.DataFrame, limit: float | None = None
) -> None:
    """Means as lines, 95 % bands as shades behind them.

    lines: arm and name of each. curves: rows (arm, round, mean, low, high, n). limit: a line across, in the same unit.
    """
    for index, (arm, name) in enumerate(lines):
        rows = curves.filter(pl.col("arm") == arm).sort("round")
        if rows.is_empty():
            continue
        style = line_style(index)
        rounds = rows["round"].to_numpy()
        mean, low, high = (rows[end].to_numpy() * quantity.scale for end in ("mean", "low", "high"))
        alpha = 0.06 if len(rows.filter(pl.col("n") > FEW_SEEDS)) == 0 else 0.16
        axes.fill_between(rounds, low, high, color=style.light, alpha=alpha, linewidth=0)
        every = max(1, len(rounds) // 8)
        axes.plot(
            rounds,
            mean,
            color=style.light,
            linestyle=style.mpl_dash,
            marker=style.marker,
            # Shifted starts keep the markers of close curves from covering each other.
            markevery=((index * every) // max(1, len(lines)), every),
            markerfacecolor="white",
            markeredgewidth=0.9,
            label=name,
        )
    axes.set_xlabel(ROUND_AXIS)
    # In two lines, or it would be longer than the axis and reach the panel above.
    axes.set_ylabel(f"{quantity.words}\n({quantity.full_unit})" if len(quantity.axis) > 24 else quantity.axis)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(x=0.02)
    if curves.is_empty():
        return
    mean, low, high = ((curves[end].drop_nulls() * quantity.scale).to_list() for end in ("mean", "low", "high"))
    if limit is not None:
        axes.axhline(limit * quantity.scale, color="#444444", linewidth=0.9, linestyle=":", label="budget")
        mean.append(limit * quantity.scale)
    ends = final_values(curves) * quantity.scale
    if quantity.logarithmic and spans_decades([*ends, *([limit * quantity.scale] if limit else [])]):
        axes.set_yscale("log")
        axes.set_ylim(*log_limits(mean))
    else:
        axes.set_ylim(*axis_limits(quantity, mean, low, high))


def legend_below(figure: Figure, axes: Axes, columns: int) -> None:
    """Outside the axes, so that it never covers a curve."""
    handles, names = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, names, loc="outside lower center", ncols=columns, columnspacing=1.2)


def save(
    figure: Figure, directory: Path, name: str, formats: Sequence[str] = ("pdf", "png", "svg"), dpi: int = PNG_DPI
) -> list[Path]:
    """Write `name.pdf`, `.png` and `.svg`, each whole or not at all."""
    written = []
    for kind in formats:
        path = directory / f"{name}.{kind}"
        with styled():
            write_atomically(
                path, lambda file, kind=kind: figure.savefig(file, format=kind, dpi=dpi, metadata=_METADATA.get(kind))
            )
        written.append(path)
    return written


def save_all(figures: Sequence[PanelFigure], curves: pl.DataFrame, directory: Path) -> list[Path]:
    """Every panel and every figure that has data, as PDF, PNG and SVG."""
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for whole in figures:
        shown = [panel for panel in whole.panels if has_data(panel, curves)]
        for panel in shown:
            written += save(panel_figure(panel, curves), directory, f"fig{panel.key}")
        if shown:
            written += save(composite(whole, curves), directory, whole.key)
    return written
