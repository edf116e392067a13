"""What pages and the terminal show of a finding."""

from __future__ import annotations

from feelstream.display.quantities import number, significant
from feelstream.experiment.measures import with_interval
from feelstream.studies.claims.claim import NotBehind, Published
from feelstream.studies.claims.judging import Finding, Verdict

DIGITS = {"nat": 3, "pp": 2}


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


def verdict(finding: Finding) -> str:
    also = ""
    if isinstance(finding.claim.test, NotBehind) and finding.verdict is Verdict.REPRODUCED:
        also = ", and higher" if finding.higher else ", not shown to be higher"
    return f"{finding.verdict}{also}{' †' if finding.claim.fitted else ''}"
