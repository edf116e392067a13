"""Specification curves: effects sorted, and below them which value of each setting every specification has."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from feelstream.report.drawing.figures import styled
from feelstream.report.drawing.style import COLUMN_WIDTH_IN, line_style
from feelstream.studies.claims import Claim
from feelstream.studies.claims.verdicts import Published
from feelstream.studies.hu2023.multiverse.settings import Factor, read_by

OUT, NOT_OUT = line_style(0).light, line_style(1).light
MANY = 150  # specifications above which single intervals are a band and dots are strokes
ROW_IN, CURVE_IN = 0.125, 1.9
IN_WORDS = {
    "any": "any device", "with_data": "with data only", "since_use": "since last use", "per_round": "of this round",
    "zero": "scores 0", "vector": "zero vector", "truncate": "truncated", "clip": "clipped",
}  # fmt: skip


def curve_figure(claim: Claim, table: pl.DataFrame, settings: Mapping[str, Factor]) -> Figure:
    """The curve of one claim, from its rows of a table of outcomes.

    Settings with one value, or that no run behind the claim looks at, are left out.
    """
    rows = table.filter(claim=claim.key).sort("effect", maintain_order=True)
    differ = (name for name in read_by(claim, settings) if len(settings[name].values) > 1)
    shown = [name for name in differ if rows[name].null_count() < len(rows)]
    height = sum(len(settings[name].values) for name in shown) * ROW_IN + 0.09 * len(shown)
    with styled():
        figure = Figure(figsize=(2 * COLUMN_WIDTH_IN, CURVE_IN + height + 0.55), layout="constrained")
        FigureCanvasAgg(figure)
        top, matrix = figure.subplots(2, 1, sharex=True, height_ratios=[CURVE_IN, height])
        _draw_effects(top, claim, rows)
        _draw_matrix(matrix, rows, shown, settings)
        matrix.set_xlabel(f"{len(rows)} specifications, by effect")
        scale = 4.0 if len(rows) > MANY else 1.3
        handles = top.get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=2, columnspacing=1.2, markerscale=scale)
    return figure


def _draw_effects(axes: Axes, claim: Claim, rows: pl.DataFrame) -> None:
    """The effect of each specification with its 95 % interval, and what the claim says."""
    x, effect = np.arange(len(rows)), rows["effect"].to_numpy()
    low, high = (rows[name].fill_null(rows["effect"]).to_numpy() for name in ("low", "high"))
    out = rows["comes_out"].to_numpy()
    many = len(rows) > MANY
    for which, colour, name in ((out, OUT, "the claim is reproduced"), (~out, NOT_OUT, "it does not")):
        if which.any():
            axes.vlines(
                x[which], low[which], high[which], color=colour, alpha=0.18 if many else 0.45,
                linewidth=max(0.25, 240 / len(rows)) if many else 1.0, rasterized=many,
            )  # fmt: skip
            share = f"{100 * which.mean():.0f} %"
            axes.plot(
                x[which], effect[which], linestyle="none", marker=".", markersize=1.6 if many else 4.5, color=colour,
                label=f"{name}: {share}", rasterized=many,
            )  # fmt: skip
    if isinstance(claim.test, Published):
        axes.axhline(claim.test.number, color="black", linewidth=0.8, linestyle=(0, (4, 2)))
        axes.annotate(
            f"the paper: {claim.paper}", (1.0, claim.test.number), xycoords=("axes fraction", "data"), fontsize=7,
            xytext=(-2, 2), textcoords="offset points", va="bottom", ha="right",
        )  # fmt: skip
    axes.axhline(0, color="black", linewidth=0.6)
    # Single intervals of few seeds may be huge; the axis follows the effects.
    reach = 0.35 * (effect.max() - effect.min()) or 1.0
    bounds = [*effect, 0.0, *([claim.test.number] if isinstance(claim.test, Published) else [])]
    bottom, top = max(low.min(), min(bounds) - reach), min(high.max(), max(bounds) + reach)
    if bottom > min(bounds) or top < max(bounds) or bottom == top:
        bottom, top = min(bounds) - reach, max(bounds) + reach
    axes.set_ylim(bottom, top)
    axes.set_ylabel({"%": "Energy saved (%)", "pp": "Lead (pp)", "nat": "Lead (nat)"}[claim.unit])
    axes.set_title(f"({claim.panel}) {claim.statement}", loc="left", pad=4, fontsize=7.5)
    axes.tick_params(axis="x", bottom=False, labelbottom=False)
    axes.grid(axis="x", visible=False)


def _draw_matrix(axes: Axes, rows: pl.DataFrame, shown: list[str], settings: Mapping[str, Factor]) -> None:
    """A row for each value of each setting: marks under the specifications that have it, its share on the right."""
    many, out = len(rows) > MANY, rows["comes_out"].to_numpy()
    y, ticks, names = 0.0, [], []
    for index, name in enumerate(shown):
        setting = settings[name]
        for value in setting.values:
            has = (rows[name] == value).to_numpy()
            for which, colour in ((has & out, OUT), (has & ~out, NOT_OUT)):
                places = np.flatnonzero(which)
                if many:
                    width = max(0.2, 320 / len(rows))
                    axes.vlines(places, y - 0.36, y + 0.36, color=colour, linewidth=width, rasterized=True)
                else:
                    axes.plot(
                        places, np.full(len(places), y), linestyle="none", marker="o", markersize=2.7, color=colour
                    )
            if has.any():
                axes.annotate(
                    f"{100 * out[has].mean():.0f} %", (1.0, y), xycoords=("axes fraction", "data"), fontsize=6.3,
                    xytext=(4, 0), textcoords="offset points", va="center", annotation_clip=False,
                )  # fmt: skip
            ticks.append(y)
            names.append(
                f"{setting.title}: {IN_WORDS.get(value, value)}"
                if value == setting.values[0]
                else IN_WORDS.get(value, value)
            )
            y += 1.0
        if index < len(shown) - 1:
            axes.axhline((y - 0.5 + y - 0.5 + 0.7) / 2, color="#BBBBBB", linewidth=0.4)
        y += 0.7
    axes.set_yticks(ticks, names, fontsize=6.3)
    axes.set_ylim(y - 0.7 - 0.4, -0.6)
    axes.tick_params(axis="both", length=0, labelbottom=False)
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.margins(x=0.01)
