"""Numbers as people read them: no exponents, and a true minus sign."""

from __future__ import annotations

from math import floor, log10

from feelstream.experiment.statistics import Interval

MINUS = "−"


def number(value: float, digits: int, signed: bool = False) -> str:
    """With `digits` decimals; zero has no sign, even where rounding made it."""
    text = f"{value:{'+' if signed else ''}.{digits}f}"
    return (text if float(text) else text.lstrip("+-")).replace("-", MINUS)


def significant(value: float, digits: int) -> str:
    """With so many significant digits, written out: 312.4 to two digits is 310."""
    if value == 0:
        return "0"
    last = digits - 1 - floor(log10(abs(value)))
    return number(round(value, last), max(last, 0))


def with_interval(value: Interval, digits: int, unit: str = "", signed: bool = False) -> str:
    """mean unit [low, high]; the mean alone for one seed."""
    mean = " ".join(part for part in (number(value.mean, digits, signed), unit) if part)
    if value.low is None or value.high is None:
        return mean
    return f"{mean} [{number(value.low, digits, signed)}, {number(value.high, digits, signed)}]"
