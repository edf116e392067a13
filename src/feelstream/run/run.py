"""A run: its settings and its tables, as they were played, or as they are read from its directory.

A run directory holds run.json, rounds.parquet, model.npz where something was learned, constants.parquet where
devices differ in their constants and, at trace level `full`,
devices.parquet and, where evaluators give arrays, evaluations.parquet; while the run is under way also `progress/`
(checkpoint.py).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from io import BytesIO
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from feelstream.columns import CONSTANTS
from feelstream.display.quantities import QUANTITIES, by_round, introduce, measures
from feelstream.errors import RunError, needed
from feelstream.loop.changes import from_list
from feelstream.loop.world import Theta
from feelstream.run.checkpoint import Checkpoint
from feelstream.run.files import (
    check_digest,
    digest_of,
    read_table,
    sealed,
    sole_writer,
    write_arrays,
    write_atomically,
)
from feelstream.run.manifest import Manifest
from feelstream.run.model import MODEL, FinalModel, read_model
from feelstream.scenario import Scenario
from feelstream.scenario.files import stored_scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from feelstream.display.picture import Style
    from feelstream.run.explaining import Explanation

PANELS = ("accuracy", "energy_mean_cum_j", "queue_mean_j", "transmitted")  # of a picture of a run
TABLES = ("rounds", "devices", "evaluations", "constants")  # those of a run, as far as it has them
SO_FAR = "so-far"  # where a report of an unfinished run is put, in its directory


@dataclass(frozen=True)
class Run:
    """A finished run: its settings and its tables.

    Attributes:
        scenario: Its settings.
        seed: Of every random draw.
        rounds: One row per round, with the columns of `rounds.parquet`.
        devices: One row per device and round, with the columns of `devices.parquet`; None at trace level `rounds`.
        manifest: What run.json says.
        directory: Where the run is kept, if it is.
        theta: θ(T+1), the model after the last round, of a run that is not kept in a directory.
        evaluations: Arrays of evaluators, where they give any; None: they give none.
        constants: Constants in which devices differ, as in `constants.parquet`; None: they differ in none.

    >>> from feelstream import simulate
    >>> print(simulate("tiny", engine="none"))
    Run(lyapunov, seed 0, 10 rounds)
      energy   67.5 mJ per device and round, budget 80.0 mJ
      queue    mean 319 mJ, largest 701 mJ
      devices  20 trained, 20 transmitted, 0 dropped at admission
    """

    scenario: Scenario
    seed: int
    rounds: pl.DataFrame
    devices: pl.DataFrame | None
    manifest: Manifest = field(repr=False)
    directory: Path | None = field(default=None, repr=False)
    theta: Theta | None = field(default=None, repr=False)
    evaluations: pl.DataFrame | None = field(default=None, repr=False)
    constants: pl.DataFrame | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        introduce(self.rounds.columns, self.manifest.quantities)

    def __repr__(self) -> str:
        kept = f", in {self.directory}" if self.directory else ""
        policy = self.scenario.policy.plugin_name().removeprefix("__main__:")
        return f"Run({policy}, seed {self.seed}, {len(self.rounds)} rounds{kept})"

    def __str__(self) -> str:
        """The run in a few lines: accuracy, energy against the budget, queues, devices."""
        last = self.rounds.row(-1, named=True)
        said = {q.name: q.text(last[q.name]) for q in by_round(last) if last[q.name] is not None}
        rows = {} if last["accuracy"] is None else {"accuracy": f"{said['accuracy']}  (loss {said['loss']})"}
        rows |= {quantity.heading: said[quantity.name] for quantity in measures(said)}
        allowed = QUANTITIES["energy_mean_cum_j"].text(self.budget_j)
        scheduled, sent = int(self.rounds["scheduled"].sum()), int(self.rounds["transmitted"].sum())
        rows |= {
            "energy": f"{said['energy_mean_cum_j']} per device and round, budget {allowed}",
            "queue": f"mean {said['queue_mean_j']}, largest {said['queue_max_j']}",
            "devices": f"{scheduled} trained, {sent} transmitted, {scheduled - sent} dropped at admission",
        }
        width = max(map(len, rows))
        return "\n".join([repr(self), *(f"  {name:{width}}  {words}" for name, words in rows.items())])

    @property
    def budget_j(self) -> float:
        """Mean energy budget per device and round, J."""
        return float(np.mean(self.scenario.system.energy_budget_j))

    @property
    def about(self) -> dict[str, Any]:
        """What run.json holds, as plain tables."""
        return self.manifest.as_dict()

    def summary(self) -> pl.DataFrame:
        """One row: accuracy, energy against the budget, queue, and how many trained and transmitted.

        Null where nothing was learned or the budget is 0.
        """
        last, budget_j = self.rounds.row(-1, named=True), self.budget_j
        energy_j = last["energy_mean_cum_j"]
        row: dict[str, Any] = {
            "policy": self.scenario.policy.plugin_name(),
            "seed": self.seed,
            "rounds": len(self.rounds),
            "accuracy": last["accuracy"],
            "loss": last["loss"],
            "energy_j": energy_j,
            "energy_over_budget": energy_j / budget_j if budget_j else None,
            "queue_mean_j": last["queue_mean_j"],
            "scheduled": int(self.rounds["scheduled"].sum()),
            "transmitted": int(self.rounds["transmitted"].sum()),
        }
        schema = {name: type(value) if value is not None else pl.Float64 for name, value in row.items()}
        return pl.DataFrame([row], schema=schema)

    def plot(
        self, *quantities: str, ax: Any = None, figsize: tuple[float, float] | None = None, style: Style = None
    ) -> Figure:
        """Accuracy, energy against the budget, queue and transmissions by round, or the quantities that are named.

        Args:
            *quantities: Columns of `rounds`, a panel each.
            ax: Axes of your own, one for each panel.
            figsize: Inches.
            style: A style of matplotlib's, or a dictionary; settings that you changed are kept in any case.
        """
        from feelstream.display.picture import Look, run_figure

        names = quantities[0] if len(quantities) == 1 and isinstance(quantities[0], list | tuple) else quantities
        return run_figure(self.rounds, self.budget_j, names or PANELS, Look(ax, figsize, style))

    def model(self) -> FinalModel:
        """The model after the last round."""
        if self.theta is not None:
            return FinalModel(self.scenario, self.theta)
        if self.directory is None or MODEL not in self.manifest.digests:
            learns = self.manifest.resolved.learning.learns
            why = (
                "learned nothing (learning.engine = none)"
                if not learns
                else "is not finished, or its app kept the model"
            )
            raise RunError(f"the run {why}, so there is none here")
        check_digest(self.directory / MODEL, self.manifest.digests[MODEL])
        return FinalModel(self.scenario, read_model(self.directory / MODEL))

    def explain(self, round: int, device: int) -> Explanation:
        """Why a device (from 0) was scheduled in a round (from 1), or not: what decided, and what would change it."""
        from feelstream.run.explaining import explain
        from feelstream.run.scenes import Scenes

        if self.devices is None:
            raise RunError("the run stores no rows of devices (trace.level = rounds), so there is nothing to explain")
        for name, value, first, last in (
            ("round", round, 1, len(self.rounds)), ("device", device, 0, self.scenario.system.devices - 1),
        ):  # fmt: skip
            if not isinstance(value, Integral) or not first <= value <= last:
                raise RunError(f"the {name} must be from {first} to {last}, not {value!r:.60}")
        return explain(Scenes(self), round, device)

    def to_pandas(self, table: str = "rounds") -> Any:
        """A table of the run as a pandas DataFrame.

        Args:
            table: rounds, devices, evaluations or constants.
        """
        if f"{table}.parquet" not in self.tables:
            raise RunError(f"the run has no table '{table}'; it has: {', '.join(file[:-8] for file in self.tables)}")
        return as_pandas(self.tables[f"{table}.parquet"])

    def _repr_html_(self) -> str:
        from feelstream.display.picture import html

        table = self.summary()
        shown = [QUANTITIES[name] for name in table.columns if name in QUANTITIES and table[name].dtype.is_float()]
        scaled = table.with_columns(pl.col(quantity.name) * quantity.scale for quantity in shown)
        return html(repr(self), scaled.rename({each.name: each.column_title for each in shown}), self.plot())

    def save(self, directory: str | Path) -> Path:
        """Write the run to a new or empty directory."""
        path = Path(directory)
        with sole_writer(path):
            if any(entry.name != ".lock" for entry in path.iterdir()):
                raise RunError(f"{path} is not empty; choose another directory")
            write_run(self, path)
        return path

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Those that the run has, by the names of their files."""
        found = {f"{name}.parquet": getattr(self, name) for name in TABLES}
        return {name: table for name, table in found.items() if table is not None}

    def files(self) -> dict[str, bytes]:
        """What `save` writes, by name; not of a run with a model, which would be held twice."""
        if self.theta is not None:
            raise RunError("the files of a run with a model are written by save")
        files = {name: _as_parquet(table) for name, table in self.tables.items()}
        digests = {name: sha256(files[name]).hexdigest() for name in sorted(files)}
        return files | {"run.json": sealed(self.manifest.completed(self.manifest.timings, digests).as_dict())}


