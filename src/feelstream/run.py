"""One run: in memory (`simulate`), or in a directory where it survives being killed (`simulate_in`).

A run directory holds run.json, rounds.parquet and, at trace level `full`, devices.parquet. While the run is under
way it also holds `progress/`: the rows so far in numbered parts and one checkpoint that says how many of them count.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from feelstream import __version__, learning, trace
from feelstream.data.datasets import load as load_dataset
from feelstream.errors import RunError
from feelstream.files import read_json, sole_writer, write_atomically, write_json
from feelstream.scenario import Scenario
from feelstream.scenario_files import from_dict
from feelstream.simulation import RoundRecord, Simulation

FORMAT = 1
CHECKPOINT_SECONDS = 1.0
CHECKPOINT_ROUNDS = 1000  # also bounds the rows held in memory
Progress = Callable[[RoundRecord], None]
DevicesFrame = Callable[[Sequence[RoundRecord]], pl.DataFrame]


@dataclass(frozen=True)
class Run:
    """A finished run: its settings and its tables."""

    scenario: Scenario
    seed: int
    rounds: pl.DataFrame
    devices: pl.DataFrame | None  # None at trace level `rounds`
    about: dict[str, Any] = field(repr=False)  # what run.json holds

    def save(self, directory: str | Path) -> Path:
        """Write the run to a new or empty directory."""
        path = _usable(Path(directory))
        if any(entry.name != ".lock" for entry in path.iterdir()):
            raise RunError(f"{path} is not empty; choose another directory")
        with sole_writer(path):
            _write_tables(path, self.rounds, self.devices)
            write_json(path / "run.json", self.about)
        return path


def simulate(scenario: Scenario, seed: int = 0, *, threads: int | None = None, progress: Progress | None = None) -> Run:
    """Play a scenario to its end and keep the tables in memory."""
    simulation, about = _prepare(scenario, seed, threads)
    start = perf_counter()
    records: list[RoundRecord] = []
    rounds: list[pl.DataFrame] = []
    devices: list[pl.DataFrame] = []

    def collect() -> None:
        rounds.append(trace.rounds_frame(records))
        if scenario.trace.level == "full":
            devices.append(trace.devices_frame(records))
        records.clear()

    while simulation.round < scenario.system.rounds:
        records.append(simulation.step())
        if progress:
            progress(records[-1])
        if len(records) == CHECKPOINT_ROUNDS:
            collect()
    collect()
    about |= {"status": "complete", "timings": _timings(simulation, start)}
    table = pl.concat(devices, rechunk=True) if devices else None
    return Run(scenario, seed, trace.finish(pl.concat(rounds)), table, about)


def simulate_in(
    directory: str | Path,
    scenario: Scenario,
    seed: int = 0,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    resumed: Callable[[int], None] | None = None,
    checkpoint_s: float = CHECKPOINT_SECONDS,
) -> Run:
    """Play a scenario in a directory: from the start, from where an earlier call stopped, or not at all if it is done.

    The files at the end are the same bytes however often the run was interrupted.
    """
    return play_in(
        directory, scenario, seed, lambda: _prepare(scenario, seed, threads),
        progress=progress, resumed=resumed, checkpoint_s=checkpoint_s,
    )  # fmt: skip


class Player(Protocol):
    """What plays a run round by round, and can stop and go on: a simulation, or a federation of real devices."""

    round: int
    timings: dict[str, float]

    def step(self) -> RoundRecord: ...

    def snapshot(self) -> dict[str, NDArray]: ...

    def restore(self, state: dict[str, NDArray]) -> None: ...


def play_in(
    directory: str | Path,
    scenario: Scenario,
    seed: int,
    prepare: Callable[[], tuple[Player, dict[str, Any]]],
    *,
    progress: Progress | None = None,
    resumed: Callable[[int], None] | None = None,
    checkpoint_s: float = CHECKPOINT_SECONDS,
    devices_frame: DevicesFrame = trace.devices_frame,
) -> Run:
    """Play a run in a directory with the player, and the account of it for run.json, that `prepare` makes.

    `prepare` is not called for a run that is done already.
    """
    path = _usable(Path(directory))
    with sole_writer(path):
        about_file, progress_dir = path / "run.json", path / "progress"
        stored = read_json(about_file) if about_file.exists() else None
        if stored is None and any(entry.name not in (".lock", "progress") for entry in path.iterdir()):
            raise RunError(f"{path} is not empty and not a run directory; choose another")
        if stored is not None and stored.get("status") == "complete":
            _same_run(path, stored, {"format": FORMAT, "seed": seed, "scenario": scenario.as_dict()})
            return read(path)
        player, about = prepare()
        if stored is not None:
            _same_run(path, stored, about)
        else:
            shutil.rmtree(progress_dir, ignore_errors=True)  # left by a call that died before it wrote run.json
            write_json(about_file, about | {"status": "running"})
        progress_dir.mkdir(exist_ok=True)
        parts = _Parts(progress_dir, devices_frame if scenario.trace.level == "full" else None)
        parts.restore(player)
        if player.round and resumed:
            resumed(player.round)

        start = last = perf_counter()
        records: list[RoundRecord] = []
        while player.round < scenario.system.rounds:
            records.append(player.step())
            if progress:
                progress(records[-1])
            if perf_counter() - last >= checkpoint_s or len(records) == CHECKPOINT_ROUNDS:
                parts.add(records, player)
                records.clear()
                last = perf_counter()
        parts.add(records, player)
        rounds, devices = parts.tables()
        _write_tables(path, trace.finish(rounds), devices)
        about |= {"status": "complete", "timings": _timings(player, start)}
        write_json(about_file, about)
        shutil.rmtree(progress_dir)
    return read(path)


def read(directory: str | Path) -> Run:
    """A finished run from its directory."""
    path = Path(directory)
    if not (path / "run.json").is_file():
        raise RunError(f"{path} is not a run directory: it has no run.json")
    about = read_json(path / "run.json")
    if about.get("format") != FORMAT:
        raise RunError(
            f"{path} was written in format {about.get('format')} and this version reads format {FORMAT}; run it again"
        )
    if about["status"] != "complete":
        raise RunError(f"{path} holds an unfinished run; give the same command again to finish it")
    scenario = from_dict(about["scenario"])
    devices = _read_table(path / "devices.parquet") if scenario.trace.level == "full" else None
    return Run(scenario, about["seed"], _read_table(path / "rounds.parquet"), devices, about)


class _Parts:
    """The rows of a run under way, and the checkpoint that says which of them count."""

    def __init__(self, directory: Path, devices_frame: DevicesFrame | None) -> None:
        self.directory, self.devices_frame, self.count = directory, devices_frame, 0

    def _file(self, table: str, number: int) -> Path:
        return self.directory / f"{table}-{number:06d}.parquet"

    def restore(self, player: Player) -> None:
        checkpoint = self.directory / "checkpoint.npz"
        if checkpoint.exists():
            with np.load(checkpoint, allow_pickle=False) as stored:
                state = dict(stored)
            self.count = int(state.pop("parts"))
            player.restore(state)

    def add(self, records: list[RoundRecord], player: Player) -> None:
        """Rows first, then the checkpoint: a kill between leaves rows that do not count and are written again."""
        if not records:
            return
        rounds = trace.rounds_frame(records)
        write_atomically(self._file("rounds", self.count), rounds.write_parquet)
        if self.devices_frame:
            write_atomically(self._file("devices", self.count), self.devices_frame(records).write_parquet)
        self.count += 1
        state = player.snapshot() | {"parts": np.array(self.count)}

        def save(path: Path) -> None:
            with path.open("wb") as file:
                np.savez(file, allow_pickle=False, **state)

        write_atomically(self.directory / "checkpoint.npz", save)

    def tables(self) -> tuple[pl.DataFrame, pl.DataFrame | None]:
        def read_all(table: str) -> pl.DataFrame:
            return pl.concat([pl.read_parquet(self._file(table, number)) for number in range(self.count)], rechunk=True)

        return read_all("rounds"), read_all("devices") if self.devices_frame else None


def _prepare(scenario: Scenario, seed: int, threads: int | None) -> tuple[Simulation, dict[str, Any]]:
    if seed < 0:
        raise RunError(f"the seed must be 0 or more, not {seed}")
    samples = scenario.data.samples if scenario.data.dataset == "synthetic" else None
    dataset = load_dataset(scenario.data.dataset, samples=samples)
    learner = learning.make(scenario.learning, dataset, threads)
    simulation = Simulation(scenario, seed, dataset.train_labels, dataset.classes, learner)
    about = {
        "format": FORMAT,
        "feelstream": __version__,
        "status": "running",
        "seed": seed,
        "scenario": scenario.as_dict(),
        "engine": {"name": learner.name if learner else "none", **(learner.details if learner else {})},
        "data": {
            "name": dataset.name,
            "digest": dataset.digest,
            "classes": dataset.classes,
            "samples": len(dataset.train_labels),
        },
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "polars")},
        },
        "timings": {},
    }
    return simulation, about


def _same_run(path: Path, stored: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Going on is only right if everything that decides the outcome is as it was."""
    for what in wanted.keys() - {"status", "timings", "versions"}:
        old, new = _normal(stored.get(what)), _normal(wanted[what])
        if old != new:
            raise RunError(
                f"{path} holds a run with another {what}{_difference(old, new)}; choose another directory or remove it"
            )


def _normal(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _normal(entry) for key, entry in value.items()}
    return [_normal(entry) for entry in value] if isinstance(value, list | tuple) else value


def _difference(old: Any, new: Any, where: str = "") -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            if old.get(key) != new.get(key):
                return _difference(old.get(key), new.get(key), f"{where}.{key}" if where else key)
    return f" ({where + ' ' if where else ''}{old} there, {new} here)"


def _usable(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
        next(path.iterdir(), None)
        (path / ".lock").touch()
    except OSError as problem:
        raise RunError(f"cannot use the directory {path}: {problem.strerror}") from problem
    return path


def _write_tables(path: Path, rounds: pl.DataFrame, devices: pl.DataFrame | None) -> None:
    write_atomically(path / "rounds.parquet", rounds.write_parquet)
    if devices is not None:
        write_atomically(path / "devices.parquet", devices.write_parquet)


def _read_table(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as problem:
        raise RunError(f"{path} is missing or damaged") from problem


def _timings(player: Player, start: float) -> dict[str, Any]:
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "total_s": round(perf_counter() - start, 3),
        **{f"{phase}_s": round(seconds, 3) for phase, seconds in player.timings.items()},
    }
