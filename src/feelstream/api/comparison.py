"""What a comparison or a sweep comes to, with tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from feelstream.errors import RunError
from feelstream.experiment import Failure, Results, comparison
from feelstream.quantities import of_table
from feelstream.run import Run, views
from feelstream.run.pandas_tables import as_pandas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Comparison:
    """The results of arms × seeds. Tables are read from the files when they are asked for."""

    results: Results = field(repr=False)
    directory: Path

    def __repr__(self) -> str:
        arms, seeds = len(self.results.plan.arms), len(self.results.plan.seeds)
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"Comparison({arms} configurations, {seeds} seeds{failed}, in {self.directory})"

    @property
    def arms(self) -> list[str]:
        return [arm.label for arm in self.results.plan.arms]

    @property
    def failures(self) -> list[Failure]:
        """Runs that there is no result of, each with its reason; the same call tries them again."""
        return self.results.failures

    @cached_property
    def _summary(self) -> pl.DataFrame:
        return comparison.summarise(self.results)

    def summary(self) -> pl.DataFrame:
        """One row per arm and quantity: mean, interval, seeds, and the paired difference against the first arm."""
        return self._summary

    def rounds(self) -> pl.DataFrame:
        """The rounds of all runs, with columns arm and seed."""
        return self.results.rounds()

    def run(self, arm: str, seed: int) -> Run:
        """One run with all its tables."""
        return self.results.run(arm, seed)

    def plot(self, *quantities: str, against: str | None = None) -> Figure:
        """Curves by round: means over seeds with 95 % intervals; by default accuracy and energy.

        against: a field that was varied (`policy.V`): final accuracy and energy against its values instead.
        """
        from feelstream.report.drawing.curves import curve_figure, same_budget_j, varied, varied_figure
        from feelstream.report.html.groups import by_world

        plan = self.results.plan
        if against is None:
            shown = quantities or ("accuracy", "energy_mean_cum_j")
            return curve_figure(by_world(plan), self.rounds(), shown, same_budget_j(plan))
        axes = {axis.field: axis for axis in varied(plan)}
        if against not in axes:
            raise RunError(f"no configurations differ in {against} alone; those that do: {', '.join(axes) or 'none'}")
        return varied_figure(axes[against], self.summary(), *([quantities] if quantities else []))

    def report(self, directory: str | Path | None = None) -> Path:
        """Write figures and report.html to the directory of the results, or another one; the path of the page."""
        from feelstream.report import write

        return write(self.results, directory or self.directory, summary=self.summary()).report

    def table(self, quantities: Sequence[str] = ("late_accuracy", "accuracy_area", "energy_j")) -> pl.DataFrame:
        """One row per arm, a column for the mean of each quantity; those that no run has are left out."""
        chosen = self.summary().filter(pl.col("quantity").is_in(list(quantities)))
        return chosen.pivot("quantity", index="arm", values="mean")

    def to_pandas(self) -> Any:
        """`summary` as a pandas DataFrame."""
        return as_pandas(self.summary())

    def _repr_html_(self) -> str:
        table = self.table()
        shown = table.select(
            "arm", *((pl.col(q.name) * q.scale).alias(q.column_title) for q in of_table("runs", table.columns))
        )
        return views.html(repr(self), shown, self.plot())
