"""The report of any results, with what the study that they are of adds to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from feelstream import report
from feelstream.display.quantities import significant
from feelstream.errors import RunError
from feelstream.experiment import Results
from feelstream.experiment.statistics import LEAST_SEEDS
from feelstream.report import Section
from feelstream.report.content import render
from feelstream.report.writing import usable
from feelstream.run.files import write_sealed
from feelstream.studies.claims import EXPLAINED, Finding, Verdict, chance, judged, one_run, ours
from feelstream.studies.contract import Study
from feelstream.studies.pages import Page
from feelstream.studies.registry import study_of

CHIPS = {Verdict.REPRODUCED: "good", Verdict.DIRECTION: "part", Verdict.FAILED: "bad"}  # the rest: open


@dataclass(frozen=True)
class Reported(report.Written):
    """What `write` left behind, what it found, and what is told of that; told is empty where the page has no words."""

    findings: list[Finding]
    fitted: str  # of the page
    told: str


def write(results: Results, out: str | Path, docs: Path | None = None, study: Study | None = None) -> Reported:
    """Write report.html, figures/ and, where the study makes claims, claims.json.

    docs: a directory to which the study also writes its page for the docs.
    study: by default, the one that the plan belongs to. Results of none have the report of any comparison.
    """
    out, study = usable(results, out), study or study_of(results.plan)
    page = (study.page_of(results) if study else None) or Page()
    if not isinstance(page, Page):
        raise RunError(f"the study '{study.name if study else ''}' must give a Page for its report, or None")
    if docs is not None and page.docs is None:
        raise RunError("--docs: these results belong to no study that writes a page for the docs")
    findings = judged(results.plan, results.rounds(), page.claims) if page.claims else []
    claimed = [_claims_section(findings, page)] if findings else []
    written = report.write(results, out, replace(page, sections=[*claimed, *page.sections]))
    if page.claims:
        write_sealed(out / "claims.json", _claims_file(results, page, findings))
    if docs is not None and page.docs is not None:
        page.docs(docs, results, findings)
    told = page.told(findings) if page.told is not None and findings else ""
    return Reported(written.report, written.figures, findings, page.fitted, told)


def _claims_section(findings: Sequence[Finding], page: Page) -> Section:
    """How many claims are reproduced, and each with its interval and reason."""
    counts = Counter(finding.verdict for finding in findings)
    html = render(
        "feelstream.studies/claims.html",
        findings=findings,
        counts={verdict: counts[verdict] for verdict in Verdict if counts[verdict]},
        seeds=sorted({finding.ours.n for finding in findings}),
        least=LEAST_SEEDS,
        page=page,
        chips=CHIPS,
        explained=EXPLAINED,
        ours=ours,
        one_run=one_run,
        chance=chance,
        significant=significant,
    )
    return Section("claims", "Claims", html, heading=page.heading)


def _claims_file(results: Results, page: Page, findings: Sequence[Finding]) -> dict[str, Any]:
    return {
        "plan": results.plan.name,
        "seeds": list(results.plan.seeds),
        **page.facts,
        "interval": "two-sided 95 % t interval over seeds of a per-seed number",
        "one_run": "95 % prediction interval of one run; a published number is reproduced if it lies inside",
        "p": "two-sided paired t-test; p_holm: after Holm's correction over all claims; p_sign_flip: permutation test "
        "(of averaged curves: bootstrap over seeds)",
        "early_late_end": "first third, last third and last tenth of the rounds",
        "verdicts": {str(verdict): words for verdict, words in EXPLAINED.items()},
        "claims": [finding.as_dict() for finding in findings],
    }
