"""The figure: what policies save against random scheduling, from law to law."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from feelstream.studies.pages import COLUMN_WIDTH_IN, PANEL_HEIGHT_IN, legend_below, line_style, styled
from feelstream_studies.silicon.configurations import LAWS, OWN_RANGE, SCENARIOS

SHOWN = ("lyapunov_joint", "greedy_energy", "balanced", "ocean", "lyapunov", "fedbacys", "round_robin")


def figure_of(savings: pl.DataFrame) -> Figure:
    """A panel for each scenario, a line for each policy, with 95 % intervals."""
    with styled():
        figure = Figure(figsize=(2 * COLUMN_WIDTH_IN, 1.25 * PANEL_HEIGHT_IN), layout="constrained")
        grid = figure.subplots(1, len(SCENARIOS), sharey=True, squeeze=False)[0]
        for axes, scenario in zip(grid, SCENARIOS, strict=True):
            for number, policy in enumerate(SHOWN):
                style = line_style(number)
                rows = savings.filter(scenario=scenario, budget="scenario", policy=policy).drop_nulls("saving")
                at = [LAWS.index(law) for law in rows["law"]]
                half = ((rows["high"] - rows["low"]) / 2).fill_null(0.0)
                axes.errorbar(
                    at, 100 * rows["saving"], yerr=100 * half, color=style.light, marker=style.marker,
                    linestyle=style.mpl_dash, markersize=3.5, linewidth=1.0, elinewidth=0.6, label=policy,
                )  # fmt: skip
            axes.axhline(0.0, color="#5C6670", linewidth=0.6)
            axes.set_title(scenario, loc="left", pad=4)
            axes.set_xticks(range(len(LAWS)), [law.replace(OWN_RANGE, "\n(own range)") for law in LAWS])
        grid[0].set_ylabel("Energy saved per update\nagainst random scheduling (%)")
        legend_below(figure, list(grid), grow=False)
    return figure
