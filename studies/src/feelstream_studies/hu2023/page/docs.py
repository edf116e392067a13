"""docs/reproduction.md: the finding, our figures, the claims and what to make of them, all from results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from feelstream.studies.claims import EXPLAINED, Finding, Verdict, chance, evidence, judged, one_run, ours, verdict
from feelstream.studies.pages import composite, has_data, origin, save, write_atomically
from feelstream.studies.results import PanelFigure, Results, RunError, curves
from feelstream_studies.hu2023 import paper as reproduce
from feelstream_studies.hu2023.claims import remaining_claims
from feelstream_studies.hu2023.page.conclusion import conclusion
from feelstream_studies.hu2023.page.words import FITTED, settings

OUT = "results/paper"
DOCS_DPI = 120  # pictures that are kept in the repository stay small
HOW_JUDGED = """\
Each value is a number per seed (runs with the same seed receive the same arrivals, CPU frequencies and channels, so
they are compared in pairs), with its two-sided 95 % t interval. A lead is called reproduced, or not reproduced, where
its paired t-test says so at 5 % after Holm's correction over all claims of this table; where a claim names two rivals,
both leads must be above 0. "Similar and even higher" is tested as not behind by more than 2 percentage points, and
whether it is higher is stated beside it. The distance between two averaged curves is no number per seed: its interval
and tests are by a bootstrap over seeds. Beside each stands the p value of the permutation test over all sign flips (of
the bootstrap, for a distance), uncorrected, which assumes no normal distribution. A published number
is reproduced if it lies in the 95 % *prediction* interval of one run of ours, since it came from one run, or a few.
Early and late are the first and the last third of the rounds, the end is the last tenth; pp are percentage points. No
rival is chosen after seeing the data.
"""


def write_docs(directory: Path, results: Results, findings: Sequence[Finding]) -> Path:
    """Write reproduced.md and the figures it shows, as PNG under figures/."""
    pictures = directory / "figures"
    try:
        pictures.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise RunError(f"cannot use the directory {pictures}: {problem.strerror}") from problem
    figures = reproduce.figures_of(results.plan)
    table = curves(figures, results.rounds())
    shown = [figure for figure in figures if any(has_data(panel, table) for panel in figure.panels)]
    for figure in shown:
        save(composite(figure, table), pictures, figure.key, formats=("png",), dpi=DOCS_DPI)
    path = directory / "reproduced.md"
    text = _text(results, shown, findings)
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))
    return path


def _text(results: Results, shown: Sequence[PanelFigure], findings: Sequence[Finding]) -> str:
    made, changes = origin(results, command=reproduce.command(results.plan)), reproduce.changes(results.plan)
    date = made.finished.partition(" ")[0]
    command = f"{made.command} --out {OUT} --docs docs"
    said = conclusion(results, findings)
    parts = [
        "# The paper, reproduced\n",
        f"{said}\n" if said else "",
        f"Runs of {date}, {len(results.plan.seeds)} seeds. This page is written by a command; do not edit it:\n",
        f"    {command}\n",
        'The paper is C.-H. Hu, Z. Chen, E. G. Larsson, "Dynamic Scheduling for Federated Edge Learning with Streaming '
        'Data", ICASSP 2023, [arXiv:2305.01238](https://arxiv.org/abs/2305.01238).\n',
        "## Figures\n",
        "Lines are means over seeds, shades are 95 % t intervals.\n",
    ]
    parts += [
        f"![{figure.title}](figures/{figure.key}.png)\n\n*{figure.title}.* {figure.caption}\n" for figure in shown
    ]
    left = judged(results.plan, results.rounds(), remaining_claims())
    parts += [_claims(findings), _remaining(left), _discussion(results, findings), _origin(made.facts, changes)]
    return "\n".join(part for part in parts if part)


def claims_table(findings: Sequence[Finding]) -> str:
    rows = [
        f"| {f.claim.panel} | {f.claim.statement} ({f.claim.measure}) | {f.claim.paper} | {ours(f)} | {one_run(f)} | "
        f"{chance(f.p_holm)} | {chance(f.p_flip)} | {verdict(f)} |"
        for f in findings
    ]
    return (
        "| figure | claim | paper | ours [95 %] | one run [95 %] | p, Holm | p, sign flips | verdict |\n"
        "|---|---|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _claims(findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    words = [f"- **{each}**: {EXPLAINED[each]}" for each in Verdict if any(f.verdict is each for f in findings)]
    if any(finding.claim.fitted for finding in findings):
        words.append(f"- †: {FITTED}")
    unsure = [finding for finding in findings if not finding.flips_agree]
    if unsure:
        names = ", ".join(finding.claim.key for finding in unsure)
        words.append(f"- the permutation test does not confirm the verdict of {names}")
    listed = "\n".join(words)
    return f"## Claims\n\n{HOW_JUDGED}\n{claims_table(findings)}\n{listed}\n"


def _remaining(left: Sequence[Finding]) -> str:
    if not left:
        return ""
    return (
        "## What remains when nobody schedules empty devices\n\n"
        "The same comparisons with `data.eligible = with_data`: neither policy may schedule a device that holds no "
        "data yet. The paper does not claim these; Holm's correction is over this table.\n\n" + claims_table(left)
    )


def _discussion(results: Results, findings: Sequence[Finding]) -> str:
    parts = ["## Discussion\n"]
    for kind, heading in (
        (Verdict.FAILED, "Not reproduced"),
        (Verdict.DIRECTION, "Same direction, other size"),
        (Verdict.OPEN, "Undecided"),
    ):
        found = [finding for finding in evidence(findings) if finding.verdict is kind]
        if found:
            parts.append(f"**{heading}.**\n")
            parts += [f"- {f.claim.panel}: {f.claim.statement}. Ours: {ours(f)}." for f in found]
            parts.append("")
    fitted = [finding for finding in findings if finding.claim.fitted]
    panels = " and ".join(sorted({finding.claim.panel for finding in fitted}))
    parts.append(
        f"**What the paper leaves open.** These runs have {settings(results.plan.arms[0].scenario)}. The paper states "
        "none of these numbers. The number of rounds and the width of arrivals were chosen so that the energy savings "
        "are near the reported ones"
        + (f", so {panels} are fits and no evidence" if fitted else "")
        + "; the learning settings were chosen so that accuracy settles within the run. "
        "The paper's definition of fresh data counts per round, its motivation since the last model pull; the presets "
        "`paper-*` took the second after accuracy had been seen under both, so no claim with them is an untouched "
        "test. Fading is Rayleigh and the surrogate rate is not discounted. "
        "[The model](model.md) gives the sentence of the paper behind each reading.\n"
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
