"""Charts as matplotlib figures: sizes and letters of a paper, the legend, and how a user may want it otherwise.

A figure is one that a notebook shows when it is the last line of a cell, whether pyplot is in use or not.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from html import escape
from io import BytesIO
from textwrap import fill, wrap
from threading import RLock
from typing import Any

import matplotlib as mpl
import matplotlib.style
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser
from matplotlib.ticker import MaxNLocator, NullFormatter

from feelstream.display.chart import ROUNDS, Axis, Chart, Ends, Line, budget_line, line_style
from feelstream.display.quantities import QUANTITIES, of_table
from feelstream.errors import RunError
from feelstream.plugins import did_you_mean

# matplotlib keeps its settings in one place for all threads, so figures are made one at a time.
ONE_AT_A_TIME = RLock()
COLUMN_WIDTH_IN = 3.5  # one column of a two-column paper
PANEL_HEIGHT_IN = 2.45
RUN_PANEL_HEIGHT_IN = 2.0  # of a single run, which has several and no legend below
PNG_DPI = 200
LETTER = 0.6  # width of a letter, as a part of the font's size: names are broken by it
HANDLE = 9  # letters' room that the sample of a line takes beside its name
PERCENT, ALL = (0, 50, 70, 80, 90, 95, 97, 98, 99, 100), 100.5  # ticks of an axis by error, and where it would end
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
                except (KeyError, TypeError, ValueError) as problem:
                    said = str(problem.args[0] if problem.args else problem)
                    raise RunError(f"style: matplotlib does not take {self.style!r:.60}: {said}") from None
            yield

    def panels(self, count: int, across: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
        """A figure and so many axes, `across` to a row: the user's own, or new ones. size: of one panel, in inches."""
        if self.figsize is not None and not _is_size(self.figsize):
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


def _is_size(given: Any) -> bool:
    size = np.asarray(given)
    return size.shape == (2,) and size.dtype.kind in "fiu" and bool(np.isfinite(size).all() and (size > 0).all())


def line_colour(index: int) -> str:
    """The colour of the index-th curve on paper; of the user's own cycle where matplotlib was given one."""
    cycle, shipped = mpl.rcParams["axes.prop_cycle"], mpl.rcParamsDefault["axes.prop_cycle"]
    colours = cycle.by_key().get("color", []) if cycle != shipped else []
    return str(colours[index % len(colours)]) if colours else line_style(index).light


@contextmanager
def styled() -> Iterator[None]:
    """Our look while a figure is made; the user's own settings come back after."""
    settings: Any = RC  # matplotlib types the keys as a list of literals
    with ONE_AT_A_TIME, mpl.rc_context(settings):
        yield


def figure_of(charts: Sequence[Chart], across: int, size: tuple[float, float], look: Look | None = None) -> Figure:
    """The charts, `across` to a row, over one legend. size: of one, in inches; look: the user's, or else a paper's."""
    with look.settings(RC) if look else styled():
        figure, grid = (look or Look()).panels(len(charts), across, size)
        for axes, chart in zip(grid, charts, strict=True):
            draw(axes, chart)
        if look is None or look.ax is None:
            legend_below(figure, grid, grow=look is None or look.figsize is None)
        elif entries := _entries(grid):
            grid[-1].legend(entries.values(), entries)  # beside axes of the user's own we know of no room
    return figure


def draw(axes: Axes, chart: Chart) -> None:
    """A chart, with its legend's entries."""
    for line in chart.lines:
        _draw_line(axes, line, chart.few)
    for which, axis in (("x", chart.x), ("y", chart.y)):
        _scale(axes, which, axis)
    for point, text in chart.notes:
        axes.annotate(legible(text), point, (3, 4), textcoords="offset points", fontsize=6)
    if chart.heading:
        axes.set_title(chart.heading, loc="left", pad=4)


