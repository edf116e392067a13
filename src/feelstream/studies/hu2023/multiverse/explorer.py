"""docs/explorer.html: one page that opens without a network, with every claim and curve of every specification run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from feelstream.experiment import Arm, Plan
from feelstream.experiment.panels import Panel, curves
from feelstream.experiment.statistics import Interval
from feelstream.quantities import QUANTITIES, short
from feelstream.report.drawing.style import line_style
from feelstream.run.files import usable_directory, write_atomically
from feelstream.studies.claims import Claim, Finding, judged
from feelstream.studies.claims.verdicts import Published, margin_of
from feelstream.studies.hu2023 import STUDY, paper
from feelstream.studies.hu2023.claims import figure_claims
from feelstream.studies.hu2023.confirmation import table as confirmation
from feelstream.studies.hu2023.confirmation.candidates import CANDIDATES
from feelstream.studies.hu2023.confirmation.evidence import Confirmed, confirmed
from feelstream.studies.hu2023.multiverse.energy import AT_STAGE, COMPARED, Energy
from feelstream.studies.hu2023.multiverse.race import Race
from feelstream.studies.hu2023.multiverse.settings import (
    SCHEDULE,
    SETTINGS,
    TITLES,
    Specification,
    confirmed_ones,
    levels,
    registration,
)

PAGE = "explorer.html"
SHOWN = ("fig1", "fig2", "fig3")


def write(docs: Path, table: Path, energy: Energy, race: Race) -> Path:
    """Write the page from the table of the confirmation and those of the search."""
    path = usable_directory(docs) / PAGE
    text = html(data(confirmation.read(table), energy, race))
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))
    return path


def html(content: dict[str, Any]) -> str:
    template = (files("feelstream.studies.hu2023.multiverse") / "explorer.html").read_text(encoding="utf-8")
    # A closing tag inside the script would end it.
    return template.replace(
        "{{data}}", json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    )


def data(table: pl.DataFrame, energy: Energy, race: Race) -> dict[str, Any]:
    by_candidate = {str(each.candidate): each for each in confirmed(table, CANDIDATES)}
    entries = [
        _of_confirmed(by_candidate[str(candidate)], specification)
        for candidate, specification in zip(CANDIDATES, confirmed_ones(), strict=True)
        if str(candidate) in by_candidate
    ]
    finals = {specification: figure for figure, specification in race.finalists().items()}
    entries += [_of_race(race, each, finals.get(each)) for each in race.begun]
    return {
        "settings": [{"name": name, "title": TITLES[name], "values": levels(name)} for name in SETTINGS],
        "scheduling": SCHEDULE,
        "claims": [_claim(claim) for claim in figure_claims()],
        "panels": [_panel(panel) for key in SHOWN for panel in paper.FIGURES[key].panels],
        "compared": [f"{paper.IN_WORDS[setting]}, n = {n}" for setting, n in COMPARED],
        "published": [16.0 if n == paper.SIZES[0] else 35.0 for _, n in COMPARED],
        "savings": dict(_savings(energy)),
        "specifications": entries,
    }


def _claim(claim: Claim) -> dict[str, Any]:
    published = claim.test.number if isinstance(claim.test, Published) else None
    return {
        "key": claim.key, "panel": claim.panel, "text": claim.statement, "unit": claim.unit,
        "bound": -margin_of(claim.test), "published": published,
    }  # fmt: skip


def _panel(panel: Panel) -> dict[str, Any]:
    quantity = QUANTITIES[panel.quantity]
    own = [
        {"arm": curve.arm, "name": curve.name, "colour": line_style(index).light, "dark": line_style(index).dark}
        for index, curve in enumerate(panel.curves)
    ]
    return {"key": panel.key, "title": panel.setting, "axis": f"{quantity.heading} ({quantity.unit})", "curves": own}


def _savings(energy: Energy) -> Iterable[tuple[str, dict[str, Any]]]:
    """Of every schedule, by its choices: mean and 95 % interval of what it saves in each comparison."""
    kept, stages = set(energy.kept or ()), registration()["energy"]["stages"]
    for schedule in energy.savings:
        stage = 1 if energy.values(schedule, len(COMPARED) - 1, stages[-1]) else 0
        means = energy.means(schedule, stage, 0.95)
        rows = [[short(value or each.mean, 4) for value in (each.mean, each.low, each.high)] for each in means]
        seeds = len(energy.values(schedule, 0, stages[-1]))
        possible = energy.is_possible(schedule, 0, registration()["energy"]["level"]) if seeds >= stages[0] else None
        state = "kept" if schedule in kept else "possible" if possible else "dropped" if possible is False else "begun"
        yield " ".join(str(schedule).split()[: len(SCHEDULE)]), {"rows": rows[: len(AT_STAGE[stage])], "seeds": seeds,
                                                                 "state": state}  # fmt: skip


def _of_confirmed(own: Confirmed, specification: Specification) -> dict[str, Any]:
    name = {"literal": "literal preset", "fitted": "fitted preset"}[own.candidate.settings]
    findings = [each for each in own.findings if each.claim.key in {claim.key for claim in figure_claims()}]
    seeds = f"{own.seeds} of the seeds 2000 to 2019"
    entry = {"name": f"{name}, {own.candidate.fresh}", "kind": "preset", "seeds": seeds}
    return entry | {
        "choices": list(specification.choices.values()),
        "effects": {each.claim.key: _effects(each, str(each.verdict)) for each in findings},
        "curves": _curves(own.rounds),
    }


def _of_race(race: Race, specification: Specification, figure: str | None) -> dict[str, Any]:
    rounds = race.rounds(specification)
    arms = tuple(Arm(label, specification.scenario(label, learning=True)) for label in dict.fromkeys(rounds["arm"]))
    plan = Plan("multiverse", arms, tuple(sorted(set(rounds["seed"]))), study=STUDY.name)
    own = judged(plan, rounds, [claim for claim in figure_claims() if not claim.fitted])
    seeds = max((finding.ours.n for finding in own), default=0)
    return {
        "name": str(specification) if figure is None else f"finalist of figure {figure}",
        "kind": "race" if figure is None else "finalist",
        "seeds": f"{seeds} seeds of the search",
        "choices": list(specification.choices.values()),
        "effects": {each.claim.key: _effects(each, "") for each in own},
        "curves": _curves(rounds),
    }


def _effects(finding: Finding, verdict: str) -> dict[str, Any]:
    rows = [
        [each.rival, *(None if value is None else short(value, 4) for value in _ends(each.interval))]
        for each in finding.effects
    ]
    return {"rows": rows, "verdict": verdict}


def _ends(interval: Interval) -> tuple[float | None, ...]:
    return interval.mean, interval.low, interval.high


def _curves(rounds: pl.DataFrame) -> dict[str, dict[str, Sequence[Any]]]:
    """Panel → arm → rounds, means and ends of the 95 % interval, in the unit of its axis."""
    found: dict[str, dict[str, Sequence[Any]]] = {}
    figures = [paper.FIGURES[key] for key in SHOWN]
    columns = {panel.key: panel.quantity for figure in figures for panel in figure.panels}
    table = curves(figures, rounds)
    for (panel, arm), rows in table.group_by("panel", "arm", maintain_order=True):
        scale = QUANTITIES[columns[str(panel)]].scale
        values = [
            [None if value is None else short(scale * value, 4) for value in rows[name]]
            for name in ("mean", "low", "high")
        ]
        found.setdefault(str(panel), {})[str(arm)] = [rows["round"].to_list(), *values]
    return found
