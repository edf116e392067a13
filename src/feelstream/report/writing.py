"""Everything that is made from results: figures, curves and report.html, with the comparison of all arms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import polars as pl
from markupsafe import Markup
from matplotlib.figure import Figure

from feelstream import experiment
from feelstream.display.quantities import meanings
from feelstream.errors import RunError
from feelstream.experiment import Arm, Plan, Results, comparison
from feelstream.experiment.measures import HEADLINE, Point, differences, measured, pareto_points, ranked, tables
from feelstream.experiment.runs import of_rounds
from feelstream.experiment.statistics import LEAST_SEEDS, TEST
from feelstream.report import figures
from feelstream.report.charts import TITLE, pareto_chart, varied_charts
from feelstream.report.content import Content, Section, render
from feelstream.report.groups import by_world, same_budget_j, varied
from feelstream.report.html.page import page
from feelstream.run import read
from feelstream.run.files import usable_directory, write_atomically


@dataclass(frozen=True)
class Written:
    """What `write` left behind."""

    report: Path
    figures: list[Path]


def results_in(directory: str | Path) -> Results:
    """The results in a directory: of many runs, or a single run's."""
    path = Path(directory)
    if (path / "plan.json").is_file():
        return experiment.load(path)
    if (path / "run.json").is_file():
        run = read(path)
        label = run.scenario.policy.plugin_name()
        plan = Plan(f"{path.resolve().name}: {label}, seed {run.seed}", (Arm(label, run.scenario),), (run.seed,))
        return Results(plan, {(label, run.seed): path}, [])
    if not path.is_dir():
        raise RunError(
            f"{path} is {'a file, not' if path.exists() else 'not there; give'} a directory of results or of a run"
        )
    inside = sorted(each.parent for name in ("plan.json", "run.json") for each in path.glob(f"*/{name}"))
    instead = f"; in it are {', '.join(map(str, inside[:3]))}{', …' if len(inside) > 3 else ''}" if inside else ""
    raise RunError(f"{path} holds neither results (plan.json) nor a run (run.json){instead}")


def write(
    results: Results, out: str | Path, content: Content | None = None, summary: pl.DataFrame | None = None
) -> Written:
    """Write report.html and figures/: those that are handed in, with curves.csv and .parquet, and a comparison's.

    A comparison has figures of accuracy and energy by round and against what was varied, and figures/pareto where
    there are accuracies to compare; summary: `comparison.summarise(results)`, if it is at hand.
    """
    out, content, plan = usable(results, out), content or Content(), results.plan
    rounds = results.rounds()
    runs, pictures = of_rounds(rounds), list[Iterable[tuple[str, Figure]]]()
    if content.figures:
        curves = figures.panel_curves(content.figures, rounds)
        write_atomically(out / "curves.csv", curves.write_csv)
        write_atomically(out / "curves.parquet", curves.write_parquet)
        pictures.append(figures.panel_figures(content.figures, rounds))
    if content.comparison:
        summary = comparison.summarise(results) if summary is None else summary
        points = [points for _, points in worlds(plan, summary)]
        groups = content.groups or by_world(plan)
        pictures.append(figures.comparison_figures(plan, groups, rounds, runs, summary, points))
        if not len(plan.arms) == len(plan.seeds) == 1:
            against = varied_sections(plan, summary, runs)
            content = replace(content, sections=[*content.sections, *against, comparison_section(plan, summary)])
    drawn = list[Path]()
    for name, picture in chain(*pictures):
        drawn += figures.save(picture, usable_directory(out / "figures"), name)
    text = page(results, rounds, runs, content)
    report = out / "report.html"
    write_atomically(report, lambda file: file.write_text(text, encoding="utf-8"))
    return Written(report, drawn)


def usable(results: Results, out: str | Path) -> Path:
    """The directory of a report, made if need be; RunError where there is nothing to report."""
    if not results.finished:
        raise RunError(f"there is nothing to report: no run of '{results.plan.name}' has finished")
    return usable_directory(Path(out))


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
    """A section for each field that was varied, with a chart for each quantity. runs: `runs.of_rounds`."""
    few = all(int(count) < LEAST_SEEDS for count in summary["n"])
    html = render("feelstream.report.html/varied.html", few=few)
    sections = []
    for number, axis in enumerate(varied(plan), start=1):
        charts = varied_charts(axis, summary, runs, figures.AGAINST, same_budget_j(plan))
        if charts:
            shown = [("", chart) for chart in charts]
            sections.append(Section(f"against-{number}", f"Against {axis.field}", html, charts=shown))
    return sections
