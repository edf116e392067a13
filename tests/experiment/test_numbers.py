"""Numbers in words: no exponents, one kind of minus sign."""

from __future__ import annotations

import pytest

from feelstream.display.quantities import number, significant
from feelstream.experiment.measures import with_interval
from feelstream.experiment.statistics import Interval, interval


@pytest.mark.parametrize(
    ("value", "digits", "signed", "text"),
    [(-1.256, 2, False, "−1.26"), (1.2, 2, True, "+1.20"), (-0.001, 2, True, "0.00"), (3.1e5, 0, False, "310000")],
)
def test_fixed_decimals(value: float, digits: int, signed: bool, text: str) -> None:
    assert number(value, digits, signed) == text


@pytest.mark.parametrize(
    ("value", "text"), [(312.4, "310"), (98.4, "98"), (7.04, "7.0"), (0.0123, "0.012"), (-2.54e3, "−2500"), (0.0, "0")]
)
def test_significant_digits_are_written_out(value: float, text: str) -> None:
    assert significant(value, 2) == text


def test_intervals() -> None:
    one: Interval = interval([-1.0])
    assert with_interval(one, 1, "pp", signed=True) == "−1.0 pp"
    # The t quantile of one degree of freedom is 12.706, s/√2 is 1.
    assert with_interval(interval([-1.0, 1.0]), 2) == "0.00 [−12.71, 12.71]"
