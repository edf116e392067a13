"""Play a run: in memory (`simulate`), or in a directory where it survives being killed (`simulate_in`)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from feelstream import code
from feelstream.errors import RunError
from feelstream.loop.changes import Change, in_order
from feelstream.loop.round import RoundRecord
from feelstream.loop.world import Theta
from feelstream.quantities import introduce
from feelstream.run import trace
from feelstream.run.checkpoint import Checkpoint, Player
from feelstream.run.files import (
    Lock,
    as_sentence,
    make_directory,
    remove_temporaries,
    sole_writer,
    usable_directory,
)
from feelstream.run.manifest import Manifest, check_same_run
from feelstream.run.model import write_model
from feelstream.run.preparing import noted, prepare, resolved
from feelstream.run.run import Run, digests, read_complete, write_constants, write_tables
from feelstream.scenario import Scenario

CHECKPOINT_SECONDS = 1.0
CHECKPOINT_SHARE = 0.1  # of the time, at most: a million devices take a while to write
Progress = Callable[[RoundRecord], None]


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
    introduce(tables.rounds.columns, manifest.model_extra or {})
    return Run(
        simulation.scenario, manifest.seed, tables.rounds, tables.devices, manifest,
        theta=_model_of(simulation), evaluations=tables.evaluations, constants=manifest.constants,
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
            return read_complete(path, scenario, stored)
        player, manifest = prepare()
        if stored is not None:
            check_same_run(path, stored, manifest.as_dict())
        else:
            shutil.rmtree(progress_dir, ignore_errors=True)  # left by a call that died before it wrote run.json
            manifest.write(path)
        write_constants(path, manifest.constants)
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
        write_tables(path, tables)
        if (theta := _model_of(player)) is not None:
            write_model(path, theta)
        if finish:
            finish(path)
        lock.check()
        manifest = manifest.completed(_timings(player, start), digests(path))
        manifest.write(path)
        with as_sentence(progress_dir):
            shutil.rmtree(progress_dir)
    introduce(tables.rounds.columns, manifest.model_extra or {})
    return Run(
        scenario, manifest.seed, tables.rounds, tables.devices, manifest, path,
        evaluations=tables.evaluations, constants=manifest.constants,
    )  # fmt: skip


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


def _timings(player: Player, start: float) -> dict[str, Any]:
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "total_s": round(perf_counter() - start, 3),
        **{f"{phase}_s": round(seconds, 3) for phase, seconds in player.timings.items()},
    }


def _model_of(player: Player) -> Theta | None:
    """The player's model as it is now; None where it learns nothing, or keeps its model itself."""
    model = player.model
    return model if model is not None and model.size else None
