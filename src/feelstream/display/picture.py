"""What every figure shares: sizes and letters of a paper, its axis of rounds, and how a user may want it otherwise.

A figure is one that a notebook shows when it is the last line of a cell, whether pyplot is in use or not.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from html import escape
from io import BytesIO
from textwrap import wrap
from threading import RLock
from typing import Any

import matplotlib as mpl
import matplotlib.style
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from feelstream.arrays import Reals
from feelstream.display.line_styles import line_style
from feelstream.display.quantities import QUANTITIES, ROUND_AXIS, Quantity, of_table
from feelstream.errors import RunError
from feelstream.plugins import did_you_mean

# matplotlib keeps its settings in one place for all threads, so figures are made one at a time.
ONE_AT_A_TIME = RLock()
COLUMN_WIDTH_IN = 3.5  # one column of a two-column paper
PANEL_HEIGHT_IN = 2.45
RUN_PANEL_HEIGHT_IN = 2.0  # of a single run, which has several and no legend below
PNG_DPI = 200
LONG_LABEL = 24  # letters of a name beside an axis, beyond which it takes two lines
# Dotted and grey, so that nobody takes it for a policy: theirs have colours and markers.
BUDGET_LINE: dict[str, Any] = {"color": "#444444", "linewidth": 0.9, "linestyle": (0, (1, 1.2))}

# matplotlib settings, given to rc_context so that nothing of the user's own is changed.
RC: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib: the same figure on every machine
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "axes.titlesize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.linewidth": 0.4,
    "grid.color": "#D9D9D9",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.6,
    "legend.frameon": False,
    "legend.handlelength": 3.0,
    "pdf.fonttype": 42,  # TrueType, embedded: journals refuse Type 3
    "savefig.dpi": PNG_DPI,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "feelstream",  # the same figure gives the same bytes
}

Style = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None


class Picture(Figure):
    """A figure that knows itself as PNG."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", dpi=120, facecolor="white")
        return file.getvalue()


