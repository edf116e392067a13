"""report.html: one file with everything in it, and nothing fetched from anywhere."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Any

import polars as pl
from plotly.offline import get_plotlyjs

from feelstream.experiment import Results
from feelstream.report.content import Content, Section
from feelstream.report.drawing.style import FEW_SEEDS, LINE_STYLES
from feelstream.report.html.charts import Group, group_charts
from feelstream.report.html.device_maps import device_map, seeds_that_fit
from feelstream.report.html.frames import Charts, frame, grid
from feelstream.report.html.groups import by_world
from feelstream.report.html.opening import sentences
from feelstream.report.html.tables import failures_notice, summary_table
from feelstream.report.origin import Origin, origin
from feelstream.scenario.files import to_toml
from feelstream.version import __version__

# What is simulated: the model of docs/model.md.
MODEL = (
    "C.-H. Hu, Z. Chen, E. G. Larsson, “Dynamic Scheduling for Federated Edge Learning with Streaming Data”, "
    'ICASSP 2023, <a href="https://arxiv.org/abs/2305.01238">arXiv:2305.01238</a>'
)


def page(results: Results, rounds: pl.DataFrame, content: Content) -> str:
    """The whole report of any results as the text of an HTML file, with the sections that are handed in."""
    plan, made = results.plan, origin(results, content.title, content.command)
    charts = Charts()
    groups = content.groups or by_world(plan)
    opening = _opening(results, groups, rounds, charts)
    curves = [_group_section(group, results, rounds, charts) for group in groups]
    sections = [_section(section, charts) for section in content.sections]
    maps = _maps(results)
    data = {
        "palette": [{"light": style.light, "dark": style.dark} for style in LINE_STYLES],
        "charts": charts.all,
        "few_seeds": len(plan.seeds) <= FEW_SEEDS,
        "maps": maps,
        "rounds_of_arm": [arm.scenario.system.rounds for arm in plan.arms],
    }
    title = f"feelstream: {plan.name}"
    body = [
        _header(results, made, content.sections, bool(maps)),
        failures_notice((failure.arm, failure.seed, failure.reason) for failure in results.failures),
        opening,
        *sections,
        f'<section id="summary"><h2>After the last round</h2><p>Mean over seeds [95 % t interval]. '
        "The intervals are not clipped to what is possible, so few seeds may give one above 100 % or below 0.</p>"
        f'<div class="scroll">{summary_table(plan, rounds)}</div></section>',
        '<section id="curves"><h2>By round</h2><p>Lines are means over seeds, shades are 95 % t intervals. '
        "The axes follow the lines, so very wide intervals run out of the picture. A click on a name in a legend hides "
        "or shows its curve, a double click shows it alone.</p>"
        '<div class="controls"><label><input type="checkbox" id="show-seeds"> Show each seed</label></div>'
        f"{''.join(curves)}</section>",
        _maps_section(results, maps),
        _settings_section(results),
        _repeat_section(made, content),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{_asset('page.css')}</style></head>\n<body>\n"
        + "\n".join(part for part in body if part)
        + "\n<noscript>The charts need JavaScript; the tables above do not.</noscript>\n"
        + f'<script type="application/json" id="report-data">{_json(data)}</script>\n'
        + f'<script type="application/octet-stream" id="plotly">{_packed(get_plotlyjs())}</script>\n'
        + f"<script>{_asset('page.js')}</script>\n</body></html>\n"
    )


def _asset(name: str) -> str:
    return resources.files("feelstream.report.html").joinpath(name).read_text(encoding="utf-8")


def _packed(script: str) -> str:
    """gzip in base64, which the page inflates itself: two fifths of the size."""
    return base64.b64encode(gzip.compress(script.encode(), 9, mtime=0)).decode("ascii")


def _opening(results: Results, groups: Sequence[Group], rounds: pl.DataFrame, charts: Charts) -> str:
    """The picture and three sentences: accuracy and energy of the first group of arms."""
    group = groups[0]
    said = " ".join(sentences(results.plan, group, rounds))
    if not said:
        return ""
    shown = group_charts(group, rounds, _same_budget(group, results), ("accuracy", "energy_mean_cum_j"))
    pictures = grid([charts.frame(chart) for chart in shown])
    where = "" if len(groups) == 1 else f"<h3>{escape(group.title)}</h3>"
    return f'<section id="glance">{where}{pictures}<p class="lead">{escape(said)}</p></section>'


def _same_budget(group: Group, results: Results) -> float | None:
    """The budget of all devices, J per round, if it is one number."""
    budget = results.plan.arm(group.arms[0][0]).scenario.system.energy_budget_j
    return None if isinstance(budget, tuple) else float(budget)


def _json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _header(results: Results, made: Origin, sections: Sequence[Section], has_maps: bool) -> str:
    plan = results.plan
    finished = len(results.finished)
    links = [
        *((section.key, section.name) for section in sections),
        ("summary", "Summary"),
        ("curves", "By round"),
        ("devices", "Devices") if has_maps else None,
        ("settings", "Settings"),
        ("repeat", "How to repeat it"),
    ]
    nav = "".join(f'<a href="#{link[0]}">{escape(link[1])}</a>' for link in links if link)
    arms, seeds = len(plan.arms), len(plan.seeds)
    return (
        f"<header><h1>{escape(made.title)}</h1>"
        f'<p class="muted">{arms} arm{"s" * (arms != 1)}, {seeds} seed{"s" * (seeds != 1)}, '
        f"{finished} finished run{'s' * (finished != 1)}; last run finished {escape(made.finished)}; "
        f"feelstream {escape(made.feelstream or __version__)}.</p><nav>{nav}</nav></header>"
    )


def _group_section(group: Group, results: Results, rounds: pl.DataFrame, charts: Charts) -> str:
    """Adds the group's charts to the page, and gives the frames they will be drawn in."""
    frames = [charts.frame(chart) for chart in group_charts(group, rounds, _same_budget(group, results))]
    return f"<h3>{escape(group.title)}</h3>{grid(frames)}"


