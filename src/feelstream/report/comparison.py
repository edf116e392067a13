"""The comparison of all arms as a section of the report and as Markdown: tables and Pareto charts."""

from __future__ import annotations

import polars as pl
from markupsafe import Markup

from feelstream.display.quantities import meanings
from feelstream.experiment import Plan
from feelstream.experiment.measures import HEADLINE, Point, differences, measured, pareto_points, ranked, tables
from feelstream.experiment.statistics import LEAST_SEEDS, TEST
from feelstream.report.charts import TITLE, pareto_chart, varied_charts
from feelstream.report.content import Section
from feelstream.report.figures import AGAINST
from feelstream.report.groups import by_world, same_budget_j, varied
from feelstream.report.html.templates import render


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
    below = render("feelstream.report.html/pareto.html") if charts else ""
    return Section("leaderboard", "Leaderboard", html, charts=charts, below=below)


def varied_sections(plan: Plan, summary: pl.DataFrame, runs: pl.DataFrame) -> list[Section]:
    """A section for each field that was varied, with a chart for each quantity. runs: `statistics.per_run`."""
    few = all(int(count) < LEAST_SEEDS for count in summary["n"])
    html = render("feelstream.report.html/varied.html", few=few)
    sections = []
    for number, axis in enumerate(varied(plan), start=1):
        charts = varied_charts(axis, summary, runs, AGAINST, same_budget_j(plan))
        if charts:
            shown = [("", chart) for chart in charts]
            sections.append(Section(f"against-{number}", f"Against {axis.field}", html, charts=shown))
    return sections
