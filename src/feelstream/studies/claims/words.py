"""Findings in words: our number, and why a claim may not be reproduced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from feelstream.experiment.measures import with_interval
from feelstream.experiment.statistics import LEAST_SEEDS, Interval
from feelstream.quantities import number, significant
from feelstream.studies.claims.judging import Finding
from feelstream.studies.claims.verdicts import NotBehind, Published, Verdict

DIGITS = {"nat": 3, "pp": 2}


def _nothing(finding: Finding) -> str:
    return ""


@dataclass(frozen=True)
class Wording:
    """How a study speaks of its claims."""

    heading: str = "Claims"
    fitted: str = ""  # why claims that are marked † are no evidence, as in "used to choose T, therefore no evidence"
    caveat: Callable[[Finding], str] = _nothing  # what to bear in mind where a claim is not reproduced


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
    also = ""
    if isinstance(finding.claim.test, NotBehind) and finding.verdict is Verdict.REPRODUCED:
        also = ", and higher" if finding.higher else ", not shown to be higher"
    return f"{finding.verdict}{also}{' †' if finding.claim.fitted else ''}"


def cited(quote: str) -> str:
    """A clause in quotation marks, and where it stands outside of them.

    >>> cited("it saves energy (5.1)")
    '“it saves energy” (5.1)'
    """
    clause, _, place = quote.rpartition(" (")
    return f"“{clause}” ({place}"


def reason(finding: Finding, wording: Wording) -> str:
    """What to make of a verdict that is not plainly for the claim; empty where there is nothing to add."""
    parts = []
    if finding.verdict is Verdict.TOO_FEW:
        parts.append(f"Give at least {LEAST_SEEDS} seeds.")
    elif finding.verdict is Verdict.OPEN:
        half = significant(finding.ours.half_width or 0.0, 2)
        parts.append(
            f"{finding.ours.n} seeds leave it open (±{half} {finding.claim.unit}, p = {chance(finding.p_holm)} after "
            "Holm's correction)."
        )
    elif finding.verdict is not Verdict.REPRODUCED:
        parts.append(wording.caveat(finding))
    if not finding.flips_agree:
        parts.append(f"The permutation test does not confirm it (p = {chance(finding.p_flip)}).")
    if finding.claim.fitted and wording.fitted:
        parts.append(f"The published number was {wording.fitted}.")
    return " ".join(part for part in parts if part)
