"""A run at a glance: its numbers in one row, its curves in one picture, both as HTML for a notebook."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from feelstream.errors import FeelstreamError
from feelstream.quantities import QUANTITIES, by_round, measures
from feelstream.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from feelstream.run.picture import Look

PANELS = ("accuracy", "energy_mean_cum_j", "queue_mean_j", "transmitted")


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


def in_words(scenario: Scenario, rounds: pl.DataFrame) -> dict[str, str]:
    """What the run came to, as people say it: accuracy, energy against the budget, queues, devices."""
    last = rounds.row(-1, named=True)
    said = {q.name: q.text(last[q.name]) for q in by_round(last) if last[q.name] is not None}
    rows = {} if last["accuracy"] is None else {"accuracy": f"{said['accuracy']}  (loss {said['loss']})"}
    rows |= {quantity.heading: said[quantity.name] for quantity in measures(said)}
    allowed = QUANTITIES["energy_mean_cum_j"].text(budget_j(scenario))
    scheduled, sent = int(rounds["scheduled"].sum()), int(rounds["transmitted"].sum())
    return rows | {
        "energy": f"{said['energy_mean_cum_j']} per device and round, budget {allowed}",
        "queue": f"mean {said['queue_mean_j']}, largest {said['queue_max_j']}",
        "devices": f"{scheduled} trained, {sent} transmitted, {scheduled - sent} dropped at admission",
    }


def picture(
    scenario: Scenario, rounds: pl.DataFrame, columns: Sequence[str] = PANELS, look: Look | None = None
) -> Figure:
    """A panel for each of the quantities that the run has, by round."""
    from matplotlib.ticker import MaxNLocator

    from feelstream.run import picture as draw

    panels = [QUANTITIES[column] for column in draw.drawable(rounds, columns, "the run has no")]
    look = look or draw.Look()
    with look.settings(draw.RC):
        figure, grid = look.panels(len(panels), 2, (draw.COLUMN_WIDTH_IN, draw.RUN_PANEL_HEIGHT_IN))
        for axes, panel in zip(grid, panels, strict=True):
            shown = rounds.drop_nulls(panel.name)
            values = shown[panel.name] * panel.scale
            draw.draw_line(axes, shown["round"], values, 0, 1)
            if panel.name == "energy_mean_cum_j":
                draw.draw_limit(axes, budget_j(scenario) * panel.scale, panel.unit, [float(values[-1])])
                axes.legend()
            draw.round_axis(axes)
            draw.label_beside(axes, panel)
            if panel.digits == 0:  # a count
                axes.set_ylim(0, 1.1 * float(values.to_numpy().max()) or 1.0)
                axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return figure


def with_units(table: pl.DataFrame) -> pl.DataFrame:
    """The summary as people read it: mJ and %, with the unit in the title."""
    shown = [QUANTITIES[name] for name in table.columns if name in QUANTITIES and table[name].dtype.is_float()]
    scaled = table.with_columns(pl.col(quantity.name) * quantity.scale for quantity in shown)
    return scaled.rename({quantity.name: quantity.column_title for quantity in shown})


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


def as_pandas(table: pl.DataFrame) -> Any:
    """The table as a pandas DataFrame, column by column, so that pyarrow is not needed."""
    try:
        pandas = import_module("pandas")
    except ImportError as problem:
        raise FeelstreamError("pandas is not installed; get it with pip install 'feelstream[pandas]'") from problem
    return pandas.DataFrame({column.name: column.to_list() for column in table})
