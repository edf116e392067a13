"""report.html: one file with everything in it, and nothing fetched from anywhere."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from hashlib import sha256
from importlib import resources
from typing import Any

import polars as pl
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from feelstream.display.chart import Chart
from feelstream.display.line_styles import LINE_STYLES
from feelstream.display.quantities import QUANTITIES, by_round
from feelstream.experiment import Plan, Results
from feelstream.experiment.measures import with_interval
from feelstream.experiment.statistics import LEAST_SEEDS, interval
from feelstream.report.charts import MOST_SEEDS, curve_chart
from feelstream.report.content import Content
from feelstream.report.groups import Group, by_world, same_budget_j
from feelstream.report.html.charts import to_plotly
from feelstream.report.html.device_maps import device_map, seeds_that_fit
from feelstream.report.html.opening import opening
from feelstream.report.html.templates import render
from feelstream.report.origin import origin
from feelstream.scenario.files import to_toml
from feelstream.version import __version__

OPENING = ("accuracy", "energy_mean_cum_j")  # charts of the first group at the top, which do not come again below


def page(results: Results, rounds: pl.DataFrame, runs: pl.DataFrame, content: Content) -> str:
    """The whole report of any results as the text of an HTML file, with the sections that are handed in.

    runs: `statistics.per_run` of the rounds.
    """
    plan, maps, shown = results.plan, _maps(results), list[dict[str, Any]]()
    groups = content.groups or by_world(plan)

    def frame(chart: Chart, caption: str = "", tall: bool = False) -> dict[str, Any]:
        """Take a chart into the page: the frame in which the script draws it."""
        drawn = to_plotly(chart) | {"id": f"chart-{len(shown)}"}
        shown.append(drawn)
        return {"id": drawn["id"], "caption": caption or chart.title, "label": drawn["axis"], "tall": tall}

    def frames(group: Group, columns: Sequence[str]) -> list[dict[str, Any]]:
        charts = [curve_chart(column, group.arms, rounds, same_budget_j(plan, group)) for column in columns]
        return [frame(chart) for chart in charts if chart.lines]

    every = [quantity.name for quantity in by_round(rounds.columns)]
    rest = [name for name in every if name not in OPENING]
    return render(
        "feelstream.report.html/page.html",
        plan=plan,
        content=content,
        made=origin(results, content.title, content.command),
        finished=len(results.finished),
        failures=results.failures,
        version=__version__,
        opening=opening(plan, groups[0], runs),
        glance=frames(groups[0], OPENING),
        groups=[(group.title, frames(group, rest if group is groups[0] else every)) for group in groups],
        sections=[
            (section, [frame(chart, caption, tall=True) for caption, chart in section.charts])
            for section in content.sections
        ],
        summary=_summary(plan, rounds, runs),
        maps={
            "arms": [(entry, plan.arms[entry].label) for entry in sorted({entry["arm"] for entry in maps})],
            "seeds": sorted({entry["seed"] for entry in maps}),
        },
        settings=[(arm.label, to_toml(arm.scenario)) for arm in plan.arms],
        data={
            "palette": [{"light": style.light, "dark": style.dark} for style in LINE_STYLES],
            "charts": shown,
            "few_seeds": 1 < len(plan.seeds) < LEAST_SEEDS,
            "maps": maps,
            "rounds_of_arm": [arm.scenario.system.rounds for arm in plan.arms],
        },
        most_seeds=MOST_SEEDS,
        css=_asset("page.css"),
        script=_asset("page.js"),
        policy=content_policy(_asset("page.js")),
        plotly=_packed(get_plotlyjs()),
    )


def _asset(name: str) -> Markup:
    return Markup(resources.files("feelstream.report.html").joinpath(name).read_text(encoding="utf-8"))


def content_policy(script: str) -> str:
    """What the browser may do with the page: run this very script, and what it inflates; fetch nothing at all."""
    digest = base64.b64encode(sha256(script.encode()).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{digest}' blob:; style-src 'unsafe-inline'; img-src data: blob:; "
        "font-src data:; base-uri 'none'; form-action 'none'"
    )


def _packed(script: str) -> str:
    """gzip in base64, which the page inflates itself: two fifths of the size."""
    return base64.b64encode(gzip.compress(script.encode(), 9, mtime=0)).decode("ascii")


def _summary(plan: Plan, rounds: pl.DataFrame, runs: pl.DataFrame) -> tuple[list[str], dict[str, list[str]]]:
    """Each arm after the last round: what it learned, and its energy, with intervals."""
    learned = [quantity for quantity in by_round(rounds.columns) if quantity.group == "learning"]
    shown = {f"final_{quantity.name}": quantity for quantity in learned} | {"energy_j": QUANTITIES["energy_mean_cum_j"]}
    rows: dict[str, list[str]] = {}
    for arm in plan.arms:
        own = runs.filter(arm=arm.label)
        values = [(quantity, interval(own[name].drop_nulls() * quantity.scale)) for name, quantity in shown.items()]
        rows[arm.label] = [with_interval(v, q.decimals(v.mean)) if v.n else "–" for q, v in values]
        rows[arm.label] += [str(len(own))] if len(plan.seeds) > 1 else []
    return [*(quantity.axis for quantity in shown.values()), *(["Seeds"] if len(plan.seeds) > 1 else [])], rows


def _maps(results: Results) -> list[dict[str, Any]]:
    plan, maps = results.plan, []
    system = plan.arms[0].scenario.system
    kept = set(seeds_that_fit(sorted(plan.seeds), len(plan.arms), system.devices, system.rounds))
    numbers = {arm.label: number for number, arm in enumerate(plan.arms)}
    full = {arm.label for arm in plan.arms if arm.scenario.trace.level == "full"}  # the others have no device table
    for label, seed in results.finished:
        if seed in kept and label in full:
            found = device_map(results.run(label, seed), len(plan.arms))
            if found is not None:
                maps.append({"arm": numbers[label], "seed": seed, **found})
    return maps