def _draw_line(axes: Axes, line: Line, few: bool) -> None:
    if line.role == "budget":
        axes.plot(line.x, line.y, label=line.name, **BUDGET_LINE)
        return
    if line.role == "plain":
        steps = "steps-post" if line.steps else "default"
        axes.plot(line.x, line.y, label=line.name, color="#5C6670", linewidth=0.8, drawstyle=steps, zorder=1)
        return
    style, colour = line_style(line.style), line_colour(line.style)
    for x, y in line.seeds if few else ():
        dot = "." if len(x) == 1 else None  # a line of one point would not be seen
        axes.plot(x, y, marker=dot, color=colour, alpha=0.4, linewidth=0.6, zorder=1.5)
    if line.dots[0]:
        axes.plot(*line.dots, ".", color=colour, alpha=0.5, markersize=3, zorder=1.5)
    if line.interval == "band" and line.y_ends:
        low, high = ([ends[side] for ends in line.y_ends] for side in (0, 1))
        axes.fill_between(line.x, low, high, color=colour, alpha=0.16, linewidth=0)
    elif line.interval == "bars" and (line.x_ends or line.y_ends):
        bars: dict[str, Any] = {"xerr": _halves(line.x, line.x_ends), "yerr": _halves(line.y, line.y_ends)}
        axes.errorbar(line.x, line.y, **bars, fmt="none", ecolor=colour, elinewidth=0.7, alpha=0.6)
    every = max(1, len(line.x) // 8)  # a few markers, shifted so that close curves do not cover them
    axes.plot(
        line.x, line.y, color=colour, linestyle=style.mpl_dash if line.role == "mean" else "none", marker=style.marker,
        markerfacecolor=colour if line.filled else "white", markeredgewidth=0.9,
        markersize=3.6 if line.role == "mean" else 4.5, markevery=(line.style * every // 4 % every, every),
        label=legible(line.name),
    )  # fmt: skip


def _halves(values: Sequence[float], ends: Ends) -> list[list[float]] | None:
    pairs = list(zip(values, ends, strict=True)) if ends else []
    return [[value - low for value, (low, _) in pairs], [high - value for value, (_, high) in pairs]] if pairs else None


def _scale(axes: Axes, which: str, axis: Axis) -> None:
    own = axes.xaxis if which == "x" else axes.yaxis
    label = in_lines(axis.label) if which == "y" else axis.label
    axes.set(**{f"{which}label": label}, **({f"{which}scale": "log"} if axis.logarithmic else {}))
    if axis.by_error:
        axes.set_yscale(
            "function", functions=(lambda at: -np.log(ALL - np.minimum(at, 100)), lambda at: ALL - np.exp(-at))
        )
        own.set_ticks([tick for tick in PERCENT if axis.limits is None or axis.limits[0] <= tick <= axis.limits[1]])
    if axis.ticks is not None:
        own.set_ticks([at for at, _ in axis.ticks], [text for _, text in axis.ticks])
        own.set_minor_formatter(NullFormatter())
    elif axis.whole:
        own.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        if which == "x":
            axes.margins(x=0.02)
    if axis.limits is not None:
        axes.set(**{f"{which}lim": axis.limits[::-1] if axis.down else axis.limits})


def legible(name: str) -> str:
    r"""The name such that matplotlib draws it as it stands: a formula where it is one, and never left out.

    >>> legible("$V=10$"), legible("$V=10^$"), legible("_mine")
    ('$V=10$', '\\$V=10^\\$', ' _mine')
    """
    if is_math_text(name):
        try:
            MathTextParser("path").parse(name)
        except ValueError:
            name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name  # a legend leaves out what begins with an underscore


def legend_below(figure: Figure, panels: Sequence[Axes], grow: bool = True) -> None:
    """Every name of the panels once, in as many columns as the figure's width allows; long names are broken.

    grow: make the figure higher by what the legend needs beyond one line, so that the panels keep their size.
    """
    entries = _entries(panels)
    if not entries:
        return
    ordered = sorted(entries, key=lambda name: name.startswith("budget"))  # the policies first, in their order
    size_in = FontProperties(size=mpl.rcParams["legend.fontsize"]).get_size_in_points() / 72
    letters = int((figure.get_figwidth() / size_in) / LETTER)
    names = [fill(name, max(letters - HANDLE, 8)) for name in ordered]
    widths = [HANDLE + max(map(len, name.split("\n"))) for name in names]
    count = len(names)
    across = (sum(max(widths[at : at + rows]) for at in range(0, count, rows)) for rows in range(1, count + 1))
    rows = next((rows for rows, width in enumerate(across, start=1) if width <= letters), count)
    columns = -(-len(names) // rows)
    handles = [entries[name] for name in ordered]
    figure.legend(handles, names, loc="outside lower center", ncols=columns, columnspacing=1.2)
    lines = rows if columns > 1 else sum(name.count("\n") + 1 for name in names)
    if grow:
        figure.set_figheight(figure.get_figheight() + 1.5 * size_in * (lines - 1))


def _entries(panels: Sequence[Axes]) -> dict[str, Any]:
    """Every name once, and its sample."""
    entries: dict[str, Any] = {}
    for axes in panels:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    return entries


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
    charts = []
    for quantity in [QUANTITIES[column] for column in drawable(rounds, columns, "the run has no")]:
        shown = rounds.drop_nulls(quantity.name)
        x, y = shown["round"].to_list(), (shown[quantity.name] * quantity.scale).to_list()
        axis = Axis(quantity.axis)
        if quantity.digits == 0:  # a count
            axis = Axis(quantity.axis, (0.0, 1.1 * max(y) or 1.0), whole=True)
        spent = quantity.name == "energy_mean_cum_j"
        budget = [budget_line(budget_j, quantity, x, y[-1:])] if spent else []
        charts.append(Chart(quantity.words, ROUNDS, axis, [Line("", x, y), *budget]))
    return figure_of(charts, 2, (COLUMN_WIDTH_IN, RUN_PANEL_HEIGHT_IN), look)


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
