"""Everything that is made from a multiverse: tables of outcomes, curves, and the page for the docs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from feelstream.report.drawing.figures import save
from feelstream.report.origin import origin
from feelstream.run.files import usable_directory, write_atomically
from feelstream.studies.claims import Claim
from feelstream.studies.hu2023.claims import figure_claims
from feelstream.studies.hu2023.multiverse.curve import curve_figure
from feelstream.studies.hu2023.multiverse.settings import LEARNING, MOST_STEPS
from feelstream.studies.hu2023.multiverse.study import Study, presets
from feelstream.studies.hu2023.multiverse.tables import best, by_figure, glance, percent, settings_table, shown
from feelstream.studies.hu2023.page.words import FITTED

DOCS_DPI = 110
ABOUT = """\
The paper can be read in several ways (32 combinations of five readings here) and leaves numbers open. A result that
holds under one reading alone is a result about that reading. So the energy claims are judged under every
combination of the settings below, and the others under a sample spread over them: their *multiverse* (Steegen,
Tuerlinckx, Gelman and Vanpaemel, Perspectives on Psychological Science 11, 2016). Each figure below is a
*specification curve* (Simonsohn, Simmons and Nelson, Nature Human Behaviour 4, 2020): all effects in order of size
with their 95 % t intervals over seeds, and below them the settings that each was measured with. The percentage beside
a value is the share of its specifications under which the claim is reproduced.
"""
JUDGED = """\
A claim *is reproduced* where the mean lead over seeds is above 0, or above minus the margin of a claim to be as good
(over each rival, where it names two), or where the saving is above 0 beyond chance and a published number lies in the
95 % prediction interval of one run (how much runs differ is pooled over all specifications with the same number of
rounds); it is reproduced *clearly* where the 95 % interval of the mean is above 0, or minus the margin, as well.
Nothing here is corrected for the number of specifications, and with a few seeds each, which are those that the presets
were first judged with, the part with learning describes what a claim may depend on and is no evidence.
[The reproduction](reproduction.md) tests the claims on other seeds. A setting is named under *needs* where the share
moves by a quarter or more between two of its values; among so few specifications with learning that happens by chance
alone to a third of the settings or more.
"""


def write(study: Study, out: Path) -> list[Path]:
    """outcomes.csv, outcomes.parquet and figures/: a curve for each claim that was judged."""
    usable_directory(out / "figures")
    whole = pl.concat([study.energy, study.learned])
    write_atomically(out / "outcomes.csv", whole.write_csv)
    write_atomically(out / "outcomes.parquet", whole.write_parquet)
    drawn: list[Path] = []
    for claim, table in judged_claims(study):
        drawn += save(curve_figure(claim, table, study.settings), out / "figures", picture(claim))
    return drawn


def picture(claim: Claim) -> str:
    return f"multiverse-{claim.key}"


def judged_claims(study: Study) -> list[tuple[Claim, pl.DataFrame]]:
    """Each claim with the table that judges it: all schedules for energy, the spread-out design for the others."""
    found = []
    for claim in figure_claims():
        table = study.energy if claim.fitted else study.designed
        if len(table.filter(claim=claim.key)):
            found.append((claim, table))
    return found


def at_a_glance(study: Study) -> list[dict[str, Any]]:
    """A row for each claim that was judged: how often it is reproduced, and its effects."""
    return [
        {
            "claim": claim.key,
            "figure": claim.panel,
            "statement": claim.statement,
            "unit": claim.unit,
            "fitted": claim.fitted,
        }
        | vars(shown(table.filter(claim=claim.key)))
        for claim, table in judged_claims(study)
    ]


def write_docs(study: Study, directory: Path, command: str) -> Path:
    """Write multiverse.md and its curves, figures/multiverse-CLAIM.png."""
    pictures = usable_directory(directory / "figures")
    (pictures / ".lock").unlink(missing_ok=True)
    shown = judged_claims(study)
    for claim, table in shown:
        save(curve_figure(claim, table, study.settings), pictures, picture(claim), formats=("png",), dpi=DOCS_DPI)
    path = directory / "multiverse.md"
    text = _text(study, [claim for claim, _ in shown], command)
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))
    return path


def summary(study: Study) -> str:
    """The findings, in a paragraph."""
    energy = study.energy
    schedules = energy.select(LEARNING).n_unique()
    text = (
        f"Of {schedules} schedules, all of the paper's energy savings are reproduced under {len(study.candidates)} "
        f"({percent(len(study.candidates) / max(1, schedules))})"
    )
    whole = study.all_claims_together()
    if whole.is_empty():
        return text + "."
    claims = len(figure_claims())
    top, full = whole.row(0, named=True), whole.filter(pl.col("come_out") == claims)
    text += f". Of {len(whole)} specifications with learning, {len(study.searched)} of them chosen by the search, "
    if len(full):
        return (
            text
            + f"{len(full)} have all {claims} claims reproduced; as each has so few seeds, that is a fit, not a proof."
        )
    return text + (
        f"none has all {claims} claims reproduced; the most is {top['come_out']} (without {', '.join(top['missing'])})."
    )


def _text(study: Study, claims: Sequence[Claim], command: str) -> str:
    made = [origin(results) for results in study.results]
    date = max(each.finished for each in made).partition(" ")[0]
    whole, sizes = study.all_claims_together(), study.sizes
    energy, others = [each for each in claims if each.fitted], [each for each in claims if not each.fitted]
    parts = [
        "# The multiverse\n",
        f"{summary(study)}\n",
        f"Runs of {date}. This page is written by a command; do not edit it:\n",
        f"    {command}\n",
        ABOUT,
        "## What differs\n",
        settings_table(study.settings),
        f"Combinations with T · `steps` above {MOST_STEPS} are not run. The presets have "
        f"`{presets(study.settings)}`.\n",
        "## What is reproduced, and what it needs\n",
        JUDGED,
        f"### Energy: every combination that the schedule depends on, {sizes.seeds} seeds each\n",
        glance(study.energy, energy, study.settings),
        f"†: {FITTED}.\n",
    ]
    if others:
        count = study.designed.select(LEARNING).n_unique()
        parts += [
            f"### Learning: {count} specifications, {sizes.learning_seeds} seeds each\n",
            "The presets' and a maximin Latin design, in which every value comes up about equally often. With so few "
            "specifications a share is uncertain by some ten percentage points.\n",
            glance(study.designed, others, study.settings),
        ]
    if not whole.is_empty():
        parts += [
            "## Together\n",
            "The search looks only where all savings are the paper's, and there where an additive model of every "
            "claim's effect, fitted to all runs so far, expects the most claims to be reproduced. The five "
            "specifications under which most claims are reproduced:\n",
            best(whole, len(figure_claims())),
            "The paper need not have used the same settings for all of its figures. Each figure alone, energy aside:\n",
            by_figure(study.learned, others),
        ]
    parts.append("## Curves\n")
    for claim in claims:
        parts.append(f"![Specification curve of {claim.key}](figures/{picture(claim)}.png)\n")
        parts.append(f"*{claim.panel}.* {claim.statement[0].upper()}{claim.statement[1:]}: {claim.measure}.\n")
    parts += ["## Origin\n"]
    for each, results in zip(made, study.results, strict=True):
        facts = "; ".join(f"{name}: {fact}" for name, fact in each.facts.items())
        parts.append(f"- {results.plan.name}: {len(results.finished)} runs; {facts}")
    return "\n".join(parts).rstrip() + "\n"
