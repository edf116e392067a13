"""What the report of a reproduction shows, the paper's figures and claims, and its page of the docs, reproduced.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from feelstream.studies.claims import (
    EXPLAINED,
    Finding,
    Verdict,
    chance,
    judged,
    one_run,
    ours,
    verdict,
)
from feelstream.studies.pages import Page, by_panel, markdown, origin, panel_figures, write_page
from feelstream.studies.plans import Scenario
from feelstream.studies.results import Results
from feelstream_studies.hu2023 import paper
from feelstream_studies.hu2023.claims import all_claims, remaining_claims
from feelstream_studies.hu2023.conclusion import conclusion, mean_empty
from feelstream_studies.hu2023.one_screen import told

OUT = "results/paper"
FITTED = "used to choose T and σ, therefore no evidence"
ELIGIBLE = {"any": "any device, whether or not it holds data", "with_data": "only devices that hold data"}
FRESH = {"per_round": "what arrived in this round", "since_use": "what arrived since the device was last used"}
DISCUSSED = {
    Verdict.FAILED: "Not reproduced",
    Verdict.DIRECTION: "Same direction, other size",
    Verdict.OPEN: "Undecided",
}


def page(results: Results) -> Page | None:
    """None for a plan that is none of the figures'."""
    figures = paper.figures_of(results.plan)
    if not figures:
        return None
    changes = paper.changes(results.plan)
    return Page(
        title=paper.title(results.plan),
        command=paper.command(results.plan),
        changes=changes,
        changed_from="the paper’s presets",
        groups=by_panel(figures),
        figures=figures,
        comparison=False,
        claims=all_claims(),
        heading="The paper’s claims",
        fitted=FITTED,
        caveat=caveat,
        facts={"changed_from_the_paper_presets": changes},
        docs=write_docs,
        told=lambda findings: told(findings, mean_empty(results, paper.random)),
    )


def settings(scenario: Scenario) -> str:
    """The readings and settings that the paper does not state, as these runs have them."""
    local, data = scenario.learning.local, scenario.data
    sigma = getattr(data.arrivals, "sigma", None)
    parts = [f"T = {scenario.system.rounds} rounds"]
    if sigma is not None:
        parts.append(f"σ = {sigma:g} of the run")
    if local.shape and (lr := getattr(local, "lr", None)) is not None:
        parts += ["{} SGD steps of {} samples".format(*local.shape), f"learning rate {lr:g}"]
    return f"{', '.join(parts)}, fresh data read as {FRESH[data.fresh]}, and {ELIGIBLE[data.eligible]} eligible"


def caveat(finding: Finding) -> str:
    return f"The paper does not state its settings in full; these runs have {settings(finding.scenario)}."


def write_docs(directory: Path, results: Results, findings: Sequence[Finding]) -> Path:
    """Write reproduced.md and the figures it shows."""
    figures, rounds = paper.figures_of(results.plan), results.rounds()
    pictures = {name: picture for name, picture in panel_figures(figures, rounds) if name in paper.FIGURES}
    text = markdown(
        "feelstream_studies.hu2023/page.md.j2",
        conclusion=conclusion(results, findings),
        made=origin(results, command=paper.command(results.plan)),
        out=OUT,
        seeds=len(results.plan.seeds),
        figures=[figure for figure in figures if figure.key in pictures],
        findings=findings,
        left=judged(results.plan, rounds, remaining_claims()),
        explained=EXPLAINED,
        why_fitted=FITTED,
        headings=DISCUSSED,
        settings=settings(results.plan.arms[0].scenario),
        changes=paper.changes(results.plan),
        chance=chance,
        one_run=one_run,
        ours=ours,
        verdict=verdict,
    )
    return write_page(directory, "reproduced", text, pictures)
