"""The comparison of all arms as a section of the report and as Markdown: tables and Pareto charts."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from markupsafe import Markup

from feelstream.display.quantities import meanings
from feelstream.experiment import Plan
from feelstream.experiment.measures import HEADLINE, Point, differences, measured, pareto_points, ranked, tables
from feelstream.experiment.statistics import LEAST_SEEDS, TEST
from feelstream.report.content import Section
from feelstream.report.drawing.figures import save
from feelstream.report.drawing.pareto import TITLE, pareto_chart, pareto_figure
from feelstream.report.html.groups import by_world
from feelstream.report.html.templates import render
from feelstream.run.files import usable_directory


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
        usable_directory(directory)
        name = "pareto" if len(shown) == 1 else f"pareto-{number}"
        written += save(pareto_figure(points), directory, name)
    return written


def comparison_section(plan: Plan, summary: pl.DataFrame) -> Section:
    """The leaderboard of all arms, their differences against the first, and a Pareto chart for each world."""
    shown = worlds(plan, summary)
    charts = [(TITLE if len(shown) == 1 else f"{TITLE}: {title}", pareto_chart(points)) for title, points in shown]
    titles, gaps = differences(plan, summary)
    order = ranked(summary)
    judged = len(plan.seeds) >= LEAST_SEEDS  # otherwise what stands over the table says it, once
    cell = Markup('{}<span class="why">{}</span>' if judged else "{}")
    html = render(
        "feelstream.report.html/comparison.html",
        tables=[(titles, {label: rows[label] for label in order}) for titles, rows in tables(plan, summary)],
        seeds=len(plan.seeds),
        least=LEAST_SEEDS,
        ranked_by=next(quantity.heading for quantity in measured(summary) if quantity.name in HEADLINE),
        meanings=meanings(measured(summary)),
        first=plan.arms[0].label,
        test=TEST,
        titles=titles,
        gaps={arm: [cell.format(*gap) for gap in row] for arm, row in gaps.items()},
    )
    note = (
        '<p class="muted">Filled points are on the Pareto front of the means: no other point is both cheaper and more '
        "accurate. Bars are 95 % t intervals. Where bars overlap, other seeds may change the order.</p>"
    )
    return Section(
        "leaderboard",
        "Leaderboard",
        html,
        charts=charts,
        below=note if charts else "",
    )
