"""What came of configurations × seeds: tables, pictures and a report of runs that are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any
from weakref import finalize

import polars as pl

from feelstream.api.arguments import directory_of, names_of
from feelstream.display.quantities import QUANTITIES, counted, of_table
from feelstream.errors import RunError
from feelstream.experiment import Failure, Results, comparison
from feelstream.experiment.measures import HEADLINE, pareto_points
from feelstream.run import Run
from feelstream.run.run import as_pandas
from feelstream.terminal.tables import cells_of, chosen, latex, plain, wide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from feelstream.display.picture import Style


@dataclass(frozen=True)
class Comparison:
    """The results of configurations × seeds. Tables are read from the files when they are asked for.

    Attributes:
        results: The runs as they are stored.
        directory: Where they are.
        swept: Fields that a sweep went over.
        is_kept: Whether the directory stays; without `out` it is removed together with this object.

    >>> from feelstream import compare
    >>> found = compare(["lyapunov", "random"], "tiny", seeds=2, rounds=3, engine="none", workers=1)
    >>> found.arms
    ['lyapunov', 'random']
    >>> found.table("energy_j").shape
    (2, 5)
    >>> found.run("random", 1)  # doctest: +ELLIPSIS
    Run(random, seed 1, 3 rounds, in ...)
    """

    results: Results = field(repr=False)
    directory: Path
    swept: tuple[str, ...] = ()
    is_kept: bool = True

    def __post_init__(self) -> None:
        if not self.is_kept:
            finalize(self, rmtree, self.directory, ignore_errors=True)

    def __repr__(self) -> str:
        arms, seeds = counted(len(self.arms), "configuration"), counted(len(self.results.plan.seeds), "seed")
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"Comparison({arms}, {seeds}{failed}, in {self.directory})"

    def __str__(self) -> str:
        """Accuracy, energy and its ratio to the budget, with verdicts: the table that `feelstream compare` prints."""
        return plain(self._summary, HEADLINE, len(self.results.plan.seeds))

    @property
    def arms(self) -> list[str]:
        """The names of the configurations; the first is what the others are compared with."""
        return [arm.label for arm in self.results.plan.arms]

    @property
    def failures(self) -> list[Failure]:
        """Runs that there is no result of, each with its reason; the same call tries them again."""
        return self.results.failures

    @cached_property
    def _summary(self) -> pl.DataFrame:
        return comparison.summarise(self.results)

    def summary(self, quantities: str | Sequence[str] = HEADLINE, *, long: bool = False) -> pl.DataFrame:
        """One row per configuration: over how many seeds, and the mean of each quantity.

        Args:
            quantities: Their names, as in `table`.
            long: A row per configuration and quantity instead, of all quantities and as in summary.csv: mean, interval,
                seeds, and the paired difference against the first.
        """
        if long:
            return self._summary
        shown = [quantity.name for quantity in chosen(self._summary, quantities)]
        seeds = self._summary.group_by("arm", maintain_order=True).agg(seeds=pl.col("n").max())
        return seeds.join(wide(self._summary, quantities).select("arm", *shown), on="arm", maintain_order="left")

    def rounds(self) -> pl.DataFrame:
        """The rounds of all runs, with columns arm and seed."""
        return self.results.rounds()

    def run(self, arm: str, seed: int | None = None) -> Run:
        """One run with all its tables.

        Args:
            arm: The name of a configuration, one of `arms`.
            seed: By default the first of which there is a run.
        """
        if seed is None:
            seed = next((own for label, own in self.results.finished if label == arm), self.results.plan.seeds[0])
        return self.results.run(arm, seed)

    def plot(
        self,
        *quantities: str,
        against: str | None = None,
        ax: Any = None,
        figsize: tuple[float, float] | None = None,
        style: Style = None,
    ) -> Figure:
        """Means over seeds with 95 % intervals, or every seed where there are fewer than five.

        Args:
            *quantities: Columns of `rounds`, as curves by round, or of `table`, side by side; by default accuracy and
                energy by round, and of a sweep, both at the end of the run against the field that was swept.
            against: A field that was varied (`V`, `policy.V`), or "energy_j": then accuracy against energy, with the
                Pareto front.
            ax: Axes of your own, one for each panel.
            figsize: Inches.
            style: A style of matplotlib's, or a dictionary; settings of matplotlib that you changed are kept in any
                case.
        """
        from feelstream.display.picture import Look, figure_of
        from feelstream.report.charts import AGAINST, pareto_chart, varied_charts
        from feelstream.report.figures import FRONT, PANEL, curve_figure, ends_figure
        from feelstream.report.groups import by_world, same_budget_j, varied

        quantities = names_of(quantities)
        plan, look = self.results.plan, Look(ax, figsize, style)
        if against == "energy_j":
            if quantities not in ((), ("late_accuracy",)):
                raise RunError("only late_accuracy can be drawn against energy_j")
            points = pareto_points(self._summary)
            if not points:
                raise RunError("no run has an accuracy to draw against energy")
            return figure_of([pareto_chart(points)], 1, FRONT, look)
        known = {quantity.name for quantity in of_table("runs", list(QUANTITIES))}
        if against is None and quantities and known.issuperset(quantities):
            return ends_figure(self.arms, self._summary, comparison.per_run(self.results), quantities, look)
        axes = {axis.field: axis for axis in varied(plan)}
        wanted = against if against is not None or quantities else next((f for f in self.swept if f in axes), None)
        if wanted is None:
            shown = quantities or ("accuracy", "energy_mean_cum_j")
            return curve_figure(by_world(plan), self.rounds(), shown, same_budget_j(plan), look)
        found = [name for name in axes if wanted in (name, name.rpartition(".")[2])]
        if len(found) != 1:
            raise RunError(f"no configurations differ in {wanted} alone; those that do: {', '.join(axes) or 'none'}")
        axis, runs = axes[found[0]], comparison.per_run(self.results)
        charts = varied_charts(axis, self._summary, runs, quantities or AGAINST, same_budget_j(plan))
        if not charts:
            raise RunError(f"no run along {axis.field} has finished")
        return figure_of(charts, len(charts), PANEL, look)

    def report(self, directory: str | Path | None = None) -> Path:
        """Write figures and report.html, and return the path of the page.

        Args:
            directory: Where to; by default the directory of the results, or `results/compare` (of a sweep:
                `results/sweep`) in the working directory if the results are not kept.
        """
        from feelstream.report import write

        own = self.directory if self.is_kept else Path("results") / self.results.plan.name
        place = own if directory is None else directory_of("report: directory", directory)
        return write(self.results, place, summary=self._summary).report

    def table(self, quantities: str | Sequence[str] = HEADLINE) -> pl.DataFrame:
        """One row per configuration: of each quantity its mean, its 95 % interval and the verdict against the first.

        The columns of `energy_j` are energy_j, energy_j_low, energy_j_high and energy_j_verdict. Quantities that no run
        has are left out.

        Args:
            quantities: Their names; `feelstream explain NAME` says what each is.
        """
        return wide(self._summary, quantities)

    def to_csv(self, file: str | Path | None = None, quantities: str | Sequence[str] = HEADLINE) -> str:
        """`table` as CSV.

        Args:
            file: Where to write it, if anywhere.
            quantities: Which columns, as in `table`.
        """
        return written(self.table(quantities).write_csv(), file)

    def to_latex(self, file: str | Path | None = None, quantities: str | Sequence[str] = HEADLINE) -> str:
        """The table as LaTeX (package booktabs), with marks where better or worse than the first.

        Args:
            file: Where to write it, if anywhere.
            quantities: Which columns, as in `table`.
        """
        return written(latex(self._summary, quantities, len(self.results.plan.seeds)), file)

    def to_pandas(self) -> Any:
        """`summary` as a pandas DataFrame."""
        return as_pandas(self._summary)

    def _repr_html_(self) -> str:
        from feelstream.display.picture import html

        titles, lines, _ = cells_of(self._summary, HEADLINE, len(self.results.plan.seeds))
        return html(repr(self), pl.DataFrame(lines, schema=titles, orient="row"), self.plot())


def written(text: str, file: str | Path | None) -> str:
    """The text, which is also in the file if one is given."""
    if file is not None:
        if not isinstance(file, str | Path):
            raise RunError(f"the first argument is the file to write, if any; quantities=… names columns: {file!r:.60}")
        try:
            Path(file).write_text(text, encoding="utf-8")
        except OSError as problem:
            raise RunError(f"cannot write {file}: {problem.strerror}") from problem
    return text
