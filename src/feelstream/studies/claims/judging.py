"""The evidence for and against each claim, and the verdict, corrected for how many claims there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from feelstream.experiment.plan import Plan
from feelstream.experiment.significance import holm, one_sided_p, prediction, sign_flip, two_sided
from feelstream.experiment.statistics import LEAST_SEEDS, Interval, interval
from feelstream.scenario import Scenario
from feelstream.studies.claims.claim import Claim, Evidence, Measured
from feelstream.studies.claims.resampling import Resampled
from feelstream.studies.claims.verdicts import ALPHA, NotBehind, Verdict, judge, margin_of


@dataclass(frozen=True)
class Effect:
    """The evidence behind a claim; `rival` names what it is measured against."""

    rival: str
    interval: Interval


@dataclass(frozen=True)
class Finding:
    """A claim, judged. p values are two-sided; None where there are too few seeds for a verdict."""

    claim: Claim
    scenario: Scenario  # of the claim's first arm
    effects: tuple[Effect, ...]
    predicted: Interval  # of one run, for the effect that decides
    p: float | None  # t-test
    p_flip: float | None  # sign flips, or resamples
    p_holm: float | None  # t-test, after Holm's correction over all claims
    verdict: Verdict

    @property
    def ours(self) -> Interval:
        """The effect that decides: the least lead, where a claim names several rivals."""
        return min((effect.interval for effect in self.effects), key=lambda each: each.mean)

    @property
    def higher(self) -> bool:
        """Whether every lead is above 0 by its own 95 % interval: more than a claim to be as good asks for."""
        return all(each.interval.low is not None and each.interval.low > 0 for each in self.effects)

    @property
    def flips_agree(self) -> bool:
        """Whether the permutation test, uncorrected, sees what the t-test saw."""
        decided = self.verdict not in (Verdict.OPEN, Verdict.TOO_FEW)
        return not decided or (self.p_flip is not None and self.p_flip <= ALPHA)

    def as_dict(self) -> dict[str, Any]:
        return {
            "key": self.claim.key,
            "panel": self.claim.panel,
            "claim": self.claim.statement,
            "paper": self.claim.paper,
            "quote": self.claim.quote,
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
            **({"also_higher": self.higher} if isinstance(self.claim.test, NotBehind) else {}),
        }


@dataclass(frozen=True)
class PValues:
    """The two one-sided p values of a claim, by each of two tests."""

    p_for: float
    p_against: float
    flip_for: float
    flip_against: float


def interval_of(evidence: Evidence) -> Interval:
    return evidence.interval if isinstance(evidence, Resampled) else interval(list(evidence.values()))


def _shifted(evidence: Evidence, by: float) -> Evidence:
    if isinstance(evidence, Resampled):
        return evidence.shifted(by)
    return {seed: value + by for seed, value in evidence.items()}


def _chances(evidence: Evidence) -> tuple[float | None, float | None, float | None, float | None]:
    """One-sided p values for and against by Student's t, then for and against by sign flips, or by resamples."""
    if isinstance(evidence, Resampled):
        return evidence.one_sided(1), evidence.one_sided(-1), evidence.share(1), evidence.share(-1)
    values = list(evidence.values())
    opposite = [-value for value in values]
    return one_sided_p(values), one_sided_p(opposite), sign_flip(values), sign_flip(opposite)


def p_values(effects: Sequence[Evidence]) -> PValues | None:
    """Of a claim that is true only if all effects are above 0; None for fewer than two seeds.

    For it speaks only what speaks for every effect, p = max p_i (an intersection-union test, which needs no
    correction); against it, what speaks against any, p = min(1, m · min p_i), Bonferroni's correction over m effects.
    """
    found = []
    for column in zip(*(_chances(each) for each in effects), strict=True):
        known = [p for p in column if p is not None]
        if len(known) < len(effects):
            return None
        found.append(min(1.0, len(effects) * min(known)) if len(found) % 2 else max(known))
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
        effects = tuple(Effect(rival, interval_of(each)) for rival, each in values.items())
        least = min(values.values(), key=lambda each: interval_of(each).mean)
        enough = min(effect.interval.n for effect in effects) >= LEAST_SEEDS
        test = p_values([_shifted(each, margin_of(claim.test)) for each in values.values()]) if enough else None
        finding = Finding(
            claim,
            scenarios[claim.arms[0]],
            effects,
            effects[0].interval if isinstance(least, Resampled) else prediction(list(least.values())),
            None if test is None else two_sided(test.p_for, test.p_against),
            None if test is None else two_sided(test.flip_for, test.flip_against),
            None,
            Verdict.TOO_FEW,
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
