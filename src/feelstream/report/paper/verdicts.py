"""From an interval to a verdict: the stated test behind every claim.

All intervals are two-sided 95 % t intervals over seeds of a per-seed number; arms share seeds, hence worlds, so a
difference between arms is a paired one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from feelstream.experiment.statistics import Interval


class Verdict(StrEnum):
    REPRODUCED = "reproduced"
    DIRECTION = "direction only"
    FAILED = "not reproduced"
    OPEN = "not distinguishable"
    NO_INTERVAL = "no interval"


EXPLAINED: dict[Verdict, str] = {
    Verdict.REPRODUCED: "the test of the claim is passed",
    Verdict.DIRECTION: "the effect has the paper's sign, but the paper's value is outside our interval",
    Verdict.FAILED: "the interval speaks against the claim",
    Verdict.OPEN: "the interval leaves the claim open",
    Verdict.NO_INTERVAL: "one seed gives no interval, and without an interval there is no verdict",
}


@dataclass(frozen=True)
class Ahead:
    """Reproduced if the whole interval is above 0; not reproduced if it is below 0; else not distinguishable."""

    def judge(self, low: float, high: float) -> Verdict:
        if low > 0:
            return Verdict.REPRODUCED
        return Verdict.FAILED if high < 0 else Verdict.OPEN

    def __str__(self) -> str:
        return "95 % interval above 0"


@dataclass(frozen=True)
class NotBehind:
    """Reproduced if the interval is above −margin (level, or ahead); not reproduced if it is below 0 and reaches past
    −margin; else not distinguishable."""

    margin: float
    unit: str

    def judge(self, low: float, high: float) -> Verdict:
        if low > -self.margin:
            return Verdict.REPRODUCED
        return Verdict.FAILED if high < 0 else Verdict.OPEN

    def __str__(self) -> str:
        return f"95 % interval above −{self.margin:g} {self.unit}"


@dataclass(frozen=True)
class Size:
    """Reproduced if the interval is above 0 and holds the paper's value; direction only if it is above 0 and does not;
    not reproduced if it is below 0; else not distinguishable."""

    paper: float

    def judge(self, low: float, high: float) -> Verdict:
        if low > 0:
            return Verdict.REPRODUCED if low <= self.paper <= high else Verdict.DIRECTION
        return Verdict.FAILED if high < 0 else Verdict.OPEN

    def __str__(self) -> str:
        return f"95 % interval above 0 and holding {self.paper:g}"


Test = Ahead | NotBehind | Size


def judge(test: Test, interval: Interval) -> Verdict:
    """The verdict of a test; none without an interval."""
    if interval.low is None or interval.high is None:
        return Verdict.NO_INTERVAL
    return test.judge(interval.low, interval.high)
