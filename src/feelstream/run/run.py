"""A run: its settings and its tables, as they were played, or as they are read from its directory.

A run directory holds run.json, rounds.parquet, model.npz where something was learned, constants.parquet where
devices differ in their constants and, at trace level `full`,
devices.parquet and, where evaluators give arrays, evaluations.parquet; while the run is under way also `progress/`
(checkpoint.py).
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from hashlib import sha256
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from feelstream.constants import TABLE as CONSTANTS
from feelstream.errors import RunError
from feelstream.loop.world import Theta
from feelstream.quantities import introduce
from feelstream.run import trace, views
from feelstream.run.checkpoint import Checkpoint
from feelstream.run.files import (
    as_parquet,
    check_digest,
    digest_of,
    read_table,
    sealed,
    sole_writer,
    usable_directory,
    write_atomically,
)
from feelstream.run.manifest import Manifest
from feelstream.run.model import MODEL, FinalModel, read_model, write_model
from feelstream.run.preparing import dataset_of
from feelstream.scenario import Scenario
from feelstream.scenario.files import stored_scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from feelstream.run.explaining import Explanation
    from feelstream.run.picture import Style

EVALUATIONS = "evaluations.parquet"
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
        theta: The model after the last round, of a run that is not kept in a directory.
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
    devices: pl.DataFrame | None  # None at trace level `rounds`
    manifest: Manifest = field(repr=False)  # what run.json says
    directory: Path | None = field(default=None, repr=False)  # where it is kept, if it is
    theta: Theta | None = field(default=None, repr=False)  # θ(T+1) of a run that is not kept in a directory
    evaluations: pl.DataFrame | None = field(default=None, repr=False)  # arrays of evaluators, where they give any
    constants: pl.DataFrame | None = field(default=None, repr=False)  # where devices differ in any

    def __repr__(self) -> str:
        kept = f", in {self.directory}" if self.directory else ""
        policy = self.scenario.policy.plugin_name().removeprefix("__main__:")
        return f"Run({policy}, seed {self.seed}, {len(self.rounds)} rounds{kept})"

    def __str__(self) -> str:
        """What the run came to, in words."""
        rows = views.in_words(self.scenario, self.rounds)
        width = max(map(len, rows))
        return "\n".join([repr(self), *(f"  {name:{width}}  {words}" for name, words in rows.items())])

    @property
    def about(self) -> dict[str, Any]:
        """What run.json holds, as plain tables."""
        return self.manifest.as_dict()

    def summary(self) -> pl.DataFrame:
        """One row: accuracy, energy against the budget, queue, and how many trained and transmitted."""
        return views.summary(self.scenario, self.seed, self.rounds)

    def plot(
        self,
        *quantities: str,
        ax: Any = None,
        figsize: tuple[float, float] | None = None,
        style: Style = None,
    ) -> Figure:
        """Accuracy, energy against the budget, queue and transmissions by round, or the quantities that are named.

        Args:
            *quantities: Columns of `rounds`, a panel each.
            ax: Axes of your own, one for each panel.
            figsize: Inches.
            style: A style of matplotlib's, or a dictionary; settings that you changed are kept in any case.
        """
        from feelstream.run.picture import Look

        names = quantities[0] if len(quantities) == 1 and isinstance(quantities[0], list | tuple) else quantities
        return views.picture(self.scenario, self.rounds, names or views.PANELS, Look(ax, figsize, style))

    def model(self) -> FinalModel:
        """The model after the last round."""
        if self.directory is None and self.theta is None:
            raise RunError("the run learned nothing (learning.engine = none), so it has no model")
        if self.theta is not None:
            return FinalModel(self.scenario, self.theta, dataset_of)
        directory = self.directory or Path()
        if MODEL in self.manifest.digests:
            check_digest(directory / MODEL, self.manifest.digests[MODEL])
        return FinalModel(self.scenario, read_model(directory), dataset_of)

    def explain(self, round: int, device: int) -> Explanation:
        """Why a device (from 0) was scheduled in a round (from 1), or not: what decided, and what would change it."""
        from feelstream.run.explaining import Scenes, explain

        if self.devices is None:
            raise RunError("the run stores no rows of devices (trace.level = rounds), so there is nothing to explain")
        for name, value, first, last in (
            ("round", round, 1, len(self.rounds)), ("device", device, 0, self.scenario.system.devices - 1),
        ):  # fmt: skip
            if not isinstance(value, Integral) or not first <= value <= last:
                raise RunError(f"the {name} must be from {first} to {last}, not {value!r:.60}")
        return explain(Scenes(self), round, device)

    def to_pandas(self) -> Any:
        """The table of rounds as a pandas DataFrame."""
        return views.as_pandas(self.rounds)

    def _repr_html_(self) -> str:
        return views.html(repr(self), views.with_units(self.summary()), self.plot())

    def save(self, directory: str | Path) -> Path:
        """Write the run to a new or empty directory."""
        path = usable_directory(Path(directory))
        with sole_writer(path):
            if any(entry.name != ".lock" for entry in path.iterdir()):
                raise RunError(f"{path} is not empty; choose another directory")
            write_constants(path, self.constants)
            write_tables(path, trace.Tables(self.rounds, self.devices, self.evaluations))
            if self.theta is not None:
                write_model(path, self.theta)
            self.manifest.completed(self.manifest.timings, digests(path)).write(path)
        return path

    def files(self) -> dict[str, bytes]:
        """What `save` writes, by name; not of a run with a model, which would be held twice."""
        if self.theta is not None:
            raise RunError("the files of a run with a model are written by save")
        tables = trace.Tables(self.rounds, self.devices, self.evaluations)._asdict() | {"constants": self.constants}
        files = {f"{name}.parquet": as_parquet(table) for name, table in tables.items() if table is not None}
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
    manifest = Manifest.read(path)
    if not manifest.complete:
        raise RunError(f"{path} holds an unfinished run; give the same command again to finish it")
    return read_complete(path, stored_scenario(manifest.scenario, path / "run.json", manifest.promises), manifest)


def read_stored(path: Path, name: str, manifest: Manifest) -> pl.DataFrame:
    """A table of a complete run, which must be the one that was written."""
    check_digest(path / name, manifest.digests.get(name))
    return read_table(path / name)


def read_complete(path: Path, scenario: Scenario, manifest: Manifest) -> Run:
    devices = read_stored(path, "devices.parquet", manifest) if scenario.trace.level == "full" else None
    rounds = read_stored(path, "rounds.parquet", manifest)
    arrays = read_stored(path, EVALUATIONS, manifest) if EVALUATIONS in manifest.digests else None
    constants = read_stored(path, CONSTANTS, manifest) if CONSTANTS in manifest.digests else None
    introduce(rounds.columns, manifest.model_extra or {})
    return Run(scenario, manifest.seed, rounds, devices, manifest, path, evaluations=arrays, constants=constants)


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
    checkpoint = Checkpoint(path / "progress", manifest.identity, scenario.trace.level == "full")
    try:
        tables = checkpoint.stored()
    except RunError:
        if Manifest.read(path).complete:  # it has ended while it was read
            return read(path)
        raise
    introduce(tables.rounds.columns, manifest.model_extra or {})
    return Run(scenario, manifest.seed, tables.rounds, tables.devices, manifest, None, evaluations=tables.evaluations)


def saved_so_far(directory: str | Path) -> Path:
    """The stored rounds as a run of their own, complete after so many, in `so-far` of the run's directory."""
    run, out = read_so_far(directory), Path(directory) / SO_FAR
    scenario = dict(run.manifest.scenario)
    scenario["system"] = {**scenario["system"], "rounds": run.rounds.height}
    resolved = run.manifest.resolved.model_copy(update={"rounds": run.rounds.height})
    manifest = run.manifest.model_copy(update={"scenario": scenario, "resolved": resolved})
    shutil.rmtree(out, ignore_errors=True)
    shorter = Run(run.scenario, run.seed, run.rounds, run.devices, manifest, evaluations=run.evaluations)
    return shorter.save(out / Path(directory).resolve().name)


def write_constants(path: Path, constants: pl.DataFrame | None) -> None:
    if constants is not None:
        write_atomically(path / CONSTANTS, constants.write_parquet)


def write_tables(path: Path, tables: trace.Tables) -> None:
    for name, table in tables._asdict().items():
        if table is not None:
            write_atomically(path / f"{name}.parquet", table.write_parquet)


def digests(path: Path) -> dict[str, str]:
    """SHA-256 of every file of a run but run.json."""
    files = (entry for entry in sorted(path.iterdir()) if entry.is_file() and entry.name[0] != ".")
    return {file.name: digest_of(file) for file in files if file.name != "run.json"}
