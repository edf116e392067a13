"""The claims as a section of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from feelstream.report import Section
from feelstream.studies.claims.judging import Finding
from feelstream.studies.claims.verdicts import EXPLAINED, Verdict
from feelstream.studies.claims.words import Wording, chance, one_run, ours, reason

_CHIP = {
    Verdict.REPRODUCED: "good",
    Verdict.DIRECTION: "part",
    Verdict.FAILED: "bad",
    Verdict.OPEN: "open",
    Verdict.NO_INTERVAL: "open",
}


def _chip(verdict: Verdict, count: int | None = None) -> str:
    number = "" if count is None else f"{count} "
    return f'<span class="chip {_CHIP[verdict]}" title="{escape(EXPLAINED[verdict])}">{number}{verdict}</span>'


def claims_section(findings: Sequence[Finding], wording: Wording) -> Section:
    """How many claims came out, and each with its interval and reason."""
    counts = Counter(finding.verdict for finding in findings)
    chips = "".join(_chip(verdict, counts[verdict]) for verdict in Verdict if counts[verdict])
    rows = "".join(_claim_row(finding, wording) for finding in findings)
    seeds = sorted({finding.ours.n for finding in findings})
    fitted = f" †: {escape(wording.fitted)}." if wording.fitted else ""
    html = (
        f'<div class="chips">{chips}</div>'
        "<p>Each value is a number per seed, compared in pairs (arms with the same seed receive the same arrivals, CPU "
        f"frequencies and channels), with its two-sided 95 % t interval over {_either(seeds)} seeds. "
        "Verdicts are by paired t-tests at 5 % after Holm’s correction over all claims; a published number is held "
        "against the prediction interval of one run. Early and late are the first and the last third of the rounds, "
        f"the end is the last tenth; pp are percentage points.{fitted}</p>"
        '<table class="cards"><thead><tr><th>Figure</th><th>Claim</th><th>Paper</th><th>Ours [95 %]</th>'
        f"<th>Verdict</th></tr></thead><tbody>{rows}</tbody></table>"
    )
    return Section("claims", "Claims", html, heading=wording.heading)


def _claim_row(finding: Finding, wording: Wording) -> str:
    claim = finding.claim
    said = reason(finding, wording)
    why = f'<span class="why">{escape(said)}</span>' if said else ""
    single = f"; one run: {one_run(finding)}" if one_run(finding) != "–" else ""
    p = f"; p = {chance(finding.p_holm)} after Holm’s correction, {chance(finding.p_flip)} by sign flips"
    mark = " †" if claim.fitted else ""
    return (
        f'<tr><td data-name="Figure">{escape(claim.panel)}</td>'
        f'<td>{escape(claim.statement)}<span class="measure">{escape(claim.measure)}; test: {escape(str(claim.test))}'
        f'{escape(single + p)}</span>{why}</td><td data-name="Paper">{escape(claim.paper)}</td>'
        f'<td class="number" data-name="Ours">{escape(ours(finding))}</td>'
        f"<td>{_chip(finding.verdict)}{mark}</td></tr>"
    )


def _either(numbers: Sequence[int]) -> str:
    return " or ".join(str(number) for number in numbers)
