"""The search in two pictures: savings over T, and how likely each claim is under each specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from feelstream.report.drawing.figures import styled
from feelstream.report.drawing.style import COLUMN_WIDTH_IN, line_style
from feelstream.studies.hu2023.claims.statements import SAVINGS
from feelstream.studies.hu2023.multiverse.effects import Key
from feelstream.studies.hu2023.multiverse.energy import Energy, mean_of
from feelstream.studies.hu2023.multiverse.settings import Specification, levels

IN_WORDS = {"any": "any device", "with_data": "with data only", "per_round": "fresh: this round",
            "since_use": "fresh: since last use"}  # fmt: skip
WIDTHS = {"0.03": "σ = 0.03 T", "0.0625": "σ = T/16", "0.125": "σ = T/8", "0.25": "σ = T/4"}


def savings_figure(energy: Energy) -> Figure:
    """What is saved on i.i.d. data by number of rounds: a column per reading, a row per devices a round."""
    columns = [(eligible, fresh) for eligible in levels("eligible") for fresh in levels("fresh")]
    with styled():
        figure = Figure(figsize=(2 * COLUMN_WIDTH_IN, 3.7), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(len(SAVINGS), len(columns), sharex=True, sharey=True, squeeze=False)
        for row, (n, published) in enumerate(SAVINGS.items()):
            for column, (eligible, fresh) in enumerate(columns):
                axes = grid[row, column]
                _draw_savings(axes, energy, eligible, fresh, row)
                axes.axhline(published, color="black", linewidth=0.8, linestyle=(0, (4, 2)))
                if row == 0:
                    axes.set_title(f"{IN_WORDS[eligible]},\n{IN_WORDS[fresh]}", fontsize=7)
                if column == 0:
                    axes.set_ylabel(f"n = {n}: energy saved (%)")
                    axes.annotate(f"paper: {published:g} %", (300, published), xytext=(0, 2), fontsize=6,
                                  textcoords="offset points", va="bottom", ha="right")  # fmt: skip
        for axes in grid[-1]:
            axes.set_xlabel("rounds T")
        handles, names = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=len(names), columnspacing=1.2)
    return figure


def _draw_savings(axes: Axes, energy: Energy, eligible: str, fresh: str, index: int) -> None:
    left = set(energy.left)
    every = [int(each) for each in levels("T")]
    for number, sigma in enumerate(levels("sigma")):
        style, rows = line_style(number), [Specification(eligible, fresh, sigma, str(rounds)) for rounds in every]
        means = [mean_of(energy.values(each, index, 20), energy.spread(each.T, index, 20), 0.95) for each in rows]
        y = np.array([each.mean for each in means])
        axes.plot(every, y, color=style.light, linestyle=style.mpl_dash, linewidth=1.0, label=WIDTHS.get(sigma, sigma))
        low, high = (np.array([getattr(each, side) or each.mean for each in means]) for side in ("low", "high"))
        axes.fill_between(every, low, high, color=style.light, alpha=0.12, linewidth=0)
        full = np.array([each in left for each in rows])
        axes.plot(np.array(every)[full], y[full], linestyle="none", marker=style.marker, markersize=3.2,
                  color=style.light)  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator([15, 30, 60, 120, 300]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks([15, 30, 60, 120, 300], ["15", "30", "60", "120", "300"])


def chances_figure(
    named: Mapping[str, Specification], chances: Mapping[Specification, Mapping[Key, float]],
    effects: Mapping[Specification, Mapping[Key, float]], keys: Sequence[Key], units: Mapping[str, str],
) -> Figure:  # fmt: skip
    """A row per lead, a column per specification; colour: P(effect > minus its margin); text: the mean effect."""
    rows = [*named.values()]
    values = np.array([[chances[each].get(key, np.nan) for each in rows] for key in keys])
    with styled():
        figure = Figure(figsize=(1.5 * COLUMN_WIDTH_IN, 0.8 + 0.19 * len(keys)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        image = axes.imshow(np.ma.masked_invalid(values), cmap="RdBu", vmin=0, vmax=1, aspect="auto")
        for x, each in enumerate(rows):
            for y, key in enumerate(keys):
                effect = effects[each].get(key)
                if effect is not None:
                    text = f"{effect:+.1f}" if units[key[0]] == "nat" else f"{effect:+.0f}"
                    dark = not 0.2 < values[y, x] < 0.8
                    axes.text(x, y, text.replace("-", "−"), ha="center", va="center", fontsize=7,
                              color="white" if dark else "black")  # fmt: skip
        axes.set_yticks(range(len(keys)), [lead_in_words(*key) for key in keys], fontsize=7)
        axes.set_xticks(range(len(rows)), [*named], fontsize=7)
        axes.set_xlabel("specification")
        axes.xaxis.set_label_position("top")
        axes.xaxis.tick_top()
        for y in range(1, len(keys)):  # a line where the next figure begins
            if keys[y][0][0] != keys[y - 1][0][0]:
                axes.axhline(y - 0.5, color="black", linewidth=0.8)
        axes.grid(visible=False)
        axes.tick_params(length=0)
        bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.02)
        bar.set_label("P(effect > −margin)", fontsize=7)
        bar.ax.tick_params(labelsize=7)
    return figure


def lead_in_words(claim: str, rival: str) -> str:
    """
    >>> lead_in_words("1a-n2-mean", "random"), lead_in_words("2a-early", "its own late lead")
    ('1a, n = 2, mean: random', '2a, early: its own late lead')
    """
    parts = [f"n = {part[1:]}" if part[0] == "n" and part[1:].isdigit() else part for part in claim.split("-")]
    return f"{', '.join(parts)}: {rival}"
