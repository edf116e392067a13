"""Play a run: in memory (`simulate`), or in a directory where it survives being killed (`simulate_in`)."""

from __future__ import annotations

import operator
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from feelstream import code
from feelstream.columns import CONSTANTS
from feelstream.errors import RunError
from feelstream.loop.changes import Change, as_list, in_order
from feelstream.loop.round import RoundRecord
from feelstream.run import trace
from feelstream.run.callbacks import Callback, tell
from feelstream.run.checkpoint import Checkpoint, Player
from feelstream.run.files import as_sentence, remove_temporaries, sole_writer, usable_directory, write_atomically
from feelstream.run.manifest import Manifest, check_same_run
from feelstream.run.preparing import prepare, with_numbers
from feelstream.run.run import Run, read_complete, write_run
from feelstream.scenario import Scenario

Progress = Callable[[RoundRecord], None]


def simulate(
    scenario: Scenario,
    seed: int = 0,
    *,
    changes: Iterable[Change] = (),
    threads: int | None = None,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
    pinned: Mapping[str, Any] | None = None,
) -> Run:
    """Run a scenario to its end and keep the tables in memory.

    changes: of V, size or budget, each from a given round on. pinned: files and data that it must be made with.
    """
    simulation, manifest = prepare(scenario, seed, threads, changes, pinned)
    start, rows = perf_counter(), trace.Rows(scenario.trace.level == "full", manifest.facts)
    tables = trace.joined(list(_rounds(simulation, rows, progress, callbacks)))
    return _run(simulation, manifest, tables, start)


def simulate_in(
    directory: str | Path,
    scenario: Scenario,
    seed: int = 0,
    *,
    changes: Iterable[Change] = (),
    threads: int | None = None,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint_s: float | None = None,
    pinned: Mapping[str, Any] | None = None,
) -> Run:
    """Run a scenario in a directory: from the start, from where an earlier call stopped, or not at all if it is done.

    The tables at the end are the same bytes however often the run was interrupted. checkpoint_s: time between
    checkpoints, 0 for one every round; by default a second, or more where writing one takes long.

    A directory that holds another run (seed, scenario, data, engine), or anything else, is refused and left alone. So
    is a run whose checkpoint or rows are damaged, which no kill can do: nothing is thrown away unasked.
    """
    scenario = with_numbers(scenario)
    changes = in_order(scenario, changes)
    return play_in(
        directory, scenario, seed, lambda: prepare(scenario, seed, threads, changes, pinned),
        changes=changes, progress=progress, callbacks=callbacks, checkpoint_s=checkpoint_s,
    )  # fmt: skip


def play_in(
    directory: str | Path,
    scenario: Scenario,
    seed: int,
    prepare: Callable[[], tuple[Player, Manifest]],
    *,
    changes: Sequence[Change] = (),
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint_s: float | None = None,
    finish: Callable[[Path], object] = lambda _: None,
) -> Run:
    """As `simulate_in`, with any player of rounds: `prepare` makes it, and what run.json is to say of the run.

    `prepare` is not called for a run that is done already. finish: writes what else the directory is
    to hold; it comes before run.json says that the run is complete, and again if it was cut short.
    """
    path = Path(directory)
    with sole_writer(path):
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
            wanted = {"seed": operator.index(seed), "scenario": settings, "files": code.named_files(scenario)}
            check_same_run(path, stored, wanted | {"changes": as_list(scenario, changes)})
            shutil.rmtree(progress_dir, ignore_errors=True)  # left by a call that died after it wrote run.json
            return read_complete(path, scenario, stored)
        player, manifest = prepare()
        if stored is not None:
            check_same_run(path, stored, manifest.as_dict())
        else:
            shutil.rmtree(progress_dir, ignore_errors=True)  # left by a call that died before it wrote run.json
            manifest.write(path)
        if manifest.constants is not None:
            write_atomically(path / CONSTANTS, manifest.constants.write_parquet)
        usable_directory(progress_dir)
        remove_temporaries(progress_dir)
        checkpoint = Checkpoint(progress_dir, manifest.identity, checkpoint_s)
        checkpoint.restore(player)
        start, rows = perf_counter(), trace.Rows(full, manifest.facts, checkpoint.energy_sum_j())
        for tables in _rounds(player, rows, progress, callbacks, checkpoint):
            checkpoint.save(tables, player)
        run = write_run(_run(player, manifest, checkpoint.tables(), start), path, finish)
        with as_sentence(progress_dir):
            shutil.rmtree(progress_dir)
    return run


def _rounds(
    player: Player,
    rows: trace.Rows,
    progress: Progress | None,
    callbacks: Sequence[Callback],
    checkpoint: Checkpoint | None = None,
) -> Iterator[trace.Tables]:
    """Play all rounds that are left; their rows, when they are due, before they fill the memory and at the end."""
    last = player.scenario.system.rounds
    while player.round < last:
        record = player.step()
        row = rows.add(record)
        if progress:
            progress(record)
        if callbacks:
            tell(callbacks, record, row)
        if player.round == last or rows.many or (checkpoint and perf_counter() >= checkpoint.next_s):
            yield rows.take()


def _run(player: Player, manifest: Manifest, tables: trace.Tables, start: float) -> Run:
    timings = {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "total_s": round(perf_counter() - start, 3),
        **{f"{phase}_s": round(seconds, 3) for phase, seconds in player.timings.items()},
    }
    theta = player.model if player.model is not None and player.model.size else None  # it may keep its model itself
    return Run(
        player.scenario, manifest.seed, tables.rounds, tables.devices, manifest.completed(timings, {}),
        theta=theta, evaluations=tables.evaluations, constants=manifest.constants,
    )  # fmt: skip
