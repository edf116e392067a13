"""Claims as numbers per seed.

A claim says that something is ahead of something else, or gives a number. It becomes one number per seed and rival,
positive where the seed speaks for the claim, or evidence of another kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import polars as pl

from feelstream.display.quantities import QUANTITIES
from feelstream.experiment.significance import one_sided_p, prediction, sign_flip
from feelstream.experiment.statistics import Interval, Series, Span, interval, series

PerSeed = dict[int, float]


class Evidence(Protocol):
    """What speaks for a claim, and how sure it is to be above 0."""

    @property
    def interval(self) -> Interval: ...

    @property
    def predicted(self) -> Interval:
        """Where one further run falls."""
        ...

    def shifted(self, by: float) -> Evidence: ...

    def p_values(self, sign: int) -> tuple[float, float]:
        """One-sided, of sign·mean ≤ 0: by Student's t, and by a test that assumes no distribution."""
        ...


class Paired:
    """A number per seed, tested by Student's t and by sign flips."""

    def __init__(self, values: Iterable[float]) -> None:
        self.values = list(values)
        self.interval, self.predicted = interval(self.values), prediction(self.values)

    def shifted(self, by: float) -> Paired:
        return Paired(value + by for value in self.values)

    def p_values(self, sign: int) -> tuple[float, float]:
        values = [sign * value for value in self.values]
        return one_sided_p(values), sign_flip(values)


Effects = Mapping[str, PerSeed | Evidence]  # rival → what speaks for being ahead of it


class Measured:
    """The per-seed series of a set of runs, read once each."""

    def __init__(self, rounds: pl.DataFrame) -> None:
        self._arms = {str(arm): table for (arm,), table in rounds.group_by("arm", maintain_order=True)}
        self._known: dict[tuple[str, str], Series | None] = {}

    def series(self, arm: str, column: str) -> Series | None:
        if (arm, column) not in self._known:
            rows = self._arms.get(arm)
            self._known[arm, column] = None if rows is None else series(rows, arm, column)
        return self._known[arm, column]

    def over(self, arm: str, column: str, span: Span) -> PerSeed | None:
        found = self.series(arm, column)
        return None if found is None else found.over(span)

    def lead(self, ahead: str, behind: str, column: str, span: Span) -> PerSeed | None:
        """By how much one arm is better than another, per seed, in the unit of a gap; positive is better."""
        a, b = self.over(ahead, column, span), self.over(behind, column, span)
        if a is None or b is None:
            return None
        factor = QUANTITIES[column].scale * (-1 if QUANTITIES[column].better == "lower" else 1)
        return {seed: factor * (a[seed] - b[seed]) for seed in a if seed in b} or None


@dataclass(frozen=True)
class Ahead:
    """The claim is a sign: ahead of every rival that is named."""

    margin: ClassVar[float] = 0.0

    def __str__(self) -> str:
        return "lead above 0"


@dataclass(frozen=True)
class Published:
    """The claim is a number of one run; it is met if it lies in the prediction interval of one of ours."""

    number: float
    unit: str
    margin: ClassVar[float] = 0.0

    def __str__(self) -> str:
        return f"above 0, and {self.number:g} {self.unit} in the prediction interval of one run"


@dataclass(frozen=True)
class NotBehind:
    """The claim is "as good as, or better": behind no rival by a margin, which was fixed before the runs."""

    margin: float
    unit: str

    def __str__(self) -> str:
        return f"lead above −{self.margin:g} {self.unit}"


@dataclass(frozen=True)
class Claim:
    """One statement of a paper: what must be above 0, seed by seed, for it to be true.

    Attributes:
        key: Its name in claims.json.
        panel: Of which figure it speaks, as `Panel.key`.
        statement: In our words.
        paper: What the paper reports.
        measure: What is measured, in words.
        unit: Of the effects.
        test: How they are judged.
        arms: Labels of the runs that it needs.
        effects: What was measured → the effects, seed by seed; None where something is missing.
        fitted: Whether it was used to choose settings, and is therefore no evidence.
        quote: The clause that says so, in the paper's words, and its place: "… (5.1)".
    """

    key: str
    panel: str
    statement: str
    paper: str
    measure: str
    unit: str
    test: Ahead | Published | NotBehind
    arms: tuple[str, ...]
    effects: Callable[[Measured], Effects | None]
    fitted: bool = False
    quote: str = ""


def lead(ahead: str, rivals: dict[str, str], column: str, span: Span) -> Callable[[Measured], Effects | None]:
    """The lead over each rival (its name → its arm); None unless all of them were measured."""

    def effects(measured: Measured) -> Effects | None:
        leads = {name: measured.lead(ahead, rival, column, span) for name, rival in rivals.items()}
        known = {name: lead for name, lead in leads.items() if lead is not None}
        return known if len(known) == len(rivals) else None

    return effects


def share_saved(ours: str, rivals: dict[str, str]) -> Callable[[Measured], Effects | None]:
    """100 (1 − E_ours/E_rival) per seed, %; a seed in which the rival spent nothing does not count."""

    def effects(measured: Measured) -> Effects | None:
        saved: dict[str, PerSeed] = {}
        for name, rival in rivals.items():
            spent = measured.over(ours, "energy_mean_cum_j", "final")
            base = measured.over(rival, "energy_mean_cum_j", "final")
            if spent is None or base is None:
                return None
            saved[name] = {seed: 100 * (1 - spent[seed] / base[seed]) for seed in spent if base.get(seed, 0.0) > 0}
        return saved if all(saved.values()) else None

    return effects
