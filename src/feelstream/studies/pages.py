"""What the report of a study's results has of its own, how studies draw, and how they write a page of the docs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from feelstream.errors import RunError
from feelstream.experiment import Results
from feelstream.quantities import counted, number, significant
from feelstream.report import Content, Section
from feelstream.report.comparison import markdown_table, worlds
from feelstream.report.drawing.energy_axis import log_ticks
from feelstream.report.drawing.figures import composite, has_data, save, styled
from feelstream.report.drawing.legend import legend_below
from feelstream.report.drawing.pareto import front_of, pareto_figure
from feelstream.report.drawing.style import BUDGET_LINE, COLUMN_WIDTH_IN, PANEL_HEIGHT_IN, LineStyle, line_style
from feelstream.report.html.groups import by_panel
from feelstream.report.html.templates import render
from feelstream.report.origin import origin
from feelstream.run.files import write_atomically
from feelstream.studies.claims import Claim, Finding, Wording

__all__ = [
    "BUDGET_LINE",
    "COLUMN_WIDTH_IN",
    "DOCS_DPI",
    "PANEL_HEIGHT_IN",
    "Content",
    "LineStyle",
    "Page",
    "Section",
    "by_panel",
    "composite",
    "front_of",
    "has_data",
    "legend_below",
    "line_style",
    "log_ticks",
    "markdown",
    "markdown_table",
    "origin",
    "pareto_figure",
    "render",
    "save",
    "styled",
    "worlds",
    "write_atomically",
    "write_page",
]  # fmt: skip
DOCS_DPI = 120  # a picture that is kept in the repository stays small


@dataclass(frozen=True)
class Page(Content):
    """The content of a report, with claims that are judged, and a page for the docs if the study writes one.

    Attributes:
        claims: What is judged on the results.
        wording: How the page speaks of them.
        facts: More to say in claims.json.
        docs: Directory, results, findings → the page that was written there; None: there is none.
    """

    claims: Sequence[Claim] = ()
    wording: Wording = field(default_factory=Wording)
    facts: Mapping[str, Any] = field(default_factory=dict)
    docs: Callable[[Path, Results, Sequence[Finding]], Path] | None = None


def write_page(directory: Path, page: str, text: str, name: str, table: pl.DataFrame, figure: Figure) -> Path:
    """Write page.md, name.csv and figures/name.png; the page's path."""
    pictures = directory / "figures"
    try:
        pictures.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise RunError(f"cannot use the directory {pictures}: {problem.strerror}") from problem
    save(figure, pictures, name, formats=("png",), dpi=DOCS_DPI)
    write_atomically(directory / f"{name}.csv", lambda file: table.write_csv(file))
    path = directory / f"{page}.md"
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))
    return path


def markdown(template: str, /, **values: Any) -> str:
    """A page of the docs, from a template `package/file.md.j2`."""
    return f"{render(template, counted=counted, number=number, significant=significant, **values).rstrip()}\n"
