"""Which V, or price, a budget allows: from Python, over the same plan as `feelstream tune`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from feelstream.api.arguments import check_places, scenario_of, seeds_of
from feelstream.api.comparing import played
from feelstream.api.comparison import Comparison, written
from feelstream.display.quantities import QUANTITIES, counted
from feelstream.errors import ScenarioError
from feelstream.experiment import tuning
from feelstream.experiment.measures import plus_minus
from feelstream.experiment.statistics import LEVEL
from feelstream.run.run import as_pandas
from feelstream.scenario import Scenario
from feelstream.terminal.tables import WIDTH, text_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from feelstream.display.picture import Style

WEIGHTS = tuple(tuning.evenly(1e-7, 1.0, 15))
SEEDS = range(1000, 1005)  # none of those that policies are compared with by default


@dataclass(frozen=True)
class Tuning:
    """What each weight brought, and which one to take.

    Attributes:
        field: What was varied: V, or price.
        budget_j: The energy per device and round that was to be kept.
        trades: Energy, importance, queue and accuracy of every weight, as intervals over seeds.
        weight: The one that favours importance most and keeps the budget; None where none does.
        base: The scenario whose weight was varied.
        comparison: The runs themselves.

    >>> from feelstream import tune
    >>> found = tune("tiny", [0.001, 0.01], seeds=2, workers=1)
    >>> found.table().columns[:2]
    ['V', 'kept']
    """

    field: str
    budget_j: float
    trades: list[tuning.Trade] = dataclasses.field(repr=False)
    base: Scenario = dataclasses.field(repr=False)
    comparison: Comparison = dataclasses.field(repr=False)

    @property
    def weight(self) -> float | None:
        best = tuning.recommended(self.trades, self.budget_j, more_is_cheaper=self.field == "price")
        return None if best is None else best.weight

    @property
    def scenario(self) -> Scenario:
        """The scenario with that weight, ready to be run."""
        if self.weight is None:
            raise ScenarioError(self.conclusion)
        return tuning.with_weight(self.base, self.weight)

    def table(self) -> pl.DataFrame:
        """A row per weight: whether it keeps the budget; mean and 95 % interval of energy, importance and queue."""
        return tuning.table_of(self.field, self.trades, self.budget_j)

    def plot(self, *, ax: Any = None, figsize: tuple[float, float] | None = None, style: Style = None) -> Figure:
        """Importance, and accuracy where it was learned, against energy; options as those of `Comparison.plot`."""
        from feelstream.display.picture import COLUMN_WIDTH_IN, Look, figure_of
        from feelstream.report.charts import trade_off_charts

        charts = trade_off_charts(self.field, self.trades, self.budget_j)
        return figure_of(charts, 2, (COLUMN_WIDTH_IN, 0.9 * COLUMN_WIDTH_IN), Look(ax, figsize, style))

    def to_csv(self, file: str | Path | None = None) -> str:
        """`table` as CSV, and written to a file if one is given."""
        return written(self.table().write_csv(), file)

    def to_pandas(self) -> Any:
        """`table` as a pandas DataFrame."""
        return as_pandas(self.table())

    def __repr__(self) -> str:
        found = "none keeps" if self.weight is None else f"{self.field} = {self.weight:g} keeps"
        return f"Tuning({counted(len(self.trades), 'value')} of {self.field}, {found} {self.budget_j * 1e3:g} mJ)"

    @property
    def conclusion(self) -> str:
        """What was found, in a sentence or two; nothing where no run finished."""
        best = next((trade for trade in self.trades if trade.weight == self.weight), None)
        return tuning.conclusion(self.field, self.trades, best, self.budget_j, self.base)

    def __str__(self) -> str:
        """A row for each weight, and what was found: what `feelstream tune` prints."""
        learned = any(trade.accuracy for trade in self.trades)
        shown = {name: QUANTITIES[of] for name, of in tuning.MEASURED.items() if learned or name != "accuracy"}
        weights = [f"{trade.weight:g}" for trade in self.trades]
        if any("e" in text for text in weights):  # all with an exponent, or none
            weights = [f"{trade.weight:.2e}" for trade in self.trades]
        rows = [
            [weight, "yes" if tuning.keeps(trade, self.budget_j) else "no"]
            + [
                "–" if (value := getattr(trade, name)) is None else plus_minus(quantity, value)
                for name, quantity in shown.items()
            ]
            for weight, trade in zip(weights, self.trades, strict=True)
        ]
        table = text_table([self.field, "kept", *(quantity.column_title for quantity in shown.values())], rows, WIDTH)
        budget = QUANTITIES["energy_j"].text(self.budget_j)
        kept = f"kept: the whole {100 * LEVEL:.0f} % interval of the energy is within the budget of {budget}"
        return "\n".join([table, kept, self.conclusion])

    def _repr_html_(self) -> str:
        from feelstream.display.picture import html

        return html(self.conclusion, self.table(), self.plot())


def tune(
    scenario: str | Path | Scenario,
    weights: Iterable[float] = WEIGHTS,
    *,
    budget_j: float | None = None,
    seeds: int | Iterable[int] = SEEDS,
    learn: bool = False,
    out: str | Path | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
    **fields: Any,
) -> Tuning:
    """Find the weight (V or price) that favours importance most and keeps an energy budget over the run.

    Args:
        scenario: A preset's name, a TOML file or a Scenario.
        weights: The values to try, on the same worlds.
        budget_j: Energy per device and round to keep; by default the scenario's.
        seeds: How many, or which; by default five that `compare` does not use unless asked to.
        learn: Whether to train as well, and show the accuracy of every weight.
        out: As in `compare`.
        workers: As in `compare`.
        executor: As in `compare`.
        progress: Whether to show it.
        **fields: Fields of the scenario, as in `Scenario.with_`.

    >>> tuned = tune("tiny", [0.001, 0.1], cardinality="cap", budget_j=0.2, seeds=2, rounds=5, workers=1)
    >>> tuned
    Tuning(2 values of V, V = 0.1 keeps 200 mJ)
    >>> tuned.scenario.policy.V
    0.1
    """
    check_places("tune", fields)
    chosen = scenario_of(tune, scenario, fields)
    allowed = float(np.mean(chosen.system.energy_budget_j)) if budget_j is None else budget_j
    if not isinstance(allowed, Real) or not 0 < allowed < float("inf"):
        raise ScenarioError(f"tune: budget_j must be a number of joules above 0, not {allowed!r:.60}")
    listed = list(weights) if isinstance(weights, Iterable) and not isinstance(weights, str) else []
    if not listed or not all(isinstance(each, Real) and each > 0 and isfinite(each) for each in listed):
        raise ScenarioError(f"tune: weights must be a list of numbers above 0, as in [0.01, 0.1], not {weights!r:.60}")
    plan = tuning.tuning_plan(chosen, [float(each) for each in listed], seeds_of("tune", seeds), learn)
    found = played(plan, out, workers, executor, progress)
    return Tuning(tuning.weight_of(chosen), float(allowed), tuning.trades(found.results), chosen, found)
