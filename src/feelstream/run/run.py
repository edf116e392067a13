"""One run: in memory (`simulate`), or in a directory where it survives being killed (`simulate_in`).

A run directory holds run.json, rounds.parquet, model.npz where something was learned and, at trace level `full`,
devices.parquet and, where evaluators give arrays, evaluations.parquet; while the run is under way also `progress/`
(checkpoint.py).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from numbers import Integral
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import polars as pl

from feelstream import code
from feelstream.errors import RunError
from feelstream.run import trace, views
from feelstream.run.changes import Change, in_order
from feelstream.run.checkpoint import Checkpoint
from feelstream.run.files import (
    Lock,
    as_parquet,
    as_sentence,
    check_digest,
    digest_of,
    make_directory,
    read_table,
    remove_temporaries,
    sealed,
    sole_writer,
    usable_directory,
    write_atomically,
)
from feelstream.run.manifest import Manifest, check_same_run
from feelstream.run.model import MODEL, FinalModel, model_of, read_model, write_model
from feelstream.run.pandas_tables import as_pandas
from feelstream.run.player import Player
from feelstream.run.preparing import dataset_of, noted, prepare, resolved
from feelstream.run.presentation import introduce
from feelstream.scenario import Scenario
from feelstream.scenario.files import stored_scenario
from feelstream.scheduling import RoundRecord
from feelstream.world import Theta

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from feelstream.run.explaining import Explanation
    from feelstream.run.picture import Style

EVALUATIONS = "evaluations.parquet"
CHECKPOINT_SECONDS = 1.0
CHECKPOINT_SHARE = 0.1  # of the time, at most: a million devices take a while to write
Progress = Callable[[RoundRecord], None]


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
        return as_pandas(self.rounds)

    def _repr_html_(self) -> str:
        return views.html(repr(self), views.with_units(self.summary()), self.plot())

    def save(self, directory: str | Path) -> Path:
        """Write the run to a new or empty directory."""
        path = usable_directory(Path(directory))
        with sole_writer(path):
            if any(entry.name != ".lock" for entry in path.iterdir()):
                raise RunError(f"{path} is not empty; choose another directory")
            _write_tables(path, trace.Tables(self.rounds, self.devices, self.evaluations))
            if self.theta is not None:
                write_model(path, self.theta)
            self.manifest.completed(self.manifest.timings, _digests(path)).write(path)
        return path

    def files(self) -> dict[str, bytes]:
        """What `save` writes, by name; not of a run with a model, which would be held twice."""
        if self.theta is not None:
            raise RunError("the files of a run with a model are written by save")
        tables = trace.Tables(self.rounds, self.devices, self.evaluations)._asdict()
        files = {f"{name}.parquet": as_parquet(table) for name, table in tables.items() if table is not None}
        digests = {name: sha256(files[name]).hexdigest() for name in sorted(files)}
        return files | {"run.json": sealed(self.manifest.completed(self.manifest.timings, digests).as_dict())}


def simulate(
    scenario: Scenario,
    seed: int = 0,
    *,
    changes: Iterable[Change] = (),
    threads: int | None = None,
    progress: Progress | None = None,
    promised: Mapping[str, Any] | None = None,
) -> Run:
    """Run a scenario to its end and keep the tables in memory.

    changes: of V, size or budget, each from a given round on. promised: files and data that it must be made with.
    """
    scenario = resolved(scenario)
    simulation, manifest = prepare(scenario, seed, threads, changes, promised)
    start = perf_counter()
    rows = trace.Rows(scenario.trace.level == "full", manifest.facts)
    taken: list[trace.Tables] = []
    while simulation.round < scenario.system.rounds:
        _step(simulation, rows, progress)
        if rows.many:
            taken.append(rows.take())
    taken.append(rows.take())
    tables = trace.joined(taken)
    manifest = manifest.completed(_timings(simulation, start), {})
    introduce(tables.rounds.columns, manifest)
    return Run(
        simulation.scenario, manifest.seed, tables.rounds, tables.devices, manifest,
        theta=model_of(simulation), evaluations=tables.evaluations,
    )  # fmt: skip


def simulate_in(
    directory: str | Path,
    scenario: Scenario,
    seed: int = 0,
    *,
    changes: Iterable[Change] = (),
    threads: int | None = None,
    progress: Progress | None = None,
    resumed: Callable[[int], None] | None = None,
    checkpoint_s: float | None = None,
    promised: Mapping[str, Any] | None = None,
) -> Run:
    """Run a scenario in a directory: from the start, from where an earlier call stopped, or not at all if it is done.

    The tables at the end are the same bytes however often the run was interrupted. checkpoint_s: time between
    checkpoints, 0 for one every round; by default a second, or more where writing one takes long.

    A directory that holds another run (seed, scenario, data, engine), or anything else, is refused and left alone. So
    is a run whose checkpoint or rows are damaged, which no kill can do: nothing is thrown away unasked.
    """
    scenario = resolved(scenario)
    changes = in_order(scenario, changes)
    return play_in(
        directory, scenario, seed, lambda: prepare(scenario, seed, threads, changes, promised),
        changes=changes, progress=progress, resumed=resumed, checkpoint_s=checkpoint_s,
    )  # fmt: skip


def play_in(
    directory: str | Path,
    scenario: Scenario,
    seed: int,
    prepare: Callable[[], tuple[Player, Manifest]],
    *,
    changes: Sequence[Change] = (),
    progress: Progress | None = None,
    resumed: Callable[[int], None] | None = None,
    checkpoint_s: float | None = None,
    finish: Callable[[Path], None] | None = None,
) -> Run:
    """As `simulate_in`, with any player of rounds: `prepare` makes it, and what run.json is to say of the run.

    `prepare` is not called for a run that is done already. finish: writes what else the directory is
    to hold; it comes before run.json says that the run is complete, and again if it was cut short.
    """
    path = usable_directory(Path(directory))
    with sole_writer(path) as lock:
        remove_temporaries(path)
        progress_dir, full = path / "progress", scenario.trace.level == "full"
        stored = Manifest.read(path) if (path / "run.json").exists() else None
        if stored is None and any(entry.name not in (".lock", "progress", "logs") for entry in path.iterdir()):
            raise RunError(f"{path} is not empty and not a run directory; choose another")
        if stored is not None and stored.complete:
            code.check(scenario)
            if names := code.without_file(scenario):
                raise RunError(
                    f"{path} holds a finished run of {names[0]}, which has no file that says all of what it does, and "
                    "such a run is never used again; choose another directory, or put the code in a file of its own"
                )
            settings = scenario.as_dict()
            wanted = {"seed": seed, "scenario": settings, "files": code.named_files(scenario)}
            check_same_run(path, stored, wanted | noted(scenario, changes))
            shutil.rmtree(progress_dir, ignore_errors=True)  # left by a call that died after it wrote run.json
            return _read(path, scenario, stored)
        player, manifest = prepare()
        if stored is not None:
            check_same_run(path, stored, manifest.as_dict())
        else:
            shutil.rmtree(progress_dir, ignore_errors=True)  # left by a call that died before it wrote run.json
            manifest.write(path)
        make_directory(progress_dir)
        remove_temporaries(progress_dir)
        checkpoint = Checkpoint(progress_dir, manifest.identity, full)
        checkpoint.restore(player)
        if player.round and resumed:
            resumed(player.round)

        start = perf_counter()
        _play(player, trace.Rows(full, manifest.facts), checkpoint, lock, progress, checkpoint_s)
        tables = checkpoint.tables()
        if not trace.is_whole(tables.rounds, tables.devices, scenario.system.rounds, scenario.system.devices):
            raise RunError(
                f"the rows in {progress_dir} are not those of all rounds from 1 to {scenario.system.rounds}, "
                "as if two processes had written them; remove it to start the run again"
            )
        _write_tables(path, tables)
        if (theta := model_of(player)) is not None:
            write_model(path, theta)
        if finish:
            finish(path)
        lock.check()
        manifest = manifest.completed(_timings(player, start), _digests(path))
        manifest.write(path)
        with as_sentence(progress_dir):
            shutil.rmtree(progress_dir)
    introduce(tables.rounds.columns, manifest)
    return Run(scenario, manifest.seed, tables.rounds, tables.devices, manifest, path, evaluations=tables.evaluations)


def _digests(path: Path) -> dict[str, str]:
    """SHA-256 of every file of a run but run.json."""
    files = (entry for entry in sorted(path.iterdir()) if entry.is_file() and entry.name[0] != ".")
    return {file.name: digest_of(file) for file in files if file.name != "run.json"}


def _play(
    player: Player,
    rows: trace.Rows,
    checkpoint: Checkpoint,
    lock: Lock,
    progress: Progress | None,
    checkpoint_s: float | None,
) -> None:
    """All rounds that are left, with a checkpoint every now and then and one after the last."""
    pause, last = CHECKPOINT_SECONDS if checkpoint_s is None else checkpoint_s, perf_counter()
    while player.round < player.scenario.system.rounds:
        _step(player, rows, progress)
        over = player.round == player.scenario.system.rounds
        if over or rows.many or perf_counter() - last >= pause:
            begun = perf_counter()
            lock.check()
            checkpoint.save(rows.take(), player)
            last = perf_counter()
            if checkpoint_s is None:
                pause = max(CHECKPOINT_SECONDS, (last - begun) / CHECKPOINT_SHARE)


def _step(player: Player, rows: trace.Rows, progress: Progress | None) -> None:
    record = player.step()
    rows.add(record)
    if progress:
        progress(record)


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
    return _read(path, stored_scenario(manifest.scenario, path / "run.json", manifest.promises), manifest)


def read_stored(path: Path, name: str, manifest: Manifest) -> pl.DataFrame:
    """A table of a complete run, which must be the one that was written."""
    check_digest(path / name, manifest.digests.get(name))
    return read_table(path / name)


def _read(path: Path, scenario: Scenario, manifest: Manifest) -> Run:
    devices = read_stored(path, "devices.parquet", manifest) if scenario.trace.level == "full" else None
    rounds = read_stored(path, "rounds.parquet", manifest)
    arrays = read_stored(path, EVALUATIONS, manifest) if EVALUATIONS in manifest.digests else None
    introduce(rounds.columns, manifest)
    return Run(scenario, manifest.seed, rounds, devices, manifest, path, evaluations=arrays)


def _write_tables(path: Path, tables: trace.Tables) -> None:
    for name, table in tables._asdict().items():
        if table is not None:
            write_atomically(path / f"{name}.parquet", table.write_parquet)


def _timings(player: Player, start: float) -> dict[str, Any]:
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "total_s": round(perf_counter() - start, 3),
        **{f"{phase}_s": round(seconds, 3) for phase, seconds in player.timings.items()},
    }
