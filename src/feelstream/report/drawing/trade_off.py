"""Importance, and accuracy where there is one, against energy, over the weight between them."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from feelstream.experiment.tuning import MEASURED, Trade, keeps
from feelstream.quantities import QUANTITIES
from feelstream.report.drawing.figures import styled
from feelstream.report.drawing.style import COLUMN_WIDTH_IN, line_style


def trade_off_figure(field: str, trades: Sequence[Trade], budget_j: float) -> Figure:
    """One point a weight, with its 95 % interval; the budget as a line, weights that keep it filled."""
    with styled():
        energy = QUANTITIES[MEASURED["energy_j"]]
        learned = any(trade.accuracy for trade in trades)
        panels = 2 if learned else 1
        figure = Figure(figsize=(panels * COLUMN_WIDTH_IN, 0.85 * COLUMN_WIDTH_IN), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, panels, squeeze=False)[0]
        for axis, what in zip(axes, ("importance", "accuracy"), strict=False):
            quantity = QUANTITIES[MEASURED[what]]
            scale = quantity.scale
            points = [(trade, value) for trade in trades if (value := getattr(trade, what)) is not None]
            energies = [trade.energy_j.mean * energy.scale for trade, _ in points]
            axis.plot(energies, [value.mean * scale for _, value in points], color="#5C6670", linewidth=0.8, zorder=1)
            for trade, value in points:
                axis.errorbar(
                    trade.energy_j.mean * energy.scale, value.mean * scale,
                    xerr=(trade.energy_j.half_width or 0.0) * energy.scale, yerr=(value.half_width or 0.0) * scale,
                    color=line_style(0).light, marker="o", markersize=3.5, elinewidth=0.7,
                    markerfacecolor=line_style(0).light if keeps(trade, budget_j) else "white", zorder=2,
                )  # fmt: skip
            for place in {0, len(points) // 2, len(points) - 1} if points else set():
                trade, value = points[place]
                axis.annotate(
                    f"{field} = {trade.weight:g}", (energies[place], value.mean * scale),
                    xytext=(4, -8), textcoords="offset points", fontsize=6,
                )  # fmt: skip
            axis.axvline(budget_j * energy.scale, color="#B0413E", linewidth=0.8, linestyle="--", label="budget")
            axis.set_xlabel(energy.axis)
            axis.set_ylabel(quantity.axis)
            if energies and min(energies) > 0 and max(energies) > 8 * min(energies):
                axis.set_xscale("log")
            axis.legend(loc="lower right")
    return figure
