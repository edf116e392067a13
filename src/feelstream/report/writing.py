"""Everything that is made from results: figures, curves and report.html, with the comparison of all arms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import polars as pl
from markupsafe import Markup
from matplotlib.figure import Figure

from feelstream import experiment
from feelstream.display.chart import Chart
from feelstream.display.quantities import meanings
from feelstream.errors import RunError
from feelstream.experiment import Arm, Plan, Results, comparison
from feelstream.experiment.measures import HEADLINE, differences, measured, pareto_points, ranked, tables
from feelstream.experiment.runs import of_rounds
from feelstream.experiment.statistics import LEAST_SEEDS, TEST
from feelstream.report import figures
from feelstream.report.charts import AGAINST, TITLE, pareto_chart, varied_charts
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
    """The results in a directory: of many runs, a single run's, or of the run directories that it holds."""
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
    if len(runs := [read(each.parent) for each in sorted(path.glob("*/run.json"))]) > 1:
        return experiment.gathered(path.resolve().name, runs, [run.directory or path for run in runs], alike=True)
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
        groups, budget_j, ahead = content.groups or by_world(plan), same_budget_j(plan), fronts(plan, summary)
        against = {axis.field: varied_charts(axis, summary, runs, AGAINST, budget_j) for axis in varied(plan)}
        against = {field: charts for field, charts in against.items() if charts}
        pictures.append(figures.comparison_figures(groups, rounds, budget_j, [chart for _, chart in ahead], against))
        if not len(plan.arms) == len(plan.seeds) == 1:
            compared = [*varied_sections(summary, against), comparison_section(plan, summary, ahead)]
            content = replace(content, sections=[*content.sections, *compared])
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


def fronts(plan: Plan, summary: pl.DataFrame) -> list[tuple[str, Chart]]:
    """Title and Pareto chart of each set of arms that share a world, where at least two of them have an accuracy.

    Each world has a front of its own: arms with different devices or data cannot dominate each other.
    """
    found = []
    for group in by_world(plan):
        points = pareto_points(summary.filter(pl.col("arm").is_in([arm for arm, _ in group.arms])))
        if len(points) > 1:
            found.append((group.title, pareto_chart(points)))
    return found


def comparison_section(plan: Plan, summary: pl.DataFrame, ahead: Sequence[tuple[str, Chart]]) -> Section:
    """The leaderboard of all arms, their differences against the first, and the `fronts`."""
    charts = [(TITLE if len(ahead) == 1 else f"{TITLE}: {title}", chart) for title, chart in ahead]
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


def varied_sections(summary: pl.DataFrame, against: Mapping[str, Sequence[Chart]]) -> list[Section]:
    """A section for each field that was varied, with a chart for each quantity."""
    few = all(int(count) < LEAST_SEEDS for count in summary["n"])
    html = render("feelstream.report.html/varied.html", few=few)
    return [
        Section(f"against-{number}", f"Against {field}", html, charts=[("", chart) for chart in charts])
        for number, (field, charts) in enumerate(against.items(), start=1)
    ]
