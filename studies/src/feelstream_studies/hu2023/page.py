"""What the report of a reproduction shows: the paper's figures and claims, and what the terminal says of them."""

from __future__ import annotations

import polars as pl

from feelstream.studies.claims import Finding
from feelstream.studies.pages import Page, by_panel
from feelstream.studies.plans import Scenario
from feelstream.studies.results import Results
from feelstream_studies.hu2023 import paper
from feelstream_studies.hu2023.claims import all_claims
from feelstream_studies.hu2023.one_screen import told

FITTED = "used to choose T and σ, therefore no evidence"
ELIGIBLE = {"any": "any device, whether or not it holds data", "with_data": "only devices that hold data"}
FRESH = {"per_round": "what arrived in this round", "since_use": "what arrived since the device was last used"}


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
        told=lambda findings: told(findings, mean_empty(results)),
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


def mean_empty(results: Results) -> float | None:
    """The mean of `empty_share` over random's runs of figure 1 whose device tables were kept."""
    labels = {paper.random(setting, n) for setting in ("iid", "3digit") for n in paper.SIZES}
    tables = [results.devices(*run, ("stored", "scheduled")) for run in results.finished if run[0] in labels]
    shares = [share for table in tables if table is not None and (share := empty_share(table)) is not None]
    return sum(shares) / len(shares) if shares else None


def empty_share(devices: pl.DataFrame) -> float | None:
    """Σ_t |{k ∈ Π*(t) : S_k(t) = ∅}| / Σ_t |Π*(t)| from a run's device table; None where nobody was scheduled."""
    slots = devices.filter("scheduled")
    return float((slots["stored"] == 0).mean()) if len(slots) else None  # pyright: ignore[reportArgumentType]
