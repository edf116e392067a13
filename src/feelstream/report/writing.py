"""Everything that is made from results: figures, curves and report.html."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from feelstream import experiment
from feelstream.errors import RunError
from feelstream.experiment import Arm, Plan, Results, comparison, panels
from feelstream.experiment.statistics import per_run
from feelstream.report import figures
from feelstream.report.comparison import comparison_section, varied_sections, worlds
from feelstream.report.content import Content
from feelstream.report.groups import by_world
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
    runs, pictures = per_run(rounds), list[Iterable[tuple[str, Figure]]]()
    if content.figures:
        curves = panels.curves(content.figures, rounds)
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
