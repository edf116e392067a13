"""The report's tables and texts as HTML. Everything that came from outside is escaped here."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

import polars as pl

from feelstream.experiment import Plan
from feelstream.experiment.measures import Measure, measured
from feelstream.experiment.series import series
from feelstream.experiment.statistics import TEST, Interval, interval
from feelstream.quantities import QUANTITIES, by_round
from feelstream.report.numbers import with_interval

AGAINST_FIRST = ("late_accuracy", "accuracy_area", "energy_j")  # as in the terminal; summary.csv has them all


def summary_table(plan: Plan, rounds: pl.DataFrame) -> str:
    """Each arm after the last round: accuracy, loss, energy, with intervals."""
    learned = [quantity for quantity in by_round(rounds.columns) if quantity.group == "learning"]
    shown = [*learned, QUANTITIES["energy_mean_cum_j"]]
    heads = "".join(f"<th>{escape(quantity.axis)}</th>" for quantity in shown)
    rows = []
    for arm in plan.arms:
        cells = [f"<td>{escape(arm.label)}</td>"]
        seeds = 0
        for quantity in shown:
            found = series(rounds, arm.label, quantity.name)
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
    measures = [measure for measure in measured(summary) if measure.quantity in AGAINST_FIRST]
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
