"""The claims as a section of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from feelstream.experiment.statistics import LEAST_SEEDS
from feelstream.report import Section
from feelstream.report.html.templates import render
from feelstream.studies.claims.judging import Finding
from feelstream.studies.claims.verdicts import EXPLAINED, Verdict
from feelstream.studies.claims.words import Wording, chance, cited, one_run, ours, reason

_CHIP = {
    Verdict.REPRODUCED: "good",
    Verdict.DIRECTION: "part",
    Verdict.FAILED: "bad",
    Verdict.OPEN: "open",
    Verdict.TOO_FEW: "open",
}


def claims_section(findings: Sequence[Finding], wording: Wording) -> Section:
    """How many claims are reproduced, and each with its interval and reason."""
    counts = Counter(finding.verdict for finding in findings)
    html = render(
        "feelstream.studies.claims/section.html",
        findings=findings,
        counts={verdict: counts[verdict] for verdict in Verdict if counts[verdict]},
        seeds=sorted({finding.ours.n for finding in findings}),
        least=LEAST_SEEDS,
        wording=wording,
        chips=_CHIP,
        explained=EXPLAINED,
        ours=ours,
        one_run=one_run,
        chance=chance,
        cited=cited,
        reason=reason,
    )
    return Section("claims", "Claims", html, heading=wording.heading)
