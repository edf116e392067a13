"""The comparison of all arms as a section of the report and as Markdown: tables and Pareto charts."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

import polars as pl

from feelstream.experiment import Plan
from feelstream.experiment.measures import EXPLAINED, Measure, cells, measured
from feelstream.experiment.ranking import Point, pareto_points
from feelstream.report.content import Section
from feelstream.report.drawing.figures import save
from feelstream.report.drawing.pareto import TITLE, pareto_chart, pareto_figure
from feelstream.report.html.groups import by_world
from feelstream.report.html.tables import differences_table

GROUPS = ("learning", "resources")


def worlds(plan: Plan, summary: pl.DataFrame) -> list[tuple[str, list[Point]]]:
    """Title and points of each set of arms that share a world, where at least two of them have an accuracy.

    Each world has a front of its own: arms with different devices or data cannot beat each other.
    """
    found = []
    for group in by_world(plan):
        points = pareto_points(summary.filter(pl.col("arm").is_in([arm for arm, _ in group.arms])))
        if len(points) > 1:
            found.append((group.title, points))
    return found


def save_pareto(plan: Plan, summary: pl.DataFrame, directory: Path) -> list[Path]:
    """pareto.pdf and .png, or pareto-1, pareto-2, … where there are several worlds."""
    written: list[Path] = []
    shown = worlds(plan, summary)
    for number, (_, points) in enumerate(shown, start=1):
        directory.mkdir(parents=True, exist_ok=True)
        name = "pareto" if len(shown) == 1 else f"pareto-{number}"
        written += save(pareto_figure(points), directory, name)
    return written


def comparison_section(plan: Plan, summary: pl.DataFrame) -> Section:
    """The leaderboard of all arms, their differences against the first, and a Pareto chart for each world."""
    shown = worlds(plan, summary)
    charts = [(TITLE if len(shown) == 1 else f"{TITLE}: {title}", pareto_chart(points)) for title, points in shown]
    note = (
        '<p class="muted">Filled: on the Pareto front of the means, that is, no other arm is both cheaper and more '
        "accurate. Bars are 95 % t intervals; arms whose bars overlap may well change places with other seeds.</p>"
    )
    return Section(
        "leaderboard",
        "Leaderboard",
        "<p>Mean over seeds ± half of the 95 % t interval.</p>"
        f"{html_table(plan, summary)}{differences_table(plan, summary)}",
        charts=charts,
        below=note if charts else "",
    )


def html_table(plan: Plan, summary: pl.DataFrame) -> str:
    """One table for learning and one for resources; together they would be too wide for any screen."""
    tables = []
    for group in GROUPS:
        measures = measured(summary, group)
        if not measures:
            continue
        heads = "".join(f"<th>{escape(measure.title)}</th>" for measure in measures)
        rows = "".join(
            f"<tr><td>{escape(arm.label)}</td>"
            + "".join(f'<td class="number">{escape(text)}</td>' for text in _line(plan, summary, arm.label, measures))
            + "</tr>"
            for arm in plan.arms
        )
        tables.append(
            f'<div class="scroll"><table><thead><tr><th>Arm</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
        )
    words = "; ".join(f"<b>{escape(name)}</b>: {escape(text)}" for name, text in explained(summary).items())
    return f'{"".join(tables)}<p class="muted">{words}.</p>'


def markdown_table(plan: Plan, summary: pl.DataFrame) -> str:
    tables = []
    for group in GROUPS:
        measures = measured(summary, group)
        if measures:
            lines = [["policy", *(measure.title for measure in measures)], ["---", *["---:"] * len(measures)]]
            lines += [[f"`{arm.label}`", *_line(plan, summary, arm.label, measures)] for arm in plan.arms]
            tables.append("\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines))
    return "\n\n".join(tables) + "\n"


def explained(summary: pl.DataFrame) -> dict[str, str]:
    """What each heading of the tables means, for those that are there."""
    headings = [measure.heading for measure in measured(summary)]
    return {
        name: text
        for name, text in EXPLAINED.items()
        if name in headings or (name.startswith("rounds") and any(" to " in heading for heading in headings))
    }


def _line(plan: Plan, summary: pl.DataFrame, arm: str, measures: list[Measure]) -> Iterable[str]:
    return cells(summary, arm, measures, len(plan.seeds))