def read(directory: str | Path) -> Run:
    """A finished run from its directory; nothing that its files name is imported.

    Args:
        directory: What `--out` or `out=` was, with run.json in it.

    >>> from tempfile import TemporaryDirectory
    >>> from feelstream import simulate
    >>> with TemporaryDirectory() as place:
    ...     len(read(simulate("tiny", engine="none", out=f"{place}/first").directory).rounds)
    10
    """
    if not isinstance(directory, str | Path):
        raise RunError(f"read: give the directory of a run, as in read('runs/first'), not {directory!r:.60}")
    path = Path(directory)
    manifest = Manifest.of_finished(path)
    return read_complete(path, stored_scenario(manifest.scenario, path / "run.json", manifest.promises), manifest)


def read_stored(path: Path, name: str, manifest: Manifest) -> pl.DataFrame:
    """A table of a complete run, which must be the one that was written."""
    check_digest(path / name, manifest.digests.get(name))
    return read_table(path / name)


def read_complete(path: Path, scenario: Scenario, manifest: Manifest) -> Run:
    always = ("rounds", "devices") if scenario.trace.level == "full" else ("rounds",)
    there = [name for name in TABLES if name in always or f"{name}.parquet" in manifest.digests]
    tables = {name: read_stored(path, f"{name}.parquet", manifest) for name in there}
    return Run(scenario, manifest.seed, manifest=manifest, directory=path, **{"devices": None, **tables})


