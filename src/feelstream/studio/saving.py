"""What someone takes home: run directories that `verify` accepts, scenario files, the commands that repeat the runs.

A run is a function of (scenario, seed, changes), so saving plays it again, to its end, in a directory: the bytes
are those of `feelstream run`, and a save that is interrupted goes on where it stopped.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from feelstream.errors import RunError
from feelstream.run import simulate_in
from feelstream.run.files import usable_directory, write_atomically
from feelstream.scenario.files import to_toml
from feelstream.studio.lanes import Lane


def file_name(label: str) -> str:
    """A label as a name that every file system takes.

    >>> file_name("lyapunov, V = 0.5 from 13")
    'lyapunov-V-0.5-from-13'
    """
    return re.sub(r"[^\w.]+", "-", label).strip("-.") or "run"


def scenario_file(lane: Lane) -> str:
    """The lane's scenario as TOML, every field explained."""
    changed = f"; run with {' '.join(_changes(lane))}" if lane.changes else ""
    return to_toml(lane.scenario, f"{lane.label}, seed {lane.seed}, from the studio{changed}")


def command(lane: Lane) -> str:
    """The command line that repeats the lane's run, given its scenario file."""
    name = file_name(lane.label)
    words = ["feelstream", "run", f"{name}.toml", "--seed", str(lane.seed), *_changes(lane), "--out", name]
    return shlex.join(words)


def _changes(lane: Lane) -> list[str]:
    return [word for change in lane.changes for word in ("--change", str(change))]


def save(lanes: Sequence[Lane], directory: Path, progress: Callable[[str], None] = lambda text: None) -> Path:
    """Write each lane's scenario file and run directory, and the commands that repeat them, into a directory."""
    if not all(lane.live for lane in lanes):
        raise RunError("these runs are stored already; start a race of your own to save it")
    path = usable_directory(directory)
    for lane in lanes:
        name, text = file_name(lane.label), scenario_file(lane)
        _write(path / f"{name}.toml", text)

        def tell(record, lane: Lane = lane) -> None:
            progress(f"{lane.label}: round {record.observation.round} of {lane.scenario.system.rounds}")

        simulate_in(path / name, lane.scenario, lane.seed, changes=lane.changes, progress=tell)
    _write(path / "commands.txt", "".join(f"{command(lane)}\n" for lane in lanes))
    return path


def _write(path: Path, text: str) -> None:
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))
