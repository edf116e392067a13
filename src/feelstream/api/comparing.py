"""Comparisons and sweeps from Python, over the same plans as the command line: stored, resumable, with tables and
pictures.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any
from weakref import finalize

import polars as pl
from numpy import ndarray

from feelstream.api.arguments import Entry, check_places, names_of, policies_of, scenario_of, seeds_of, whole_number
from feelstream.code import MAIN, texts
from feelstream.display.quantities import QUANTITIES, counted, of_table
from feelstream.errors import RunError, ScenarioError
from feelstream.experiment import Arm, Failure, Plan, Results, comparison, execute, gathered, load
from feelstream.experiment.measures import HEADLINE, pareto_points
from feelstream.learning import cores
from feelstream.policies import Policy
from feelstream.run import Run
from feelstream.run import read as read_run
from feelstream.run.run import as_pandas
from feelstream.scenario import Scenario
from feelstream.scenario.fields import flat
from feelstream.terminal.progress import plan_bar
from feelstream.terminal.tables import cells_of, chosen, failed, latex, plain, wide

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from feelstream.display.picture import Style

log = logging.getLogger("feelstream")


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
            seed: By default the first.
        """
        return self.results.run(arm, self.results.plan.seeds[0] if seed is None else seed)

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
        from feelstream.display.picture import Look
        from feelstream.report.figures import curve_figure, ends_figure, pareto_figure, varied_figure
        from feelstream.report.groups import by_world, same_budget_j, varied

        quantities = names_of(quantities)
        plan, look = self.results.plan, Look(ax, figsize, style)
        if against == "energy_j":
            if quantities not in ((), ("late_accuracy",)):
                raise RunError("only late_accuracy can be drawn against energy_j")
            points = pareto_points(self._summary)
            if not points:
                raise RunError("no run has an accuracy to draw against energy")
            return pareto_figure(points, look)
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
        runs = comparison.per_run(self.results)
        chosen_ones = [quantities] if quantities else []
        budget_j = same_budget_j(plan)
        return varied_figure(axes[found[0]], self._summary, runs, *chosen_ones, look=look, budget_j=budget_j)

    def report(self, directory: str | Path | None = None) -> Path:
        """Write figures and report.html, and return the path of the page.

        Args:
            directory: Where to; by default the directory of the results, or `results/compare` (of a sweep:
                `results/sweep`) in the working directory if the results are not kept.
        """
        from feelstream.report import write

        own = self.directory if self.is_kept else Path("results") / self.results.plan.name
        return write(self.results, directory or own, summary=self._summary).report

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


def compare(
    policies: Iterable[Entry] | Mapping[str, Entry] = (),
    scenario: str | Path | Scenario | None = None,
    *,
    runs: Iterable[Run | str | Path] = (),
    seeds: int | Iterable[int] = 10,
    out: str | Path | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
    **fields: Any,
) -> Comparison:
    """Compare policies over seeds; with the same seed all receive the same world, so they compare in pairs.

    Args:
        policies: Names (`lyapunov(V=0.1)` sets fields), Policy classes or objects, whole Scenarios, or a mapping that
            gives each its label. The first is what the others are compared with.
        scenario: What they are run on, by default the paper's.
        runs: In place of policies: runs that there are, or their directories. Runs of one scenario are seeds of one
            configuration.
        seeds: How many, or which.
        out: A directory that keeps the runs, so that the same call runs only what is missing; without it they are
            removed with the Comparison.
        workers: Processes; by default one per core.
        executor: Any other executor of `concurrent.futures`.
        progress: Whether to show it.
        **fields: Fields of the scenario, as in `Scenario.with_`.

    >>> found = compare(["lyapunov", "random"], "tiny", seeds=2, rounds=3, engine="none", workers=1)
    >>> found.table(["energy_j"]).columns
    ['arm', 'energy_j', 'energy_j_low', 'energy_j_high', 'energy_j_verdict']
    """
    if given := list(runs):
        if policies or scenario is not None or fields:
            raise ScenarioError("compare: give runs alone, as in compare(runs=['runs/a', 'runs/b'])")
        return _of_runs([each if isinstance(each, Run) else read_run(each) for each in given])
    labelled = policies_of(policies)
    check_places("compare", fields)
    base = scenario_of(compare, Scenario() if scenario is None else scenario, fields)
    arms: list[Arm] = []
    for label, entry in labelled:
        if isinstance(entry, Scenario):
            changed = entry.with_(**fields) if fields else entry
            arms.append(Arm(label or changed.policy.plugin_name(), changed))
            continue
        found = comparison.arms(base, [entry])
        if label and len(found) > 1:
            raise ScenarioError(f"compare: '{label}' is the label of {len(found)} policies; give each its own")
        arms += [Arm(label or arm.label, arm.scenario) for arm in found]
    plan = Plan("compare", tuple(arms), seeds_of("compare", seeds))
    return played(plan, out, workers, executor, progress)