def is_unfinished(directory: Path) -> bool:
    """Whether a run is under way there, or was cut short."""
    return (directory / "run.json").is_file() and not Manifest.read(directory).complete


def read_so_far(directory: str | Path) -> Run:
    """The stored rounds of a run that is under way, or was cut short; the scenario says how many there will be.

    Nothing is written to the run's own files, and whoever plays the run is not disturbed. Stored rows never change, so
    that what was read once stays true.
    """
    path = Path(directory)
    manifest = Manifest.read(path)
    if manifest.complete:
        return read(path)
    scenario = stored_scenario(manifest.scenario, path / "run.json", manifest.promises)
    checkpoint = Checkpoint(path / "progress", manifest.identity)
    try:
        tables = checkpoint.stored()
    except RunError:
        if Manifest.read(path).complete:  # it has ended while it was read
            return read(path)
        raise
    constants = read_table(path / CONSTANTS) if (path / CONSTANTS).exists() else None
    return Run(scenario, manifest.seed, *tables[:2], manifest, evaluations=tables.evaluations, constants=constants)


def saved_so_far(directory: str | Path) -> Path:
    """The stored rounds as a run of their own, complete after so many, in `so-far` of the run's directory; without the
    changes to come.
    """
    run, out = read_so_far(directory), Path(directory) / SO_FAR
    about, rounds = run.manifest, run.rounds.height
    scenario = about.scenario | {"system": {**about.scenario["system"], "rounds": rounds}}
    phases = tuple(phase for phase in about.resolved.phases if phase.first <= rounds)
    resolved = about.resolved.model_copy(update={"rounds": rounds, "phases": phases})
    known = zip(about.changes, from_list(about.changes), strict=True)
    changes = tuple(stored for stored, change in known if change.round <= rounds)
    manifest = about.model_copy(update={"scenario": scenario, "resolved": resolved, "changes": changes})
    shutil.rmtree(out, ignore_errors=True)
    return replace(run, manifest=manifest).save(out / Path(directory).resolve().name)


def write_run(run: Run, path: Path, finish: Callable[[Path], object] = lambda _: None) -> Run:
    """Write the tables and the model of a run that was just played, then run.json, which says that it is complete."""
    for name, table in run.tables.items():
        write_atomically(path / name, table.write_parquet)
    if run.theta is not None:
        write_arrays(path / MODEL, {"theta": run.theta})
    finish(path)
    files = (entry for entry in sorted(path.iterdir()) if entry.is_file() and entry.name[0] != ".")
    digests = {file.name: digest_of(file) for file in files if file.name != "run.json"}
    manifest = run.manifest.completed(run.manifest.timings, digests)
    manifest.write(path)
    return replace(run, manifest=manifest, directory=path, theta=None)


def as_pandas(table: pl.DataFrame) -> Any:
    """The table as a pandas DataFrame, column by column, so that pyarrow is not needed."""
    return needed("pandas", "pandas").DataFrame({column.name: column.to_list() for column in table})


def _as_parquet(table: pl.DataFrame) -> bytes:
    """The bytes of a small table, at half of what it costs Polars to write them to a file."""
    buffer = BytesIO()
    table.write_parquet(buffer)
    return buffer.getvalue()
