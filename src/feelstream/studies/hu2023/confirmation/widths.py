"""The lead over random by the width of arrivals, as a picture: what the abstract says of temporal correlation."""

from __future__ import annotations

from math import log2

import polars as pl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from feelstream.experiment.statistics import interval
from feelstream.report.drawing.figures import styled
from feelstream.report.drawing.style import COLUMN_WIDTH_IN, line_style
from feelstream.studies.claims import Measured
from feelstream.studies.hu2023 import paper

PICTURE = "lead-by-width"
CAPTION = """\
![Lead by width of arrivals](figures/lead-by-width.png)

*The lead over random by the width of arrivals, two devices a round.* Grey: single seeds; blue: mean and 95 % interval.
The abstract says that the lead is larger where arrivals are more concentrated, which is to the left.
"""


def leads(rounds: pl.DataFrame, setting: str) -> list[dict[int, float]]:
    """At each width, the lead over random in accuracy over the run, by seed, pp; none unless all widths were run."""
    measured, n = Measured(rounds), paper.SIZES[0]
    found = [
        measured.lead(
            paper.at_width(paper.proposed(setting, n), width), paper.at_width(paper.random(setting, n), width),
            "accuracy", "mean",
        )
        for width in paper.WIDTHS
    ]  # fmt: skip
    known = [each for each in found if each]
    return known if len(known) == len(found) else []


def has_widths(rounds: pl.DataFrame) -> bool:
    return all(len(own := leads(rounds, setting)) and min(map(len, own)) > 1 for setting in ("iid", "3digit"))


def widths_figure(rounds: pl.DataFrame) -> Figure:
    x = [log2(width) for width in paper.WIDTHS]
    with styled():
        figure = Figure(figsize=(2 * COLUMN_WIDTH_IN, 2.3), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, 2, sharey=True)
        for axes, setting in zip(panels, ("iid", "3digit"), strict=True):
            own = leads(rounds, setting)
            for seed in sorted(set.intersection(*(set(each) for each in own))):
                axes.plot(x, [each[seed] for each in own], color="#B5B5B5", linewidth=0.7)
            means = [interval(list(each.values())) for each in own]
            half = [each.half_width or 0.0 for each in means]
            axes.errorbar(x, [each.mean for each in means], half, color=line_style(0).light, marker="o",
                          markersize=4, capsize=2.5, linewidth=1.4)  # fmt: skip
            axes.axhline(0, color="black", linewidth=0.6)
            axes.set_xticks(x, [f"T/{1 / width:g}" for width in paper.WIDTHS])
            axes.set_xlabel("width of arrivals σ")
            axes.set_title(f"{paper.IN_WORDS[setting]}, {min(map(len, own))} seeds", loc="left")
        panels[0].set_ylabel("Lead over random (pp)")
    return figure