def sweep(
    scenario: str | Path | Scenario,
    over: Mapping[str, Iterable[Any]] | None = None,
    *,
    policies: Iterable[str | Policy | type[Policy]] = (),
    seeds: int | Iterable[int] = 10,
    out: str | Path | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool = False,
    **fields: Any,
) -> Comparison:
    """Run a scenario at every combination of values.

    Args:
        scenario: A preset's name, a TOML file or a Scenario.
        over: The values of each field, which is named alone or with its section, as in `{"policy.V": [0.01, 1]}`.
            Without it, every keyword that is a list, a tuple, a range or an array is swept, as in `V=[0.01, 1]`.
        policies: As in `compare`; by default the scenario's own.
        seeds: How many, or which.
        out: As in `compare`.
        workers: As in `compare`.
        executor: As in `compare`.
        progress: Whether to show it.
        **fields: Other fields of the scenario, as in `Scenario.with_`.

    >>> found = sweep("tiny", {"V": [0.01, 1.0]}, seeds=1, rounds=3, engine="none", workers=1)
    >>> found.arms
    ['lyapunov V=0.01', 'lyapunov V=1.0']
    >>> sweep("tiny", V=[0.01, 1.0], seeds=1, rounds=3, engine="none", workers=1).arms
    ['lyapunov V=0.01', 'lyapunov V=1.0']
    """
    if over is None:
        over = {name: values for name, values in fields.items() if isinstance(values, list | tuple | range | ndarray)}
        fields = {name: value for name, value in fields.items() if name not in over}
    check_places("sweep", fields)
    base = scenario_of(sweep, scenario, fields if over else {})
    grid = _grid(over)
    if any(name == "seed" for name, _ in grid):
        raise ScenarioError("sweep: give seeds, as in seeds=[1, 2]; every value is run with each of them")
    one = isinstance(policies, str | Policy | type)
    arms = comparison.arms(base, [policies] if one else list(policies), (), grid)  # type: ignore[list-item]
    swept = tuple(_whole(name, arms[0].scenario) for name, _ in grid)
    plan = Plan("sweep", tuple(arms), seeds_of("sweep", seeds))
    return played(plan, out, workers, executor, progress, swept)


def _of_runs(runs: Sequence[Run]) -> Comparison:
    """Runs that are in memory alone are written to a directory for the time being."""
    where = Path(mkdtemp(prefix="feelstream-"))
    places = [run.directory or run.save(where / str(number)) for number, run in enumerate(runs)]
    found = Comparison(gathered("compare", runs, places), where, is_kept=False)
    finalize(found, rmtree, where, ignore_errors=True)
    return found


def read(directory: str | Path) -> Any:
    """A finished run from its directory, or a comparison from its; nothing that the files name is imported.

    Args:
        directory: What `--out` or `out=` was.

    Returns:
        A `Run`, or a `Comparison` where the directory holds the results of `compare`, `sweep` or a study.

    >>> from tempfile import TemporaryDirectory
    >>> from feelstream import simulate
    >>> with TemporaryDirectory() as place:
    ...     len(read(simulate("tiny", engine="none", out=f"{place}/first").directory).rounds)
    10
    """
    if not isinstance(directory, str | Path) or not (Path(directory) / "plan.json").is_file():
        return read_run(directory)
    from feelstream.report.groups import varied

    results = load(directory)
    swept = tuple(axis.field for axis in varied(results.plan)) if results.plan.name == "sweep" else ()
    return Comparison(results, Path(directory), swept)


def _grid(over: Any) -> list[tuple[str, list[Any]]]:
    """The fields that are swept, each with its values."""
    lists = isinstance(over, Mapping) and all(not isinstance(v, str) and isinstance(v, Iterable) for v in over.values())
    grid = [(name, list(values)) for name, values in over.items()] if lists else []
    if not grid or not all(values for _, values in grid):
        raise ScenarioError(
            "sweep: give at least one field, each with at least one value, as in sweep('tiny', V=[0.01, 0.1])"
        )
    return grid


def _whole(name: str, scenario: Scenario) -> str:
    """A field with its section, whichever way it was named."""
    known = {field.rpartition(".")[2]: field for field in flat(scenario.as_dict())}
    return name if "." in name else known.get(name, name)


def played(
    plan: Plan,
    out: str | Path | None,
    workers: int | None,
    executor: Executor | None,
    progress: bool,
    swept: tuple[str, ...] = (),
) -> Comparison:
    """Run what is missing of a plan. out, workers, executor, progress: as in `compare`. swept: fields of a sweep."""
    workers = None if workers is None else whole_number(f"{plan.name}: workers", workers)
    where = Path(mkdtemp(prefix="feelstream-") if out is None else out)
    own = _threads(plan, workers) if executor is None else None
    try:
        with own or nullcontext(), plan_bar(plan.name, progress) as tell:
            results = execute(plan, where, workers=workers, executor=executor or own, progress=tell)
    except BaseException:  # an interrupt too: nobody knows of a directory that was made here
        if out is None:
            rmtree(where, ignore_errors=True)
        raise
    for sentence in failed(results):
        log.warning(sentence)
    found = Comparison(results, where, swept, is_kept=out is not None)
    if out is None:
        finalize(found, rmtree, where, ignore_errors=True)
    return found


def _threads(plan: Plan, workers: int | None) -> Executor | None:
    """Threads, where something was defined in a script or a notebook: no other process could import it."""
    here = sorted({text for arm in plan.arms for text in texts(arm.scenario.as_dict()) if text.startswith(MAIN)})
    if not here:
        return None
    if len(plan.arms) * len(plan.seeds) > 1 and (workers or cores()) > 1:
        names = ", ".join(name.partition(":")[2] for name in here)
        print(
            f"feelstream: {names} is defined in this script or notebook, so all runs share this process; in a file of "
            "its own (file.py:Name) they would use every core",
            file=sys.stderr,
        )
    return ThreadPoolExecutor(workers or cores())
