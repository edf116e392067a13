"""The leaderboard as parts of the report and of a docs page: table, Pareto chart, and what the numbers say in words."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

import polars as pl

from feelstream.experiment import Plan, leaderboard
from feelstream.experiment.leaderboard import Measure, Point, pareto_points
from feelstream.report.drawing.figures import save
from feelstream.report.drawing.pareto import pareto_figure
from feelstream.report.html.groups import groups

GROUPS = ("learning", "resources")


def worlds(plan: Plan, summary: pl.DataFrame) -> list[tuple[str, list[Point]]]:
    """Title and points of each set of arms that share a world, where at least two of them have an accuracy.

    Each world has a front of its own: arms with different devices or data cannot beat each other.
    """
    found = []
    for group in groups(plan):
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


def html_table(plan: Plan, summary: pl.DataFrame) -> str:
    """One table for learning and one for resources; together they would be too wide for any screen."""
    tables = []
    for group in GROUPS:
        measures = leaderboard.shown(summary, group)
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
        measures = leaderboard.shown(summary, group)
        if measures:
            lines = [["policy", *(measure.title for measure in measures)], ["---", *["---:"] * len(measures)]]
            lines += [[f"`{arm.label}`", *_line(plan, summary, arm.label, measures)] for arm in plan.arms]
            tables.append("\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines))
    return "\n\n".join(tables) + "\n"


def explained(summary: pl.DataFrame) -> dict[str, str]:
    """What each heading of the tables means, for those that are there."""
    headings = [measure.heading for measure in leaderboard.shown(summary)]
    return {
        name: text
        for name, text in leaderboard.EXPLAINED.items()
        if name in headings or (name.startswith("rounds") and any(" to " in heading for heading in headings))
    }


def _line(plan: Plan, summary: pl.DataFrame, arm: str, measures: list[Measure]) -> Iterable[str]:
    return leaderboard.cells(summary, arm, measures, len(plan.seeds))
