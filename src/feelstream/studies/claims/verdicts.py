"""From tests to a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from feelstream.experiment.statistics import LEAST_SEEDS, Interval

ALPHA = 0.05  # for all claims together, by Holm's correction


class Verdict(StrEnum):
    REPRODUCED = "reproduced"
    DIRECTION = "direction only"
    FAILED = "not reproduced"
    OPEN = "undecided"
    TOO_FEW = "too few seeds"


EXPLAINED: dict[Verdict, str] = {
    Verdict.REPRODUCED: "the effect has the claimed sign beyond chance (or is above minus the margin, where the claim "
    "is to be as good), and a published number is one that a single run of ours could have given",
    Verdict.DIRECTION: "the effect has the claimed sign beyond chance, but the published number is outside the "
    "prediction interval of one run",
    Verdict.FAILED: "the effect has the opposite sign (or is below minus the margin) beyond chance",
    Verdict.OPEN: "either sign is possible",
    Verdict.TOO_FEW: f"there is no verdict below {LEAST_SEEDS} seeds",
}


@dataclass(frozen=True)
class Ahead:
    """The claim is a sign: ahead of every rival that is named."""

    def __str__(self) -> str:
        return "lead above 0"


@dataclass(frozen=True)
class Published:
    """The claim is a number of one run; it is met if it lies in the prediction interval of one of ours."""

    number: float
    unit: str

    def __str__(self) -> str:
        return f"above 0, and {self.number:g} {self.unit} in the prediction interval of one run"


@dataclass(frozen=True)
class NotBehind:
    """The claim is "as good as, or better": behind no rival by a margin, which was fixed before the runs."""

    margin: float
    unit: str

    def __str__(self) -> str:
        return f"lead above −{self.margin:g} {self.unit}"


Test = Ahead | Published | NotBehind


def margin_of(test: Test) -> float:
    """What is added to every effect before it is tested against 0."""
    return test.margin if isinstance(test, NotBehind) else 0.0


def judge(test: Test, p_for: float, p_against: float, adjusted: float, predicted: Interval) -> Verdict:
    """The verdict from the one-sided p values for and against, the two-sided one after Holm, and one run's interval."""
    if adjusted > ALPHA:
        return Verdict.OPEN
    if p_against < p_for:
        return Verdict.FAILED
    if not isinstance(test, Published) or holds(predicted, test.number):
        return Verdict.REPRODUCED
    return Verdict.DIRECTION


def holds(interval: Interval, number: float) -> bool:
    return interval.low is not None and interval.high is not None and interval.low <= number <= interval.high
