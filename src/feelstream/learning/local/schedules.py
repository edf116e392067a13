"""How the learning rate changes from round to round."""

from __future__ import annotations

from math import cos, pi
from typing import Literal

Schedule = Literal["constant", "step", "cosine", "inverse"]


def factor(schedule: Schedule, round: int, rounds: int, *, decay: float, every: int, floor: float) -> float:
    """What the learning rate of round t of T is multiplied by; 1 in the first round.

    constant: 1
    step:     decay^⌊(t − 1)/every⌋
    cosine:   floor + (1 − floor)(1 + cos(π (t − 1)/T)) / 2
    inverse:  1 / (1 + decay (t − 1)/every)

    >>> [factor("step", t, 4, decay=0.5, every=2, floor=0.0) for t in (1, 2, 3, 4)]
    [1.0, 1.0, 0.5, 0.5]
    >>> factor("inverse", 11, 40, decay=0.5, every=10, floor=0.0) * 1.5
    1.0
    """
    before = round - 1
    match schedule:
        case "constant":
            return 1.0
        case "step":
            return decay ** (before // every)
        case "cosine":
            return floor + (1 - floor) * (1 + cos(pi * before / rounds)) / 2
        case "inverse":
            return 1 / (1 + decay * before / every)