def _section(section: Section, charts: Charts) -> str:
    frames = [charts.frame(chart, caption, tall=True) for caption, chart in section.charts]
    return (
        f'<section id="{section.key}"><h2>{escape(section.heading or section.name)}</h2>{section.html}'
        f"{grid(frames) if frames else ''}{section.below}</section>"
    )


def _maps(results: Results) -> list[dict[str, Any]]:
    plan, maps = results.plan, []
    system = plan.arms[0].scenario.system
    kept = set(seeds_that_fit(sorted(plan.seeds), len(plan.arms), system.devices, system.rounds))
    numbers = {arm.label: number for number, arm in enumerate(plan.arms)}
    for label, seed in results.finished:
        if seed in kept:
            found = device_map(results.run(label, seed), len(plan.arms))
            if found is not None:
                maps.append({"arm": numbers[label], "seed": seed, **found})
    return maps


def _maps_section(results: Results, maps: Sequence[dict[str, Any]]) -> str:
    if not maps:
        return ""
    shown = {entry["arm"] for entry in maps}
    seeds = sorted({entry["seed"] for entry in maps})
    arms = "".join(
        f'<option value="{number}">{escape(arm.label)}</option>'
        for number, arm in enumerate(results.plan.arms)
        if number in shown
    )
    options = "".join(f'<option value="{seed}">{seed}</option>' for seed in seeds)
    fewer = "" if len(seeds) == len(results.plan.seeds) else " The page holds the first seeds only, to stay small."
    key = (
        '<div class="key"><span><i style="background:var(--sent)"></i>transmitted</span>'
        '<span><i style="background:var(--dropped)"></i>trained, then dropped</span>'
        '<span><i style="background:var(--idle)"></i>not scheduled</span>'
        '<span><i style="background:var(--ineligible)"></i>not eligible</span></div>'
    )
    return (
        '<section id="devices"><h2>Devices</h2>'
        f"<p>One run at a time. A device is not eligible if it holds no data or cannot meet the deadline.{fewer}</p>"
        '<div class="controls">'
        f'<label>Arm <select id="map-arm">{arms}</select></label>'
        f'<label>Seed <select id="map-seed">{options}</select></label>'
        '<label>Order <select id="map-order"><option value="beta">channel gain β</option>'
        '<option value="arrival">mean arrival time</option></select></label>'
        '<label>Beside it <select id="map-beside"><option value="">nothing</option>'
        f"{arms}</select></label></div>"
        '<div class="controls"><label>Round <input type="range" id="map-round" min="1" value="1"></label>'
        '<output id="map-at" for="map-round"></output></div>'
        '<p id="map-missing" class="notice" hidden>This run is not there.</p>'
        '<div class="grid">'
        + frame("map-schedule", "Who was scheduled", "Device by round: scheduled or not", tall=True, below=key)
        + frame("map-waiting", "Data waiting, not used yet", "Device by round: samples not used yet", tall=True)
        + frame("map-energy", "Energy against budget", "Mean energy per round of each device, and its budget")
        + '</div><div class="grid" id="map-second" hidden>'
        + frame("map-schedule-2", "Who was scheduled", "Device by round: scheduled or not", tall=True, below=key)
        + frame("map-waiting-2", "Data waiting, not used yet", "Device by round: samples not used yet", tall=True)
        + frame("map-energy-2", "Energy against budget", "Mean energy per round of each device, and its budget")
        + '</div><p class="muted" id="map-note"></p></section>'
    )


def _settings_section(results: Results) -> str:
    parts = "".join(
        f"<details><summary>{escape(arm.label)}</summary><pre>{escape(to_toml(arm.scenario))}</pre></details>"
        for arm in results.plan.arms
    )
    return f'<section id="settings"><h2>Settings</h2><p>Each arm as a scenario file.</p>{parts}</section>'


def _repeat_section(made: Origin, content: Content) -> str:
    rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in made.facts.items())
    changed = ""
    if content.changes:
        listed = ", ".join(f"<code>{escape(change)}</code>" for change in content.changes)
        changed = f"<p>Changed from {escape(content.changed_from)}: {listed}.</p>"
    cited = f"{escape(content.reference)}. The model is that of " if content.reference else "The paper: "
    return (
        '<section id="repeat"><h2>How to repeat it</h2>'
        f'<p>{escape(made.hint)}</p><pre class="command">{escape(made.command)}</pre>{changed}'
        f'<table class="facts"><tbody>{rows}</tbody></table><p>{cited}{MODEL}.</p></section>'
    )
