"""What the report of a reproduction shows: the paper's figures and claims."""

from __future__ import annotations

from feelstream.experiment import Results
from feelstream.report.html.groups import by_panel
from feelstream.studies.hu2023 import paper
from feelstream.studies.hu2023.claims import all_claims
from feelstream.studies.hu2023.page.docs import write_docs
from feelstream.studies.hu2023.page.words import WORDING
from feelstream.studies.page import Page


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
        wording=WORDING,
        facts={"changed_from_the_paper_presets": changes},
        docs=write_docs,
    )