@dataclass(frozen=True)
class Look:
    """How a user wants a figure: in axes of their own, of a size, in a style of matplotlib's or of their own."""

    ax: Any = None  # one Axes, or several in a list or an array
    figsize: tuple[float, float] | None = None  # inches
    style: Style = None

    @contextmanager
    def settings(self, ours: Mapping[str, Any]) -> Iterator[None]:
        """Ours wherever the user's settings are as matplotlib ships them, theirs wherever they changed one."""
        theirs, shipped = dict[Any, Any](mpl.rcParams), dict[Any, Any](mpl.rcParamsDefault)
        left: Any = {key: value for key, value in ours.items() if theirs[key] == shipped[key]}
        with ONE_AT_A_TIME, mpl.rc_context(left), ExitStack() as above:
            if self.style is not None:
                try:
                    above.enter_context(mpl.style.context(self.style))  # pyright: ignore
                except OSError:
                    known = ", ".join(mpl.style.available)  # pyright: ignore
                    raise RunError(f"style: matplotlib has no style {self.style!r}; known: {known}") from None
            yield

    def panels(self, count: int, across: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
        """A figure and so many axes, `across` to a row: the user's own, or new ones. size: of one panel, in inches."""
        if self.figsize is not None and np.shape(self.figsize) != (2,):
            raise RunError(f"figsize: must be a width and a height in inches, as in (6, 3), not {self.figsize!r}")
        if self.ax is not None:
            given = self._given(count)
            return given[0].figure, list(given)
        across = min(count, across)
        down = -(-count // across)
        figure = Picture(figsize=self.figsize or (size[0] * across, size[1] * down), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(down, across, squeeze=False)
        for axes in grid.flat[count:]:
            axes.remove()
        return figure, list(grid.flat[:count])

    def _given(self, count: int) -> Any:
        given = np.ravel(np.asarray(self.ax, object))
        if len(given) != count or not all(isinstance(axes, Axes) for axes in given):
            found = len(given) if all(isinstance(axes, Axes) for axes in given) else repr(self.ax)
            raise RunError(f"ax: must be {count} Axes, one for each panel, not {found}")
        return given


def line_colour(index: int) -> str:
    """The colour of the index-th curve on paper; of the user's own cycle where matplotlib was given one."""
    cycle, shipped = mpl.rcParams["axes.prop_cycle"], mpl.rcParamsDefault["axes.prop_cycle"]
    colours = cycle.by_key().get("color", []) if cycle != shipped else []
    return str(colours[index % len(colours)]) if colours else line_style(index).light


def draw_line(axes: Axes, at: Any, values: Any, index: int, of: int, **how: Any) -> None:
    """The index-th of so many curves, with a few markers; they are shifted, so that close curves do not cover them."""
    every = max(1, len(at) // 8)
    axes.plot(
        at, values, color=line_colour(index), marker=line_style(index).marker, markerfacecolor="white",
        markeredgewidth=0.9, markevery=((index * every) // max(1, of) % every, every), **how,
    )  # fmt: skip


NEAR = 4.0  # a line across within this factor of the curves is worth the room that it takes


def is_near(limit: float, ends: Sequence[float] | Reals) -> bool:
    """Whether an axis for curves that end here may reach to a limit without crushing them.

    >>> is_near(80.0, [57.0, 72.0]), is_near(0.5, [57.0, 72.0]), is_near(0.5, [0.4, 70.0])
    (True, False, True)
    """
    low, high = min(ends), max(ends)
    return limit > 0 and low / NEAR <= limit <= max(high, low) * NEAR


def draw_limit(axes: Axes, limit: float, unit: str, ends: Sequence[float] | Reals) -> list[float]:
    """A line across, and its place if it is among the curves; far from them, its value in the legend alone."""
    near = is_near(limit, ends)
    name = "budget" if near else f"budget: {limit:g} {unit}, off the axis"
    if near:
        axes.axhline(limit, label=name, **BUDGET_LINE)
        return [limit]
    axes.plot([], [], label=name, **BUDGET_LINE)
    return []


def drawable(rounds: pl.DataFrame, columns: Sequence[str], none: str) -> list[str]:
    """Those of the columns by round that hold anything; none: begins the refusal where none does."""
    known = [quantity.name for quantity in of_table("rounds", rounds.columns)]
    for column in columns:
        if column not in known:
            close = did_you_mean(column, known)
            raise RunError(f"'{column}' cannot be drawn by round; {close}known: {', '.join(known)}")
    measured = [column for column in columns if rounds[column].null_count() < len(rounds)]
    if not measured:
        raise RunError(f"{none} {' or '.join(columns)} to draw")
    return measured


def run_figure(rounds: pl.DataFrame, budget_j: float, columns: Sequence[str], look: Look) -> Figure:
    """A panel for each of the quantities that the run has, by round."""
    panels = [QUANTITIES[column] for column in drawable(rounds, columns, "the run has no")]
    with look.settings(RC):
        figure, grid = look.panels(len(panels), 2, (COLUMN_WIDTH_IN, RUN_PANEL_HEIGHT_IN))
        for axes, panel in zip(grid, panels, strict=True):
            shown = rounds.drop_nulls(panel.name)
            values = shown[panel.name] * panel.scale
            draw_line(axes, shown["round"], values, 0, 1)
            if panel.name == "energy_mean_cum_j":
                draw_limit(axes, budget_j * panel.scale, panel.unit, [float(values[-1])])
                axes.legend()
            round_axis(axes)
            label_beside(axes, panel)
            if panel.digits == 0:  # a count
                axes.set_ylim(0, 1.1 * float(values.to_numpy().max()) or 1.0)
                axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return figure


def round_axis(axes: Axes) -> None:
    """Rounds along the axis: whole numbers, also where there is but one."""
    axes.set_xlabel(ROUND_AXIS)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.margins(x=0.02)


def label_beside(axes: Axes, quantity: Quantity) -> None:
    """Its name and unit; in two lines where one would be longer than the axis and reach the panel above."""
    axes.set_ylabel(in_lines(quantity.axis))


def in_lines(text: str) -> str:
    """A label in two lines of about the same length, if it is long.

    >>> in_lines("Test accuracy (%)"), in_lines("Energy per device (mJ per round)")
    ('Test accuracy (%)', 'Energy per device\\n(mJ per round)')
    """
    if len(text) <= LONG_LABEL:
        return text
    widths = range(len(text) // 2, len(text) + 1)
    return next("\n".join(lines) for width in widths if len(lines := wrap(text, width)) <= 2)


def html(title: str, table: pl.DataFrame, figure: Figure) -> str:
    """A small table and a picture, in one piece of HTML that fetches nothing."""
    heads = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_shown(value))}</td>" for value in row) + "</tr>" for row in table.rows()
    )
    file = BytesIO()
    figure.savefig(file, format="png", dpi=110, facecolor="white")
    image = base64.b64encode(file.getvalue()).decode()
    return (
        f"<div><b>{escape(title)}</b><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        f'<img alt="{escape(title)}" style="max-width:100%" src="data:image/png;base64,{image}"></div>'
    )


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
