"""The axis of accuracies in a Pareto plot: logarithmic in the error where the good ones would stick together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

GOOD = 90.0  # %; from here on, differences are differences of the error
SPAN = 12.0  # points between the best and the worst, from which on the axis is bent
BEYOND = 0.5  # points above 100 %, so that an accuracy of 100 % has a place
TICKS = (0, 20, 40, 50, 60, 70, 75, 80, 85, 90, 92, 94, 95, 96, 97, 98, 99, 100)
CLOSE = 0.045  # of the height: ticks nearer than this to the one below are left out


def bent(accuracies: Sequence[float]) -> bool:
    return len(accuracies) > 0 and max(accuracies) > GOOD and max(accuracies) - min(accuracies) > SPAN


def bend(axes: Axes, low: float, high: float) -> None:
    """Accuracies from low to high, %, by the logarithm of the error."""
    axes.set_yscale("function", functions=(_place, _accuracy))
    axes.set_ylim(low, high)
    first, last = _place([low, high])
    shown: list[int] = []
    for tick in TICKS:
        at = (float(_place([tick])[0]) - first) / (last - first)
        if 0 <= at <= 1 and (not shown or at - (float(_place([shown[-1]])[0]) - first) / (last - first) >= CLOSE):
            shown.append(tick)
    axes.set_yticks(shown, [str(tick) for tick in shown])
    axes.set_yticks([], minor=True)


def _place(accuracy: ArrayLike) -> NDArray[np.float64]:
    return -np.log(100 + BEYOND - np.minimum(np.asarray(accuracy, float), 100.0))


def _accuracy(place: ArrayLike) -> NDArray[np.float64]:
    return 100 + BEYOND - np.exp(-np.asarray(place, float))
