"""report.html: one file with everything in it, and nothing fetched from anywhere; and where its results came from."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from typing import Any

import numpy as np
import polars as pl
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from feelstream.display.chart import LINE_STYLES, Chart
from feelstream.display.quantities import QUANTITIES, by_round, number, significant
from feelstream.experiment import Plan, Results
from feelstream.experiment.measures import with_interval
from feelstream.experiment.statistics import (
    HIGHER,
    LEAST_SEEDS,
    LOWER,
    UNCLEAR,
    UNCLEAR_BY_HOLM,
    compare_arms,
    compared,
    interval,
)  # fmt: skip
from feelstream.report.charts import MOST_SEEDS, curve_chart
from feelstream.report.content import Content, render
from feelstream.report.groups import Group, by_world, same_budget_j
from feelstream.report.html.charts import to_plotly
from feelstream.report.html.device_maps import device_map, seeds_that_fit
from feelstream.scenario.files import to_toml
from feelstream.version import __version__

OPENING = ("accuracy", "energy_mean_cum_j")  # charts of the first group at the top, which do not come again below


def page(results: Results, rounds: pl.DataFrame, runs: pl.DataFrame, content: Content) -> str:
    """The whole report of any results as the text of an HTML file, with the sections that are handed in.

    runs: `runs.of_rounds` of the rounds.
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


def opening(plan: Plan, group: Group, runs: pl.DataFrame) -> dict[str, Any]:
    """The arms of one group, which share their worlds: seeds and energy of each, the most accurate, and its lead.

    runs: `runs.of_rounds`.
    """
    names = dict(group.arms)
    found = [arm for arm in names if arm in runs["arm"]]
    energy = QUANTITIES["energy_j"]
    spent = {arm: float(np.mean(runs.filter(arm=arm)["energy_j"].to_numpy())) for arm in found}
    arms = []
    for arm in sorted(found, key=lambda arm: spent[arm]):
        budget = float(np.mean(plan.arm(arm).scenario.system.energy_budget_j))
        arms.append({
            "name": names[arm],
            "seeds": runs.filter(arm=arm)["seed"].to_list(),
            "spent": f"{significant(spent[arm] * energy.scale, 3)} {energy.unit}",
            "share": significant(spent[arm] / budget, 3) if budget else "",
        })  # fmt: skip
    system = plan.arm(found[0]).scenario.system if found else None
    return {"arms": arms, "system": system, "best": _best(runs, found, names)}


def _best(runs: pl.DataFrame, arms: list[str], names: dict[str, str]) -> dict[str, str] | None:
    """The most accurate over the last fifth of the run, against the first; the first against the next best."""
    means = {arm: runs.filter(arm=arm)["late_accuracy"].mean() for arm in arms}
    known = {arm: float(mean) for arm, mean in means.items() if isinstance(mean, float)}
    if not known:
        return None
    best = max(known, key=lambda arm: known[arm])
    own = interval(runs.filter(arm=best)["late_accuracy"].drop_nulls() * 100)
    told = {"name": names[best], "accuracy": with_interval(own, 1, "%"), "other": "", "significance": ""}
    first = arms[0]
    if len(known) > 1:
        other = max((arm for arm in known if arm != first), key=lambda arm: known[arm]) if best == first else first
        gap = compare_arms(runs, "late_accuracy", best, other)
        _, verdict = compared(runs, "late_accuracy", first, list(known))[other if best == first else best]
        words = {HIGHER: "significant", LOWER: "significant"}
        words |= {UNCLEAR: "not significant", UNCLEAR_BY_HOLM: "not significant"}
        told |= {"other": names[other], "lead": number(gap.mean * 100, 1), "significance": words.get(verdict, "")}
        told["verdict"] = verdict
    return told


@dataclass(frozen=True)
class Origin:
    title: str
    command: str  # empty: nobody gave one
    finished: str  # when the last run was, UTC
    feelstream: str
    facts: dict[str, str]


def origin(results: Results, title: str = "", command: str = "") -> Origin:
    """Read from the plan and from what each finished run says about itself.

    title and command: of whoever made the plan, where they are not the plan's own.
    """
    plan = results.plan
    abouts = [results.about(*key) for key in results.finished]
    finished = max((about.timings.get("finished", "") for about in abouts), default="")
    when = f"{finished[:10]} {finished[11:16]} UTC" if finished else "at an unknown time"
    total_s = sum(about.timings.get("total_s", 0.0) for about in abouts)
    versions = _distinct(about.feelstream for about in abouts)
    facts = {
        "Seeds": _ranges(plan.seeds),
        "feelstream": versions,
        **{
            name: _distinct(about.versions.get(name, "") for about in abouts)
            for name in dict.fromkeys(name for about in abouts for name in about.versions)
        },
        "Learning engine": _distinct(_engine(about.engine) for about in abouts),
        "Data": _distinct(_data(about.data) for about in abouts),
        "Computing time": f"{significant(total_s, 2)} s" + (" over all runs" if len(results.finished) > 1 else ""),
    }
    known = {name: fact for name, fact in facts.items() if fact}
    return Origin(title or plan.name, command or plan.command, when, versions, known)


def _distinct(values: Any) -> str:
    return "; ".join(dict.fromkeys(str(value) for value in values if value))


def _data(data: dict[str, Any]) -> str:
    """Devices of a deployment train on data of their own, which has no digest here."""
    return f"{data['name']}, SHA-256 {data['digest']}" if "digest" in data else "the devices' own"


def _engine(engine: dict[str, Any]) -> str:
    details = ", ".join(f"{name} {value}" for name, value in engine.items() if name != "name")
    return f"{engine['name']} ({details})" if details else str(engine["name"])


def _ranges(seeds: Sequence[int]) -> str:
    """0–9, 12"""
    parts: list[list[int]] = []
    for seed in sorted(seeds):
        if parts and seed == parts[-1][1] + 1:
            parts[-1][1] = seed
        else:
            parts.append([seed, seed])
    return ", ".join(f"{first}–{last}" if first != last else str(first) for first, last in parts)
