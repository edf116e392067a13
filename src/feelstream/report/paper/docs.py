"""docs/reproduction.md: our figures, the claims and what to make of them, from results and dated by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from feelstream.errors import RunError
from feelstream.experiment import Results
from feelstream.experiment import paper as reproduce
from feelstream.report.drawing.figures import composite, has_data, save
from feelstream.report.paper.claims import Finding
from feelstream.report.paper.origin import origin
from feelstream.report.paper.reasons import inferred
from feelstream.report.paper.verdicts import EXPLAINED, Verdict
from feelstream.run.files import write_atomically

OUT = "results/paper"
DOCS_DPI = 120  # pictures that are kept in the repository stay small


def write_docs(directory: Path, results: Results, curves: pl.DataFrame, findings: Sequence[Finding]) -> Path:
    """Write reproduction.md and the figures it shows, as PNG under figures/."""
    pictures = directory / "figures"
    try:
        pictures.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise RunError(f"cannot use the directory {pictures}: {problem.strerror}") from problem
    shown = [
        figure
        for figure in reproduce.figures_of(results.plan)
        if any(has_data(panel, curves) for panel in figure.panels)
    ]
    for figure in shown:
        save(composite(figure, curves), pictures, figure.key, formats=("png",), dpi=DOCS_DPI)
    path = directory / "reproduction.md"
    text = _text(results, shown, findings)
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))
    return path


def _text(results: Results, shown: Sequence[reproduce.PaperFigure], findings: Sequence[Finding]) -> str:
    made = origin(results)
    date = made.finished.partition(" ")[0]
    counts = Counter(finding.verdict for finding in findings)
    summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    command = f"{made.command} --out {OUT} --docs docs"
    parts = [
        "# The paper, reproduced\n",
        f"Runs of {date}, {len(results.plan.seeds)} seeds. This page is written by a command; do not edit it:\n",
        f"    {command}\n",
        'The paper is C.-H. Hu, Z. Chen, E. G. Larsson, "Dynamic Scheduling for Federated Edge Learning with Streaming '
        'Data", ICASSP 2023, [arXiv:2305.01238](https://arxiv.org/abs/2305.01238).\n',
        f"Of {len(findings)} claims: {summary}.\n" if findings else "",
        "## Figures\n",
        "Lines are means over seeds, shades are 95 % t intervals.\n",
    ]
    parts += [
        f"![Figure {figure.key[-1]}](figures/{figure.key}.png)\n\n*Figure {figure.key[-1]}.* {figure.caption}\n"
        for figure in shown
    ]
    parts += [_claims(findings), _discussion(results, findings), _origin(made.facts, made.changes)]
    return "\n".join(part for part in parts if part)


def _claims(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    rows = [
        f"| {f.claim.panel} | {f.claim.statement} ({f.claim.measure}) | {f.claim.paper} | {f.ours_in_words} | "
        f"{f.claim.test} | {f.verdict} |"
        for f in findings
    ]
    words = "\n".join(
        f"- **{verdict}**: {EXPLAINED[verdict]}"
        for verdict in Verdict
        if any(finding.verdict is verdict for finding in findings)
    )
    return (
        "## Claims\n\n"
        "Each value is a number per seed, compared in pairs (arms with one seed meet the same arrivals, CPU "
        "frequencies and channels), with its two-sided 95 % t interval. Early and late are the first and the last "
        "third of the rounds; pp are percentage points. Intervals are per claim, not corrected for their number.\n\n"
        "| figure | claim | paper | ours [95 %] | test | verdict |\n|---|---|---|---|---|---|\n"
        + "\n".join(rows)
        + f"\n\n{words}\n"
    )


def _discussion(results: Results, findings: Sequence[Finding]) -> str:
    reasons: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.reason and finding.verdict is not Verdict.OPEN:
            reasons.setdefault(finding.reason, []).append(finding)
    parts = ["## Discussion\n"]
    for verdict, heading in ((Verdict.FAILED, "Not reproduced"), (Verdict.DIRECTION, "Same direction, other size")):
        found = [finding for finding in findings if finding.verdict is verdict]
        if found:
            parts.append(f"**{heading}.**\n")
            parts += [f"- {f.claim.panel}: {f.claim.statement}. Ours: {f.ours_in_words}." for f in found]
            parts.append("")
            parts += [f"{why}\n" for why, fs in reasons.items() if any(f.verdict is verdict for f in fs)]
    left_open = [finding for finding in findings if finding.verdict is Verdict.OPEN]
    if left_open:
        keys = ", ".join(dict.fromkeys(finding.claim.panel for finding in left_open))
        parts.append(
            f"**Not distinguishable.** {len(left_open)} claims (figures {keys}) stay open with this many seeds; their "
            "intervals in the table say how large the effect can still be.\n"
        )
    parts.append(
        f"**What the paper leaves open.** These runs have {inferred(results.plan.arms[0].scenario)}. None of that is "
        "in the paper: the number of rounds and the width of arrivals were chosen so that the energy savings come out "
        "near the reported ones if fresh is what arrived in the round (`data.fresh = per_round`: 18 % and 33 % over 30 "
        "seeds; with `since_use` they are larger, 28 % and 38 %), the learning settings so that accuracy settles "
        "within the run. Fading is Rayleigh, the surrogate rate is not discounted, and a device without data is never "
        "eligible. Which data counts as fresh moves both energy and accuracy; [the model](model.md) says why we read "
        "it as we do.\n"
    )
    parts.append(
        "**What follows from the paper's own numbers.** Computing takes about a hundred times the energy of sending. "
        "No choice of two or four devices a round keeps the budget of 0.5 mJ at the frequencies they happen to have, "
        "so the queues grow for ever and the policy balances them rather than keeping them bounded; `lyapunov_joint`, "
        "which may slow the devices down, does keep it. The admission phase drops about one device in 100 000; the "
        "`stress` preset exercises it.\n"
    )
    return "\n".join(parts)


def _origin(facts: dict[str, str], changes: Sequence[str]) -> str:
    rows = "\n".join(f"- {name}: {fact}" for name, fact in facts.items())
    changed = (
        f"\nChanged from the paper's presets: {', '.join(f'`{change}`' for change in changes)}.\n" if changes else ""
    )
    return f"## Origin\n\n{rows}\n{changed}"
