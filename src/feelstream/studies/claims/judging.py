"""The evidence for and against each claim, and the verdict, corrected for how many claims there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from feelstream.experiment.plan import Plan
from feelstream.experiment.significance import holm, one_sided_p, prediction, sign_flip, two_sided
from feelstream.experiment.statistics import Interval, interval
from feelstream.scenario import Scenario
from feelstream.studies.claims.claim import Claim, Measured, PerSeed
from feelstream.studies.claims.verdicts import ALPHA, Ahead, Verdict, judge


@dataclass(frozen=True)
class Effect:
    """One number per seed behind a claim; `rival` names what it is measured against."""

    rival: str
    interval: Interval


@dataclass(frozen=True)
class Finding:
    """A claim, judged. p values are two-sided; None where one seed gives none."""

    claim: Claim
    scenario: Scenario  # of the claim's first arm
    effects: tuple[Effect, ...]
    predicted: Interval  # of one run, for the effect that decides
    p: float | None  # t-test
    p_flip: float | None  # sign flips
    p_holm: float | None  # t-test, after Holm's correction over all claims
    verdict: Verdict

    @property
    def ours(self) -> Interval:
        """The effect that decides: the least lead, where a claim names several rivals."""
        return min((effect.interval for effect in self.effects), key=lambda each: each.mean)

    @property
    def flips_agree(self) -> bool:
        """Whether the permutation test, uncorrected, sees what the t-test saw."""
        decided = self.verdict not in (Verdict.OPEN, Verdict.NO_INTERVAL)
        return not decided or (self.p_flip is not None and self.p_flip <= ALPHA)

    def as_dict(self) -> dict[str, Any]:
        return {
            "key": self.claim.key,
            "panel": self.claim.panel,
            "claim": self.claim.statement,
            "paper": self.claim.paper,
            "wording": self.claim.wording,
            "used_to_choose_settings": self.claim.fitted,
            "measure": self.claim.measure,
            "unit": self.claim.unit,
            "test": str(self.claim.test),
            "mean": self.ours.mean,
            "low": self.ours.low,
            "high": self.ours.high,
            "seeds": self.ours.n,
            "effects": [
                {"rival": each.rival, "mean": each.interval.mean, "low": each.interval.low, "high": each.interval.high}
                for each in self.effects
            ],
            "one_run_low": self.predicted.low,
            "one_run_high": self.predicted.high,
            "p": self.p,
            "p_sign_flip": self.p_flip,
            "p_holm": self.p_holm,
            "verdict": str(self.verdict),
        }


@dataclass(frozen=True)
class PValues:
    """The two one-sided p values of a claim, by each of two tests."""

    p_for: float
    p_against: float
    flip_for: float
    flip_against: float


def p_values(effects: Sequence[PerSeed]) -> PValues | None:
    """Of a claim that is true only if all effects are above 0; None for fewer than two seeds.

    For it speaks only what speaks for every effect, p = max p_i (an intersection-union test, which needs no
    correction); against it, what speaks against any, p = min(1, m · min p_i), Bonferroni's correction over m effects.
    """
    found = []
    for test in (one_sided_p, sign_flip):
        more = [test(list(values.values())) for values in effects]
        less = [test([-value for value in values.values()]) for values in effects]
        if None in more or None in less:
            return None
        found += [max(p for p in more if p is not None), min(1.0, len(effects) * min(p for p in less if p is not None))]
    return PValues(*found)


def judged(plan: Plan, rounds: pl.DataFrame, claims: Iterable[Claim]) -> list[Finding]:
    """Every one of the claims that the runs of a plan can speak to."""
    scenarios = {arm.label: arm.scenario for arm in plan.arms}
    measured = Measured(rounds)
    found: list[tuple[Finding, PValues | None]] = []
    for claim in claims:
        if not all(arm in scenarios for arm in claim.arms):
            continue
        values = claim.effects(measured)
        if values is None:
            continue
        effects = tuple(Effect(rival, interval(list(each.values()))) for rival, each in values.items())
        least = min(values.values(), key=lambda each: sum(each.values()) / len(each))
        test = p_values(list(values.values()))
        finding = Finding(
            claim,
            scenarios[claim.arms[0]],
            effects,
            prediction(list(least.values())),
            None if test is None else two_sided(test.p_for, test.p_against),
            None if test is None else two_sided(test.flip_for, test.flip_against),
            None,
            Verdict.NO_INTERVAL,
        )
        found.append((finding, test))
    adjusted = iter(holm([finding.p for finding, _ in found if finding.p is not None]))
    return [finding if test is None else _decided(finding, test, next(adjusted)) for finding, test in found]


def _decided(finding: Finding, test: PValues, p_holm: float) -> Finding:
    verdict = judge(finding.claim.test, test.p_for, test.p_against, p_holm, finding.predicted)
    return replace(finding, p_holm=p_holm, verdict=verdict)


def evidence(findings: Sequence[Finding]) -> list[Finding]:
    """Those that were not used to choose the settings."""
    return [finding for finding in findings if not finding.claim.fitted]


def is_lead(finding: Finding) -> bool:
    return isinstance(finding.claim.test, Ahead)
