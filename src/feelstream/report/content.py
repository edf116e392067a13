"""What a page and its figures are made of beside the results: all of it is handed in, by the study that they are of.

HTML is made by `render`, from templates; whatever is put into one is escaped, unless it is Markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from feelstream.display.chart import Chart
from feelstream.report.groups import Group, PanelFigure


@dataclass(frozen=True)
class Section:
    """A part of the page: a heading, HTML, charts in a grid, and HTML below them.

    Whatever came from outside must be escaped in `html` and `below`.

    Attributes:
        key: Of its address in the page, #key.
        name: In the line of links at the top.
        html: What stands under the heading.
        heading: By default the name.
        charts: Caption of each, or "" for its title, and what it shows.
        below: HTML after the charts.
    """

    key: str
    name: str
    html: str
    heading: str = ""
    charts: Sequence[tuple[str, Chart]] = ()
    below: str = ""


@dataclass(frozen=True)
class Content:
    """What the report of some results has of its own. What is left out is what any comparison of arms has.

    Attributes:
        title: By default the plan's name.
        command: That makes the results again; by default the plan's.
        changes: `section.field=value` that these runs set otherwise than `changed_from`.
        changed_from: What they are compared with there, in words.
        reference: What to cite, in plain text.
        groups: Arms that are shown together; by default those that share a world.
        figures: Drawn, and kept as curves.csv.
        sections: Between the opening and the summary.
        comparison: Whether there is the table that compares all arms, its Pareto plot, and curves by round.
    """

    title: str = ""
    command: str = ""
    changes: Sequence[str] = ()
    changed_from: str = ""
    reference: str = ""
    groups: Sequence[Group] = ()
    figures: Sequence[PanelFigure] = ()
    sections: Sequence[Section] = ()
    comparison: bool = True


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_source),
        autoescape=lambda name: not (name or "").endswith(".md.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Of what goes into scripts: no NaN, which JSON does not know, and no blanks.
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment


def _source(name: str) -> str:
    package, _, file = name.partition("/")
    return resources.files(package).joinpath(file).read_text(encoding="utf-8")


def render(template: str, /, **values: Any) -> Markup:
    """A template filled in; its name is `package/file`, so that a study has its own beside its code."""
    return Markup(_environment().get_template(template).render(values))
