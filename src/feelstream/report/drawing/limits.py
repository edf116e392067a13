"""From where to where an axis goes, and whether it is logarithmic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from feelstream.arrays import Reals
from feelstream.display.quantities import Quantity

MOST_BANDS = 8  # arms of a chart whose intervals are shaded; more shades would hide the lines


def axis_limits(
    quantity: Quantity, means: Sequence[float], lows: Sequence[float], highs: Sequence[float]
) -> tuple[float, float]:
    """An axis for the lines: bands widen it by up to the lines' height on each side, within what is possible.

    Intervals over two or three seeds can be many times as wide as all lines together, and reach past what is possible
    (accuracy above 100 %); they run out of the picture instead of flattening it. Lists may be empty but for means; all
    in the quantity's unit.
    """
    bottom, top = min(means), max(means)
    reach = (top - bottom) or 0.05 * abs(top) or 1.0
    low = max(min([bottom, *lows]), bottom - reach)
    high = min(max([top, *highs]), top + reach)
    edge = 0.04 * (high - low) or reach
    low = low - edge if quantity.least is None else max(low - edge, quantity.least)
    high = high + edge if quantity.most is None else min(high + edge, quantity.most)
    return (low, high) if low < high else (low, low + reach)


DECADES = 1.5  # from the smallest to the largest value at the end: then a linear axis shows only the largest


def wants_logarithm(quantity: Quantity, ends: Iterable[float], means: Iterable[float]) -> bool:
    """Whether lines that end here are shown on a logarithmic axis, which has no place for a line that touches 0."""
    return quantity.logarithmic and spans_decades(ends) and min(means) > 0


def spans_decades(values: Iterable[float]) -> bool:
    """Whether positive values differ so much that only a logarithmic axis shows them all.

    >>> spans_decades([0.5, 40.0]), spans_decades([1.0, 8.0]), spans_decades([0.0, 3.0])
    (True, False, False)
    """
    positive = [value for value in values if value > 0]
    return len(positive) > 1 and max(positive) / min(positive) >= 10**DECADES


def final_values(curves: pl.DataFrame) -> Reals:
    """The mean of each arm in its last round; curves: rows (arm, round, mean)."""
    return curves.sort("round").group_by("arm", maintain_order=True).last()["mean"].to_numpy()


def log_limits(values: Iterable[float]) -> tuple[float, float]:
    """The least and the largest positive value with some room around; at most six decades, whatever one dot says."""
    positive = [value for value in values if value > 0]
    low, high = min(positive), max(positive)
    room = max(high / low, 1.5) ** 0.05
    return max(low, high * 1e-6) / room, high * room
