"""What the commands of studies share: options, playing a plan, and the report with the verdicts on its claims."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from feelstream.display.quantities import counted
from feelstream.experiment import Results
from feelstream.experiment.statistics import LEAST_SEEDS
from feelstream.studies.contract import Study
from feelstream.terminal.common import (
    DaskOption,
    JsonOption,
    SeedsOption,
    SeedStartOption,
    SetOption,
    WorkersOption,
    err,
    number_option,
    out,
    policy_option,
    print_json,
    typed,
)
from feelstream.terminal.playing import failures, play, report_comparison, tell_failures

if TYPE_CHECKING:
    from feelstream.studies.claims import Finding
    from feelstream.studies.reporting import Reported

__all__ = [
    "DaskOption", "JsonOption", "SeedStartOption", "SeedsOption", "SetOption", "WorkersOption", "err",
    "number_option", "out", "play", "policy_option", "print_json", "report", "report_comparison", "tell_failures",
    "typed",
]  # fmt: skip


def report(
    results: Results,
    directory: Path,
    docs: Path | None = None,
    as_json: bool = False,
    study: Study | None = None,
    played: bool = True,
) -> None:
    """Write the report of the results to a directory, show the claims, and end with code 1 where runs failed.

    study: by default the plan's. played: whether the runs were tried just now.
    """
    if not results.finished:
        tell_failures(results, played)
    from feelstream.studies import reporting  # matplotlib takes a while to come

    with err.status("drawing figures and report"):
        written = reporting.write(results, directory, docs, study)
    if as_json:
        claims = [finding.as_dict() for finding in written.findings]
        print_json({"claims": claims, "failures": failures(results), "report": str(written.report)})
    else:
        _show(written, results, directory, docs)
    tell_failures(results, played)


def _show(written: Reported, results: Results, directory: Path, docs: Path | None) -> None:
    if written.told:
        out.print(written.told, highlight=False)
    elif written.findings:
        fitted = f"; †: {written.fitted}" if written.fitted else ""
        _tell(written.findings)
        seeds = len(results.plan.seeds)
        judged = "verdicts after Holm's correction over all claims"
        verdicts = judged if seeds >= LEAST_SEEDS else f"fewer than {LEAST_SEEDS} seeds: no verdict"
        out.print(
            f"ours: mean [95 % t interval] over {counted(seeds, 'seed')}, in pairs by seed; {verdicts}; early, late: "
            f"first, last third of the rounds; end: last tenth; pp: percentage points{fitted}. The report says why a "
            "claim does not reproduce.",
            style="dim",
            highlight=False,
        )
    figures = directory / "figures" if written.figures and not written.told else None
    for name, path in (("figures", figures), ("docs", docs)):
        if path is not None:
            out.print(f"{name:8} {path}", soft_wrap=True)
    out.print(f"report   {written.report}", soft_wrap=True)


def _tell(findings: Sequence[Finding]) -> None:
    """Two lines for each claim: what came out, and what was claimed."""
    from feelstream.studies.claims import ours

    for finding in findings:
        claim, verdict = finding.claim, f"{finding.verdict}{' †' * finding.claim.fitted}"
        lines = f"{claim.panel:4} {verdict:16} {ours(finding)}\n     {claim.statement}; paper: {claim.paper}"
        out.print(lines, highlight=False, markup=False, soft_wrap=True)
