"""Colours and dashes of curves, the same in figures, reports and the studio; nothing here needs matplotlib.

The colours are Okabe and Ito's, which people with the common colour-vision deficiencies can tell apart; line styles and
markers tell the same curves apart in grey.
"""

from __future__ import annotations

from dataclasses import dataclass


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
