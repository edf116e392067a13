"""The result at a glance: what training within the budget reaches and spends, against training everyone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from feelstream.studies.pages import (
    BUDGET_LINE,
    COLUMN_WIDTH_IN,
    LineStyle,
    legend_below,
    line_style,
    log_ticks,
    styled,
)
from feelstream.studies.results import MINUS, QUANTITIES
from feelstream_studies.within_budget.configurations import OURS, REFERENCE, WITH
from feelstream_studies.within_budget.findings import MARGINS

EVERYONE, OWN, SAME = "training everyone", "balanced_joint", "training everyone, same server"
ROW_IN = 0.24  # height of a scenario in the picture
NONE = "–"
WORST = QUANTITIES["worst_device"].column_title


def overview_table(table: pl.DataFrame, policy: str = OURS) -> str:
    """A row for each scenario: both accuracies, what is lost, and the energy of both."""
    lines = [
        "| scenario | training everyone, % | `balanced_joint`, % | lost at the end | lost over the run "
        f"| energy against everyone | {WORST} |",
        "|---|---|---|---|---|---|---|",
    ]
    for scenario, everyone, own in _pairs(table, policy):
        lost = " | ".join(_lost(own, name) for name in MARGINS)
        worst = NONE if own["worst_device"] is None else f"{own['worst_device']:.2f}"
        lines.append(
            f"| `{scenario}` | {_percent(everyone)} | {_percent(own)} | {lost} | {_part(own, everyone)} | {worst} |"
        )
    end, run = (f"{100 * margin:.0f}" for margin in MARGINS.values())
    return (
        "\n".join(lines) + "\n\nAccuracies are those of the last fifth of the rounds; losses are to everyone with "
        f"FedAvg, in percentage points. Bold: tests show that no more than {end} is lost at the end, or {run} over the "
        "run.\n"
    )


def overview_figure(table: pl.DataFrame, policy: str = OURS) -> Figure:
    """Accuracy on the left, energy on the right, with 95 % intervals; a line for each scenario.

    Everyone with the same server is shown where it was played with as many seeds.
    """
    pairs = _pairs(table, policy)
    everyone, own = [row for _, row, _ in pairs], [row for _, _, row in pairs]
    dot: dict[str, Any] = {"markersize": 5}
    shown: list[tuple[str, LineStyle, dict[str, Any], Sequence[dict[str, Any] | None]]] = [
        (EVERYONE, line_style(0), dot, everyone),
        (OWN, line_style(1), dot, own),
    ]
    if any(same := same_server(table, policy)):  # rings, around the dots whose energy they share
        shown.append((SAME, line_style(0), {"markersize": 7.5, "markerfacecolor": "none"}, same))
    with styled():
        figure = Figure(figsize=(2 * COLUMN_WIDTH_IN, ROW_IN * len(pairs) + 1.1), layout="constrained")
        FigureCanvasAgg(figure)
        accuracy, energy = figure.subplots(1, 2, sharey=True)
        for label, style, look, rows in shown:
            for height, row in enumerate(rows):
                for axes, name, scale in ((accuracy, "late_accuracy", 100.0), (energy, "energy_over_budget", 1.0)):
                    if row is not None and row[name] is not None:
                        axes.errorbar(
                            scale * row[name], height, xerr=_half(row, name, scale), color=style.light, **look,
                            marker=style.marker, linestyle="none", elinewidth=0.8, label=label,
                        )  # fmt: skip
        energy.axvline(1.0, label="budget", **BUDGET_LINE)
        spent = [1.0, *(row["energy_over_budget"] or 1.0 for row in [*everyone, *own])]
        low, high = min(spent) / 2, 3 * max(spent)
        ticks = log_ticks(low, high)
        energy.set_xscale("log")
        energy.set_xlim(low, high)
        energy.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        accuracy.set_yticks(range(len(pairs)), [scenario for scenario, *_ in pairs])
        accuracy.set_ylim(len(pairs) - 0.5, -0.5)  # the first at the top, as in the table
        accuracy.set_xlabel("Accuracy, last fifth (%)")
        energy.set_xlabel("Energy / budget")
        legend_below(figure, [accuracy, energy])
    return figure


def _pairs(table: pl.DataFrame, policy: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The scenarios that have both, each with its rows."""
    rows = {(row["scenario"], row["policy"]): row for row in table.iter_rows(named=True)}
    names = table["scenario"].unique(maintain_order=True)
    both = [(name, rows.get((name, REFERENCE)), rows.get((name, policy))) for name in names]
    return [(name, everyone, own) for name, everyone, own in both if everyone and own]


def same_server(table: pl.DataFrame, policy: str) -> list[dict[str, Any] | None]:
    """For each scenario, everyone with the policy's own server, where it was played with as many seeds."""
    _, _, server = policy.partition(WITH)
    rows = {row["scenario"]: row for row in table.filter(policy=f"{REFERENCE}{WITH}{server}").iter_rows(named=True)}
    both = [(rows.get(name), own) for name, _, own in _pairs(table, policy)]
    return [row if row and row["seeds"] == own["seeds"] else None for row, own in both]


def _percent(row: dict[str, Any]) -> str:
    return NONE if row["late_accuracy"] is None else f"{100 * row['late_accuracy']:.1f}"


def _lost(row: dict[str, Any], name: str) -> str:
    """Points, bold where the test shows that they are within the margin; below 0 something is gained."""
    if row[f"{name}_gap"] is None:
        return NONE
    text = f"{0.0 - 100 * row[f'{name}_gap']:.1f}".replace("-", MINUS)
    return f"**{text}**" if row[f"{name}_holds"] else text


def _part(own: dict[str, Any], everyone: dict[str, Any]) -> str:
    """The energy of training everyone over that of ours, as in 1/1000."""
    spent, most = own["energy_over_budget"], everyone["energy_over_budget"]
    return f"1/{most / spent:.0f}" if spent and most else NONE


def _half(row: dict[str, Any], name: str, scale: float) -> float:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return 0.0 if low is None or high is None else scale * (high - low) / 2
