"""What the report of a reproduction shows: the paper's figures and claims."""

from __future__ import annotations

from feelstream.studies.pages import Page, by_panel
from feelstream.studies.results import Results
from feelstream_studies.hu2023 import paper
from feelstream_studies.hu2023.claims import all_claims
from feelstream_studies.hu2023.page.docs import write_docs
from feelstream_studies.hu2023.page.words import WORDING


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
