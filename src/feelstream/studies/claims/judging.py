"""The evidence for and against each claim, the verdict, corrected for how many claims there are, and both in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import polars as pl

from feelstream.display.quantities import number, significant
from feelstream.experiment.measures import with_interval
from feelstream.experiment.plan import Plan
from feelstream.experiment.significance import holm, two_sided
from feelstream.experiment.statistics import LEAST_SEEDS, Interval
from feelstream.scenario import Scenario
from feelstream.studies.claims.claim import Claim, Effects, Evidence, Measured, NotBehind, Paired, Published

DIGITS = {"nat": 3, "pp": 2}  # of an effect that is shown; others have 1
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
            "mean": ours.mean,
            "low": ours.low,
            "high": ours.high,
            "seeds": ours.n,
            "effects": [
                {"rival": rival, "mean": effect.mean, "low": effect.low, "high": effect.high}
                for rival, effect in self.effects.items()
            ],
            "one_run_low": self.predicted.low,
            "one_run_high": self.predicted.high,
            "p": self.p,
            "p_sign_flip": self.p_flip,
            "p_holm": self.p_holm,
            "verdict": str(self.verdict),
            **({"also_higher": self.higher} if isinstance(claim.test, NotBehind) else {}),
        }


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
