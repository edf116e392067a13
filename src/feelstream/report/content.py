"""What a page and its figures are made of beside the results: all of it is handed in, by the study that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from feelstream.experiment.panels import PanelFigure
from feelstream.report.html.charts import Group


@dataclass(frozen=True)
class Section:
    """A part of the page: a heading, HTML, charts in a grid, and HTML below them.

    Whatever came from outside must be escaped in `html` and `below`. charts: caption and plotly specification of each,
    as `report.html.charts.group_charts` makes them.
    """

    key: str  # of its address in the page, #key
    name: str  # in the line of links at the top
    html: str
    heading: str = ""  # default: the name
    charts: Sequence[tuple[str, dict[str, Any]]] = ()
    below: str = ""


@dataclass(frozen=True)
class Content:
    """What the report of some results has of its own. What is left out is what any comparison of arms has."""

    title: str = ""  # default: the plan's name
    command: str = ""  # that makes the results again; default: the plan's
    changes: Sequence[str] = ()  # `section.field=value` that these runs set otherwise
    changed_from: str = ""  # than this
    reference: str = ""  # what to cite, in plain text
    groups: Sequence[Group] = ()  # arms that are shown together; default: those that share a world
    figures: Sequence[PanelFigure] = ()  # drawn and kept as curves.csv
    sections: Sequence[Section] = ()  # between the opening and the summary
    comparison: bool = True  # the table that compares all arms, its Pareto plot, and curves by round
