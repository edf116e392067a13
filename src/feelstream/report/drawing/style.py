"""One look for every figure: sizes, letters, and the colours of `feelstream.line_styles`."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from matplotlib.cbook import is_math_text
from matplotlib.mathtext import MathTextParser

from feelstream.line_styles import LINE_STYLES, LineStyle, line_style

__all__ = [
    "COLUMN_WIDTH_IN", "LINE_STYLES", "PANEL_HEIGHT_IN", "PNG_DPI", "RC", "LineStyle", "legible",
    "line_colour", "line_style",
]  # fmt: skip

COLUMN_WIDTH_IN = 3.5  # one column of a two-column paper
PANEL_HEIGHT_IN = 2.45
PNG_DPI = 200


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
