"""The report's tables and texts as HTML. Everything that came from outside is escaped here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import polars as pl

from feelstream.experiment import Plan, leaderboard
from feelstream.experiment.claims import EXPLAINED, Finding, Verdict
from feelstream.experiment.claims.series import series
from feelstream.experiment.leaderboard import Measure
from feelstream.experiment.statistics import TEST, Interval, interval
from feelstream.report.drawing.quantities import QUANTITIES
from feelstream.report.numbers import with_interval
from feelstream.report.paper.words import FITTED, chance, one_run, ours, reason

AGAINST_FIRST = ("late_accuracy", "accuracy_area", "energy_j")  # as in the terminal; summary.csv has them all

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


def claims_section(findings: Sequence[Finding]) -> str:
    """The paper's claims: how many came out, and each with its interval and reason."""
    if not findings:
        return ""
    counts = Counter(finding.verdict for finding in findings)
    chips = "".join(_chip(verdict, counts[verdict]) for verdict in Verdict if counts[verdict])
    rows = "".join(_claim_row(finding) for finding in findings)
    seeds = sorted({finding.ours.n for finding in findings})
    return (
        '<section id="claims"><h2>The paper’s claims</h2>'
        f'<div class="chips">{chips}</div>'
        "<p>Each value is a number per seed, compared in pairs (arms with the same seed receive the same arrivals, CPU "
        f"frequencies and channels), with its two-sided 95 % t interval over {_either(seeds)} seeds. "
        "Verdicts are by paired t-tests at 5 % after Holm’s correction over all claims; a published number is held "
        "against the prediction interval of one run. Early and late are the first and the last third of the rounds, "
        f"the end is the last tenth; pp are percentage points. †: {FITTED}.</p>"
        '<table class="cards"><thead><tr><th>Figure</th><th>Claim</th><th>Paper</th><th>Ours [95 %]</th>'
        f"<th>Verdict</th></tr></thead><tbody>{rows}</tbody></table></section>"
    )


def _claim_row(finding: Finding) -> str:
    claim = finding.claim
    said = reason(finding)
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


def summary_table(plan: Plan, rounds: pl.DataFrame) -> str:
    """Each arm after the last round: accuracy, loss, energy, with intervals."""
    shown = [QUANTITIES[column] for column in ("accuracy", "loss", "energy_mean_cum_j")]
    heads = "".join(f"<th>{escape(quantity.axis)}</th>" for quantity in shown)
    rows = []
    for arm in plan.arms:
        cells = [f"<td>{escape(arm.label)}</td>"]
        seeds = 0
        for quantity in shown:
            found = series(rounds, arm.label, quantity.column)
            text = "–"
            if found is not None:
                value = interval([number * quantity.scale for number in found.over("final").values()])
                seeds, text = max(seeds, value.n), with_interval(value, quantity.digits)
            cells.append(f'<td class="number">{text}</td>')
        cells.append(f"<td>{seeds}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr><th>Arm</th>{heads}<th>Seeds</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"


def failures_notice(failures: Iterable[tuple[str, int, str]]) -> str:
    items = "".join(f"<li>{escape(arm)}, seed {seed}: {escape(reason)}</li>" for arm, seed, reason in failures)
    return f'<div class="notice">These runs are missing from everything below:<ul>{items}</ul></div>' if items else ""


def differences_table(plan: Plan, summary: pl.DataFrame) -> str:
    """Every arm against the first, seed by seed: mean difference, 95 % interval and what may be said of it."""
    measures = [measure for measure in leaderboard.shown(summary) if measure.quantity in AGAINST_FIRST]
    if len(plan.arms) < 2 or not measures:
        return ""
    heads = "".join(f"<th>{escape(measure.title)}</th>" for measure in measures)
    rows = []
    for arm in plan.arms[1:]:
        found = {row["quantity"]: row for row in summary.filter(arm=arm.label).rows(named=True)}
        cells = "".join(f'<td class="number">{_difference(found.get(m.quantity), m)}</td>' for m in measures)
        rows.append(f"<tr><td>{escape(arm.label)}</td>{cells}</tr>")
    return (
        f"<h3>Against {escape(plan.arms[0].label)}, seed by seed</h3>"
        f"<p>Mean of the differences by seed [95 % t interval]; {escape(TEST)}.</p>"
        f'<div class="scroll"><table><thead><tr><th>Arm</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _difference(row: dict[str, Any] | None, measure: Measure) -> str:
    if row is None or not row["pairs"]:
        return "–"
    scaled = (
        None if row[end] is None else row[end] * measure.scale
        for end in ("difference", "difference_low", "difference_high")
    )
    mean, low, high = scaled
    text = with_interval(Interval(mean or 0.0, low, high, row["pairs"]), measure.digits, signed=True)
    return f'{escape(text)}<span class="why">{escape(row["verdict"])}</span>'
