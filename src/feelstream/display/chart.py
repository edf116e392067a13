"""A chart as data, in the units that it shows: axes, lines with intervals and single seeds, and the styles of lines.

Paper, pages and the studio draw it; nothing here needs matplotlib. The colours are Okabe and Ito's, which people with
the common colour-vision deficiencies can tell apart; line styles and markers tell the same curves apart in grey.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import floor, log10
from typing import Literal

from feelstream.display.quantities import ROUND_AXIS, Quantity

MOST_BANDS = 8  # lines of a chart whose intervals are shaded; more shades would hide the lines
DECADES = 1.5  # from the smallest to the largest value: then a linear axis shows only the largest
NEAR = 4.0  # a limit within this factor of the values is worth the room that it takes
MOST_TICKS = 7

Ends = Sequence[tuple[float, float]]  # of the interval at each point; empty: there are none


@dataclass(frozen=True)
class Axis:
    """An axis; without limits or ticks, they are as the values have it.

    Attributes:
        label: Beside it.
        limits: Its ends.
        logarithmic: Whether its scale is.
        ticks: Places and texts.
        whole: Ticks stand at whole numbers only.
        down: Small values are at the top.
        by_error: In print, percentages are spread by the logarithm of what they lack of 100.
    """

    label: str
    limits: tuple[float, float] | None = None
    logarithmic: bool = False
    ticks: Sequence[tuple[float, str]] | None = None
    whole: bool = False
    down: bool = False
    by_error: bool = False


@dataclass(frozen=True)
class Line:
    """Points that belong together.

    Attributes:
        name: In the legend; empty: not there.
        x: Where the points are.
        y: Their means.
        style: Number of its `line_style`.
        role: A curve; points; a plain line that joins others' points; or a limit such as the budget.
        x_ends: Intervals across.
        y_ends: Intervals upwards.
        interval: How these are drawn: as a band, as bars, or not, and said where one points at the line on a page.
        filled: Whether markers are.
        steps: Whether a plain line goes right, then up.
        seeds: The curve of each seed, x and y.
        dots: All single values, x and y, where there are too few for an interval.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    style: int = 0
    role: Literal["mean", "point", "plain", "budget"] = "mean"
    x_ends: Ends = ()
    y_ends: Ends = ()
    interval: Literal["band", "bars", "words"] = "bars"
    filled: bool = False
    steps: bool = False
    seeds: Sequence[tuple[Sequence[float], Sequence[float]]] = ()
    dots: tuple[Sequence[float], Sequence[float]] = ((), ())


@dataclass(frozen=True)
class Chart:
    """What one set of axes shows.

    Attributes:
        title: Above it on a page.
        x: The axis along.
        y: The axis upwards.
        lines: From the back to the front.
        few: Whether single seeds stand for intervals.
        heading: Above it in a figure of several.
        notes: Place and text of words beside points.
    """

    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    few: bool = False
    heading: str = ""
    notes: Sequence[tuple[tuple[float, float], str]] = field(default=())


ROUNDS = Axis(ROUND_AXIS, whole=True)


def limits_of(
    quantity: Quantity, means: Sequence[float], lows: Sequence[float] = (), highs: Sequence[float] = ()
) -> tuple[float, float]:
    """An axis for the means: intervals widen it by up to the means' height on each side, within what is possible.

    Intervals over two or three seeds can be many times as wide as all lines together, and reach past what is possible
    (accuracy above 100 %); they run out of the picture instead of flattening it.
    """
    bottom, top = min(means), max(means)
    reach = (top - bottom) or 0.05 * abs(top) or 1.0
    low = max(min([bottom, *lows]), bottom - reach)
    high = min(max([top, *highs]), top + reach)
    edge = 0.04 * (high - low) or reach
    low = low - edge if quantity.least is None else max(low - edge, quantity.least)
    high = high + edge if quantity.most is None else min(high + edge, quantity.most)
    return (low, high) if low < high else (low, low + reach)


def logarithmic_axis(label: str, values: Iterable[float]) -> Axis:
    """From the least to the largest positive value, six decades at most; 1, 2, 5 of each decade are ticks."""
    positive = [value for value in values if value > 0]
    low, high = min(positive), max(positive)
    room = max(high / low, 1.5) ** 0.05
    limits = max(low, high * 1e-6) / room, high * room
    return Axis(label, limits, logarithmic=True, ticks=[(tick, f"{tick:g}") for tick in log_ticks(*limits)])


def quantity_axis(
    quantity: Quantity,
    values: Sequence[float],
    ends: Ends = (),
    decide: Sequence[float] | None = None,
    cut: bool = False,
) -> Axis:
    """For values in the quantity's own unit: logarithmic where those that decide (default: all) differ by decades.

    A logarithmic axis has no place for a line that touches 0; what reaches there of an interval runs out of it. A
    linear one shows whole intervals, or, if they may be cut, what `limits_of` says.
    """
    if quantity.logarithmic and spans_decades(values if decide is None else decide) and min(values) > 0:
        return logarithmic_axis(quantity.axis, values)
    lows, highs = [low for low, _ in ends], [high for _, high in ends]
    limits = limits_of(quantity, values, lows, highs) if cut else limits_of(quantity, [*values, *lows, *highs])
    return Axis(quantity.axis, limits, whole=quantity.digits == 0)


def spans_decades(values: Iterable[float]) -> bool:
    """Whether positive values differ so much that only a logarithmic axis shows them all.

    >>> spans_decades([0.5, 40.0]), spans_decades([1.0, 8.0]), spans_decades([0.0, 3.0])
    (True, False, False)
    """
    positive = [value for value in values if value > 0]
    return len(positive) > 1 and max(positive) / min(positive) >= 10**DECADES


def log_ticks(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis between two positive values: 1, 2, 5 of each decade, or decades if they are many.

    >>> log_ticks(0.3, 7.0), log_ticks(0.03, 70.0)
    ([0.5, 1.0, 2.0, 5.0], [0.1, 1.0, 10.0])
    """
    steps = (1, 2, 5) if high < 100 * low else (1,)
    decades = range(floor(log10(low)), floor(log10(high)) + 1)
    ticks = [tick for power in decades for step in steps if low <= (tick := step * 10.0**power) <= high]
    return ticks[:: -(-len(ticks) // MOST_TICKS) if len(steps) == 1 and ticks else 1]


def budget_line(budget_j: float, quantity: Quantity, x: Sequence[float], ends: Sequence[float]) -> Line:
    """The budget across; where an axis that reached it would crush the curves, its value in the legend alone.

    ends: where the curves end, in the quantity's unit.
    """
    budget = budget_j * quantity.scale
    if budget > 0 and min(ends) / NEAR <= budget <= max(ends) * NEAR:
        return Line("budget", (min(x), max(x)), (budget, budget), role="budget")
    return Line(f"budget: {budget:g} {quantity.unit}, off the axis", (), (), role="budget")


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
