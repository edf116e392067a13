"""Claims of a paper as numbers per seed, and what runs say to each: findings = judged(results.plan, rounds, claims).

A claim says that something is ahead of something else, or gives a number. It becomes one number per seed and rival,
positive where the seed speaks for the claim, or evidence of another kind. The evidence for and against each gives its
verdict, corrected for how many claims there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar, Protocol

import polars as pl

from feelstream.display.quantities import QUANTITIES, number, significant
from feelstream.experiment.measures import with_interval
from feelstream.experiment.plan import Plan
from feelstream.experiment.runs import Series, Span, series
from feelstream.experiment.statistics import (
    LEAST_SEEDS,
    Interval,
    holm,
    interval,
    one_sided_p,
    prediction,
    sign_flip,
    two_sided,
)  # fmt: skip
from feelstream.scenario import Scenario

DIGITS = {"nat": 3, "pp": 2}  # of an effect that is shown; others have 1
ALPHA = 0.05  # for all claims together, by Holm's correction

PerSeed = dict[int, float]


class Evidence(Protocol):
    """What speaks for a claim, how sure it is to be above 0, and where one further run falls.

    p_values: one-sided, of sign·mean ≤ 0: by Student's t, and by a test that assumes no distribution.
    """

    @property
    def interval(self) -> Interval: ...
    @property
    def predicted(self) -> Interval: ...
    def shifted(self, by: float) -> Evidence: ...
    def p_values(self, sign: int) -> tuple[float, float]: ...


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
class Finding:
    """A claim, judged. p values are two-sided; None where there are too few seeds for a verdict."""

    claim: Claim
    scenario: Scenario  # of the claim's first arm
    effects: Mapping[str, Interval]  # rival → the lead over it
    predicted: Interval  # of one run, for the effect that decides
    p: float | None = None  # t-test
    p_flip: float | None = None  # sign flips, or resamples
    p_holm: float | None = None  # t-test, after Holm's correction over all claims
    verdict: Verdict = Verdict.TOO_FEW

    @property
    def ours(self) -> Interval:
        """The effect that decides: the least lead, where a claim names several rivals."""
        return min(self.effects.values(), key=lambda effect: effect.mean)

    @property
    def higher(self) -> bool:
        """Whether every lead is above 0 by its own 95 % interval: more than a claim to be as good asks for."""
        return all(effect.low is not None and effect.low > 0 for effect in self.effects.values())

    @property
    def flips_agree(self) -> bool:
        """Whether the permutation test, uncorrected, sees what the t-test saw."""
        decided = self.verdict not in (Verdict.OPEN, Verdict.TOO_FEW)
        return not decided or (self.p_flip is not None and self.p_flip <= ALPHA)

    def as_dict(self) -> dict[str, Any]:
        claim, ours = self.claim, self.ours
        return {
            "key": claim.key,
            "panel": claim.panel,
            "claim": claim.statement,
            "paper": claim.paper,
            "quote": claim.quote,
            "used_to_choose_settings": claim.fitted,
            "measure": claim.measure,
            "unit": claim.unit,
            "test": str(claim.test),
            **_ends(ours),
            "seeds": ours.n,
            "effects": [{"rival": rival, **_ends(effect)} for rival, effect in self.effects.items()],
            "one_run_low": self.predicted.low,
            "one_run_high": self.predicted.high,
            "p": self.p,
            "p_sign_flip": self.p_flip,
            "p_holm": self.p_holm,
            "verdict": str(self.verdict),
            **({"also_higher": self.higher} if isinstance(claim.test, NotBehind) else {}),
        }


def _ends(effect: Interval) -> dict[str, float | None]:
    return {"mean": effect.mean, "low": effect.low, "high": effect.high}


def p_values(effects: Sequence[Evidence]) -> tuple[tuple[float, float], tuple[float, float]]:
    """One-sided p values for a claim and against it, by the t-test and by flips, of effects over two seeds or more.

    The claim is true only if all effects are above 0. For it speaks only what speaks for every effect, p = max p_i (an
    intersection-union test, which needs no correction); against it, what speaks against any, p = min(1, m · min p_i),
    Bonferroni's correction over m effects.
    """
    (more, flips_more), (less, flips_less) = (
        zip(*(each.p_values(sign) for each in effects), strict=True) for sign in (1, -1)
    )
    against, flips_against = (min(1.0, len(effects) * min(each)) for each in (less, flips_less))
    return (max(more), max(flips_more)), (against, flips_against)


def judged(plan: Plan, rounds: pl.DataFrame, claims: Iterable[Claim]) -> list[Finding]:
    """Every one of the claims that the runs of a plan can speak to."""
    scenarios = {arm.label: arm.scenario for arm in plan.arms}
    measured = Measured(rounds)
    found: list[tuple[Finding, bool]] = []
    for claim in claims:
        values = claim.effects(measured) if all(arm in scenarios for arm in claim.arms) else None
        if values is not None:
            found.append(_tested(claim, scenarios[claim.arms[0]], values))
    adjusted = iter(holm([finding.p for finding, _ in found if finding.p is not None]))
    return [finding if finding.p is None else _decided(finding, against, next(adjusted)) for finding, against in found]


def _tested(claim: Claim, scenario: Scenario, values: Effects) -> tuple[Finding, bool]:
    """With its p values, and whether more speaks against the claim than for it."""
    effects = {rival: Paired(each.values()) if isinstance(each, dict) else each for rival, each in values.items()}
    least = min(effects.values(), key=lambda each: each.interval.mean)
    intervals = {rival: each.interval for rival, each in effects.items()}
    finding = Finding(claim, scenario, intervals, least.predicted)
    if min(each.n for each in intervals.values()) < LEAST_SEEDS:
        return finding, False
    more, less = p_values([each.shifted(claim.test.margin) for each in effects.values()])
    p, p_flip = (two_sided(*pair) for pair in zip(more, less, strict=True))
    return replace(finding, p=p, p_flip=p_flip), less[0] < more[0]


def _decided(finding: Finding, against: bool, p_holm: float) -> Finding:
    test, one_run = finding.claim.test, finding.predicted
    verdict = Verdict.REPRODUCED
    if p_holm > ALPHA:
        verdict = Verdict.OPEN
    elif against:
        verdict = Verdict.FAILED
    elif isinstance(test, Published) and not (
        one_run.low is not None and one_run.high is not None and one_run.low <= test.number <= one_run.high
    ):
        verdict = Verdict.DIRECTION
    return replace(finding, p_holm=p_holm, verdict=verdict)


def ours(finding: Finding) -> str:
    """The mean and its 95 % interval; one per rival where a claim names several."""
    digits, unit = DIGITS.get(finding.claim.unit, 1), finding.claim.unit
    signed = not isinstance(finding.claim.test, Published)
    told = {rival: with_interval(effect, digits, unit, signed) for rival, effect in finding.effects.items()}
    if len(told) == 1:
        return told.popitem()[1]
    return "; ".join(f"over {rival} {effect}" for rival, effect in told.items())


def one_run(finding: Finding) -> str:
    """The prediction interval that a published number is held against; a dash where there is no such number."""
    low, high, digits = finding.predicted.low, finding.predicted.high, DIGITS.get(finding.claim.unit, 1)
    if not isinstance(finding.claim.test, Published) or low is None or high is None:
        return "–"
    return f"[{number(low, digits)}, {number(high, digits)}]"


def chance(p: float | None) -> str:
    """A p value: two significant digits, and never 0."""
    if p is None:
        return "–"
    return "< 0.0001" if p < 1e-4 else significant(p, 2)
