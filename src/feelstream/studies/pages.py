"""What the report of a study's results has of its own, how studies draw, and how they write a page of the docs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from feelstream.display.chart import Axis, Chart, Line, line_style, log_ticks
from feelstream.display.picture import BUDGET_LINE, COLUMN_WIDTH_IN, PANEL_HEIGHT_IN, legend_below, styled
from feelstream.display.quantities import counted, number, significant
from feelstream.experiment import Results
from feelstream.report import Content, Section
from feelstream.report.content import render
from feelstream.report.figures import panel_figures, save
from feelstream.report.groups import by_panel
from feelstream.report.html.page import origin
from feelstream.run.files import usable_directory, write_atomically
from feelstream.studies.claims import Claim, Finding

__all__ = [
    "BUDGET_LINE", "COLUMN_WIDTH_IN", "PANEL_HEIGHT_IN", "Axis", "Chart", "Line", "Page", "Section", "by_panel",
    "legend_below", "line_style", "log_ticks", "markdown", "origin", "panel_figures", "render", "styled",
    "write_page",
]  # fmt: skip
DOCS_DPI = 120  # a picture that is kept in the repository stays small


@dataclass(frozen=True)
class Page(Content):
    """The content of a report, with claims that are judged, and a page for the docs if the study writes one.

    Attributes:
        claims: What is judged on the results.
        heading: Over them.
        fitted: Why those that are marked † are no evidence, as in "used to choose T, therefore no evidence".
        caveat: What to bear in mind where one is not reproduced.
        facts: More to say in claims.json.
        told: Findings → what a terminal says of them; None: a table of the claims.
        docs: Directory, results, findings → the page that was written there; None: there is none.
    """

    claims: Sequence[Claim] = ()
    heading: str = "Claims"
    fitted: str = ""
    caveat: Callable[[Finding], str] = lambda finding: ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    told: Callable[[Sequence[Finding]], str] | None = None
    docs: Callable[[Path, Results, Sequence[Finding]], Path] | None = None


def markdown(template: str, /, **values: Any) -> str:
    """A page of the docs, from a template `package/file.md.j2`."""
    return f"{render(template, counted=counted, number=number, significant=significant, **values).rstrip()}\n"


def write_page(directory: Path, page: str, text: str, pictures: Mapping[str, Figure]) -> Path:
    """Write page.md and figures/NAME.png; the page's path."""
    usable_directory(directory / "figures")
    for name, figure in pictures.items():
        save(figure, directory / "figures", name, formats=("png",), dpi=DOCS_DPI)
    path = directory / f"{page}.md"
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))
    return path
