"""One look for every figure and chart: colours, line styles, sizes.

The colours are Okabe and Ito's, which people with the common colour-vision deficiencies can tell apart; line styles and
markers tell the same curves apart in grey.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.cbook import is_math_text
from matplotlib.mathtext import MathTextParser

COLUMN_WIDTH_IN = 3.5  # one column of a two-column paper
PANEL_HEIGHT_IN = 2.45
PNG_DPI = 200


@dataclass(frozen=True)
class LineStyle:
    """How one curve is drawn, on white (`light`) and on a dark page (`dark`)."""

    light: str
    dark: str
    mpl_dash: str | tuple[int, tuple[float, ...]]
    plotly_dash: str
    marker: str


LINE_STYLES: tuple[LineStyle, ...] = (
    LineStyle("#0072B2", "#4FB3E8", "-", "solid", "o"),  # blue
    LineStyle("#D55E00", "#FF8A3D", (0, (5, 1.6)), "dash", "s"),  # vermilion
    LineStyle("#009E73", "#35CFA0", (0, (4, 1.4, 1, 1.4)), "dashdot", "^"),  # bluish green
    LineStyle("#CC79A7", "#E79CC6", (0, (1.2, 1.2)), "dot", "D"),  # reddish purple
    LineStyle("#E69F00", "#F5BE45", (0, (8, 2)), "longdash", "v"),  # orange
    LineStyle("#56B4E9", "#9AD7FA", (0, (8, 1.5, 1.5, 1.5)), "longdashdot", "P"),  # sky blue
    LineStyle("#000000", "#E8E8E8", "-", "solid", "X"),  # black
)


def line_style(index: int) -> LineStyle:
    """The style of the index-th curve. Beyond the list, colours come again with another dash and another marker.

    >>> len({(s.light, s.plotly_dash, s.marker) for s in map(line_style, range(40))})
    40
    """
    first = LINE_STYLES[index % len(LINE_STYLES)]
    other = LINE_STYLES[(index + index // len(LINE_STYLES)) % len(LINE_STYLES)]
    return LineStyle(first.light, first.dark, other.mpl_dash, other.plotly_dash, other.marker)


def line_colour(index: int) -> str:
    """The colour of the index-th curve on paper; of the user's own cycle where matplotlib was given one."""
    cycle, shipped = mpl.rcParams["axes.prop_cycle"], mpl.rcParamsDefault["axes.prop_cycle"]
    colours = cycle.by_key().get("color", []) if cycle != shipped else []
    return str(colours[index % len(colours)]) if colours else line_style(index).light


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
