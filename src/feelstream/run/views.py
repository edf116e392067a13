"""A run at a glance: its numbers in one row, its curves in one picture, both as HTML for a notebook."""

from __future__ import annotations

import base64
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from feelstream.quantities import QUANTITIES, ROUND_AXIS
from feelstream.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = ("accuracy", "energy_mean_cum_j", "queue_mean_j", "transmitted")
BLUE, ORANGE = "#0072B2", "#D55E00"


def budget_j(scenario: Scenario) -> float:
    """Mean energy budget per device and round, J."""
    return float(np.mean(scenario.system.energy_budget_j))


def summary(scenario: Scenario, seed: int, rounds: pl.DataFrame) -> pl.DataFrame:
    """One row: what the run came to. Null where nothing was learned or the budget is 0."""
    last, budget = rounds.row(-1, named=True), budget_j(scenario)
    energy = last["energy_mean_cum_j"]
    row: dict[str, Any] = {
        "policy": scenario.policy.plugin_name(),
        "seed": seed,
        "rounds": len(rounds),
        "accuracy": last["accuracy"],
        "loss": last["loss"],
        "energy_j": energy,
        "energy_over_budget": energy / budget if budget else None,
        "queue_mean_j": last["queue_mean_j"],
        "scheduled": int(rounds["scheduled"].sum()),
        "transmitted": int(rounds["transmitted"].sum()),
    }
    schema = {name: type(value) if value is not None else pl.Float64 for name, value in row.items()}
    return pl.DataFrame([row], schema=schema)


def picture(scenario: Scenario, rounds: pl.DataFrame) -> Figure:
    """A panel for each quantity that the run has, by round."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.ticker import MaxNLocator

    from feelstream.run.picture import Picture

    panels = [QUANTITIES[column] for column in PANELS if rounds[column].null_count() < len(rounds)]
    figure = Picture(figsize=(2.6 * len(panels), 2.2), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, panel in zip(np.ravel(figure.subplots(1, len(panels))), panels, strict=True):
        shown = rounds.drop_nulls(panel.name)
        axes.plot(shown["round"], shown[panel.name] * panel.scale, color=BLUE, linewidth=1.4)
        if panel.name == "energy_mean_cum_j":
            axes.axhline(budget_j(scenario) * panel.scale, color=ORANGE, linewidth=1, linestyle="--", label="budget")
            axes.legend(frameon=False, fontsize=7)
        axes.set_title(panel.axis, fontsize=8, loc="left")
        axes.set_xlabel(ROUND_AXIS, fontsize=8)
        axes.tick_params(labelsize=7)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def html(title: str, table: pl.DataFrame, figure: Figure) -> str:
    """A small table and a picture, in one piece of HTML that fetches nothing."""
    heads = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_shown(value))}</td>" for value in row) + "</tr>" for row in table.rows()
    )
    file = BytesIO()
    figure.savefig(file, format="png", dpi=110, facecolor="white")
    image = base64.b64encode(file.getvalue()).decode()
    return (
        f"<div><b>{escape(title)}</b><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        f'<img alt="{escape(title)}" style="max-width:100%" src="data:image/png;base64,{image}"></div>'
    )


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
