"""Findings in words: our number, and why a claim may not have come out."""

from __future__ import annotations

from feelstream.experiment.claims import Finding, Verdict
from feelstream.experiment.claims.verdicts import Published
from feelstream.experiment.statistics import Interval
from feelstream.report.numbers import number, significant, with_interval
from feelstream.scenario import Scenario

DIGITS = {"nat": 3, "pp": 2}
FITTED = "used to choose T and σ, therefore no evidence"
ELIGIBLE = {"any": "any device, whether or not it holds data", "with_data": "only devices that hold data"}
FRESH = {"per_round": "what arrived in this round", "since_use": "what arrived since the device was last used"}


def ours(finding: Finding) -> str:
    """The mean and its 95 % interval; one per rival where a claim names several."""
    digits, unit = DIGITS.get(finding.claim.unit, 1), finding.claim.unit
    signed = not isinstance(finding.claim.test, Published)
    if len(finding.effects) == 1:
        return with_interval(finding.ours, digits, unit, signed)
    return "; ".join(
        f"over {each.rival} {with_interval(each.interval, digits, unit, signed)}" for each in finding.effects
    )


def one_run(finding: Finding) -> str:
    """The prediction interval that a published number is held against; a dash where there is no such number."""
    if not isinstance(finding.claim.test, Published) or finding.predicted.low is None:
        return "–"
    return span(finding.predicted, DIGITS.get(finding.claim.unit, 1))


def span(interval: Interval, digits: int) -> str:
    low, high = interval.low, interval.high
    return "–" if low is None or high is None else f"[{number(low, digits)}, {number(high, digits)}]"


def chance(p: float | None) -> str:
    """A p value: two significant digits, and never 0."""
    if p is None:
        return "–"
    return "< 0.0001" if p < 1e-4 else significant(p, 2)


def verdict(finding: Finding) -> str:
    return f"{finding.verdict} †" if finding.claim.fitted else str(finding.verdict)


def settings(scenario: Scenario) -> str:
    """The readings and settings that the paper does not state, as these runs have them."""
    learning, data = scenario.learning, scenario.data
    sigma = getattr(data.arrivals, "sigma", None)
    parts = [f"T = {scenario.system.rounds} rounds"]
    if sigma is not None:
        parts.append(f"σ = {sigma:g} of the run")
    parts += [f"{learning.steps} SGD steps of {learning.batch} samples", f"learning rate {learning.lr:g}"]
    return f"{', '.join(parts)}, fresh data read as {FRESH[data.fresh]}, and {ELIGIBLE[data.eligible]} eligible"


def reason(finding: Finding) -> str:
    """What to make of a verdict that is not plainly for the claim; empty where there is nothing to add."""
    parts = []
    if finding.verdict is Verdict.NO_INTERVAL:
        parts.append("Give at least two seeds.")
    elif finding.verdict is Verdict.OPEN:
        half = significant(finding.ours.half_width or 0.0, 2)
        parts.append(
            f"{finding.ours.n} seeds leave it open (±{half} {finding.claim.unit}, p after Holm's correction "
            f"{chance(finding.p_holm)})."
        )
    elif finding.verdict is not Verdict.REPRODUCED:
        parts.append(f"The paper does not state its settings in full; these runs have {settings(finding.scenario)}.")
    if not finding.flips_agree:
        parts.append(f"The permutation test does not confirm it (p = {chance(finding.p_flip)}).")
    if finding.claim.fitted:
        parts.append(f"The published number was {FITTED}.")
    return " ".join(parts)
