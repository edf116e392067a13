"""The legend of a figure: below the axes, so that it never covers a curve, and never wider than the figure."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend

BUDGET = "budget"  # how the name of the line across begins
LETTER = 0.6  # width of a letter, as a part of the font's size: names are broken by it
HANDLE_IN = 0.45  # what the sample of a line takes beside its name


def legend_below(figure: Figure, panels: Sequence[Axes], grow: bool = True) -> None:
    """Every name of the panels once, in as many columns as the figure's width allows; long names are broken.

    grow: make the figure higher by what the legend needs beyond one line, so that the panels keep their size.
    """
    entries: dict[str, Any] = {}
    for axes in panels:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    if not entries:
        return
    width = figure.get_figwidth()
    names = sorted(entries, key=lambda name: name.startswith(BUDGET))  # the policies first, in their order
    handles = [entries[name] for name in names]
    legend = _placed(figure, handles, names, len(names))
    for columns in _columns(len(names)):
        if _inches(figure, legend)[0] <= width:
            break
        legend.remove()
        legend = _placed(figure, handles, names, columns)
    if _inches(figure, legend)[0] > width:
        legend.remove()
        size_in = float(legend.get_texts()[0].get_fontsize()) / 72
        letters = max(int((width - HANDLE_IN) / (LETTER * size_in)), 8)
        legend = _placed(figure, handles, ["\n".join(wrap(name, letters)) for name in names], 1)
    if grow:
        line_in = 1.5 * float(legend.get_texts()[0].get_fontsize()) / 72
        figure.set_figheight(figure.get_figheight() + max(_inches(figure, legend)[1] - 2 * line_in, 0.0))


def _columns(count: int) -> Sequence[int]:
    """Numbers of columns below the most, without those that only leave gaps: of five names 3, 2, 1."""
    return list(dict.fromkeys(-(-count // rows) for rows in range(2, count + 1)))


def _placed(figure: Figure, handles: Sequence[Any], names: Sequence[str], columns: int) -> Legend:
    return figure.legend(handles, names, loc="outside lower center", ncols=columns, columnspacing=1.2)


def _inches(figure: Figure, legend: Legend) -> tuple[float, float]:
    box = legend.get_window_extent()
    return box.width / figure.dpi, box.height / figure.dpi
