"""Curves of any results by round, and quantities against a field that was varied, as matplotlib figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from feelstream.display.picture import Look, drawable, label_beside
from feelstream.display.quantities import QUANTITIES
from feelstream.errors import RunError
from feelstream.experiment import Arm, Plan
from feelstream.experiment.statistics import LEAST_SEEDS, band_by_round, per_run
from feelstream.report.drawing.figures import draw_curves, save, styled
from feelstream.report.drawing.legend import legend_below
from feelstream.report.drawing.limits import spans_decades
from feelstream.report.drawing.style import (
    BUDGET_LINE,
    COLUMN_WIDTH_IN,
    PANEL_HEIGHT_IN,
    RC,
    legible,
    line_colour,
    line_style,
)
from feelstream.report.html.charts import Group
from feelstream.run.files import usable_directory
from feelstream.scenario.fields import flat

BY_ROUND = {"accuracy": "accuracy", "energy": "energy_mean_cum_j"}  # name of the file → column
AGAINST = ("late_accuracy", "energy_j")
ASIDE_PT = 3.0  # between the intervals of neighbouring lines
NEAR = 2.0  # a budget within this factor of the energies is drawn beside them
MOST_VALUES = 8  # of a field that was varied, each of which gets a tick


def curve_figure(
    groups: Sequence[Group],
    rounds: pl.DataFrame,
    columns: Sequence[str],
    budget_j: float | None,
    look: Look | None = None,
) -> Figure:
    """A row of panels for each group of arms, a column for each quantity. look: the user's, or a paper's."""
    measured = drawable(rounds, columns, "no run has")
    names = list(dict.fromkeys(name for group in groups for _, name in group.arms))
    with look.settings(RC) if look else styled():
        panels = list(product(groups, measured))
        figure, grid = (look or Look()).panels(len(panels), len(measured), (COLUMN_WIDTH_IN, PANEL_HEIGHT_IN))
        for axes, (group, column) in zip(grid, panels, strict=True):
            chosen = rounds.filter(pl.col("arm").is_in([arm for arm, _ in group.arms]))
            limit = budget_j if column == "energy_mean_cum_j" else None
            bands = band_by_round(chosen, column)
            draw_curves(axes, QUANTITIES[column], group.arms, bands, limit, chosen, names)
            if len(groups) > 1:
                axes.set_title(group.title, loc="left", pad=4)
        _legend(figure, grid, look)
    return figure


@dataclass(frozen=True)
class Axis:
    """A numeric field that arms differ in, and the arms along it: name of the line → (value, arm) in order."""

    field: str
    lines: dict[str, list[tuple[float, str]]]


def varied(plan: Plan) -> list[Axis]:
    """Every numeric field with several values among arms that are otherwise the same, policy apart."""
    settings = {arm.label: flat(arm.scenario.as_dict()) for arm in plan.arms}
    axes = []
    for field in dict.fromkeys(field for table in settings.values() for field in table):
        lines: dict[str, list[tuple[float, str]]] = {}
        for arm in plan.arms:
            own = settings[arm.label]
            value = own.get(field)
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            rest = repr(sorted((name, str(entry)) for name, entry in own.items() if name != field))
            lines.setdefault(rest, []).append((float(value), arm.label))
        several = {_name(plan, points, field): sorted(points) for points in lines.values() if len(points) > 1}
        if several:
            axes.append(Axis(field, several))
    return axes


def _name(plan: Plan, points: Sequence[tuple[float, str]], field: str) -> str:
    """What the arms of a line have in common: their label without the field that differs."""
    arm: Arm = plan.arm(points[0][1])
    short = field.removeprefix("policy.")
    words = [word for word in arm.label.split() if not word.startswith((f"{field}=", f"{short}="))]
    return " ".join(words) or arm.scenario.policy.plugin_name()


def varied_figure(
    axis: Axis,
    summary: pl.DataFrame,
    runs: pl.DataFrame,
    quantities: Sequence[str] = AGAINST,
    look: Look | None = None,
    budget_j: float | None = None,
) -> Figure:
    """Each quantity against the field: a mean and its 95 % interval at each value; below five seeds, every seed.

    runs: `comparison.per_run`. look: the user's; default, that of a paper. budget_j: of all, drawn if it is near.
    """
    shown = [name for name in quantities if summary.filter(pl.col("quantity") == name)["mean"].is_finite().any()]
    if not shown:
        raise RunError(f"no run has {' or '.join(quantities)} to draw")
    values = [value for points in axis.lines.values() for value, _ in points]
    with look.settings(RC) if look else styled():
        figure, grid = (look or Look()).panels(len(shown), len(shown), (COLUMN_WIDTH_IN, PANEL_HEIGHT_IN))
        for axes, name in zip(grid, shown, strict=True):
            quantity = QUANTITIES[name]
            rows = {row["arm"]: row for row in summary.filter(pl.col("quantity") == name).rows(named=True)}
            drawn: list[float] = []
            for index, (line, points) in enumerate(axis.lines.items()):
                found = [(value, rows[arm]) for value, arm in points if arm in rows and rows[arm]["n"]]
                mean = [row["mean"] * quantity.scale for _, row in found]
                half = [((row["high"] or 0) - (row["low"] or 0)) / 2 * quantity.scale for _, row in found]
                style, colour = line_style(index), line_colour(index)
                few = max((row["n"] for _, row in found), default=0) < LEAST_SEEDS
                for value, row in found if few else ():
                    own = (runs.filter(arm=row["arm"])[name].drop_nulls() * quantity.scale).to_list()
                    axes.plot([value] * len(own), own, ".", color=colour, alpha=0.5, markersize=3, zorder=1.5)
                # Side by side, or the intervals of several lines would hide each other.
                aside = ScaledTranslation(
                    (index - (len(axis.lines) - 1) / 2) * ASIDE_PT / 72, 0, figure.dpi_scale_trans
                )
                bars = axes.errorbar(
                    [value for value, _ in found], mean, yerr=None if few else half, color=colour,
                    linestyle=style.mpl_dash, marker=style.marker, markerfacecolor="white", markeredgewidth=0.9,
                    elinewidth=0.7, capsize=2, label=legible(line),
                )  # fmt: skip
                for artist in () if few else bars.get_children():
                    artist.set_transform(artist.get_transform() + aside)
                drawn += mean
            if spans_decades(values) and min(values) > 0:
                axes.set_xscale("log")
            elif len(set(values)) <= MOST_VALUES:
                axes.set_xticks(sorted(set(values)), [f"{value:g}" for value in sorted(set(values))])
            elif all(value.is_integer() for value in values):
                axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
            if quantity.logarithmic and spans_decades(drawn) and min(drawn) > 0:
                axes.set_yscale("log")
            if name == "energy_j" and budget_j is not None and drawn:
                limit = budget_j * quantity.scale
                if min(drawn) / NEAR <= limit <= max(drawn) * NEAR:  # a far one would crush the curves
                    axes.axhline(limit, label="budget", **BUDGET_LINE)
            axes.set_xlabel(axis.field.rpartition(".")[2])
            label_beside(axes, quantity)
        _legend(figure, grid, look)
    return figure


def _legend(figure: Figure, panels: Sequence[Axes], look: Look | None) -> None:
    """Below the figure; within the last panel where the axes are the user's own, beside which we know of no room."""
    if look and look.ax is not None:
        panels[-1].legend()
    else:
        legend_below(figure, panels, grow=look is None or look.figsize is None)


def save_curves(
    plan: Plan, groups: Sequence[Group], rounds: pl.DataFrame, summary: pl.DataFrame, out: Path
) -> list[Path]:
    """accuracy and energy by round, and both against each field that was varied, as PDF, PNG and SVG."""
    usable_directory(out)
    written: list[Path] = []
    for name, column in BY_ROUND.items():
        if rounds[column].null_count() < len(rounds):
            written += save(curve_figure(groups, rounds, [column], same_budget_j(plan)), out, name)
    axes = varied(plan)
    runs = per_run(rounds) if axes else rounds.clear()
    for axis in axes:
        written += save(varied_figure(axis, summary, runs, budget_j=same_budget_j(plan)), out, f"against-{axis.field}")
    return written


def same_budget_j(plan: Plan) -> float | None:
    """The budget of every device of every arm, if it is one number."""
    budgets = {arm.scenario.system.energy_budget_j for arm in plan.arms}
    first = budgets.pop()
    return None if budgets or isinstance(first, tuple) else float(first)
