"""One look for every figure: sizes, letters, and the colours of `feelstream.display.line_styles`."""

from __future__ import annotations

from matplotlib.cbook import is_math_text
from matplotlib.mathtext import MathTextParser

from feelstream.display.line_styles import LINE_STYLES, LineStyle, line_style
from feelstream.display.picture import BUDGET_LINE, COLUMN_WIDTH_IN, PANEL_HEIGHT_IN, PNG_DPI, RC, line_colour

__all__ = [
    "BUDGET_LINE", "COLUMN_WIDTH_IN", "LINE_STYLES", "PANEL_HEIGHT_IN", "PNG_DPI", "RC", "LineStyle", "legible",
    "line_colour", "line_style",
]  # fmt: skip


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
