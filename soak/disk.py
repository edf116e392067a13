"""What is done on a failing disk: `LD_PRELOAD=failing_disk.so python -m soak.disk DIRECTORY`, orders as lines of JSON.

An order names the work, which of its calls fails, how and with which error; the answer says how it ended, and what was
wrong after it, if anything was. One process does all works, so that a trial takes moments.
"""

from __future__ import annotations

import ctypes
import json
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import feelstream as fs
from feelstream.errors import RunError
from feelstream.report import results_in, write
from feelstream.run import simulate_in

QUIET = ["learning.engine=none", "system.rounds=4"]
LEARNS = ["learning.engine=native", "learning.model=softmax", "learning.steps=1", "system.rounds=2"]
COMPARED = "compared"  # a directory made before, which is reported on


def _run(directory: Path) -> None:
    simulate_in(directory / "run", fs.preset("tiny", QUIET), 1, checkpoint_s=0)


def _learn(directory: Path) -> None:
    simulate_in(directory / "run", fs.preset("tiny", LEARNS), 1, checkpoint_s=0)


def _save(directory: Path) -> None:
    if (directory / "run" / "run.json").exists():
        return  # saving is refused where something is: what is there was whole, or is found wrong
    shutil.rmtree(directory / "run", ignore_errors=True)
    fs.simulate(fs.preset("tiny", QUIET), 1).save(directory / "run")


def _compare(directory: Path) -> None:
    with ThreadPoolExecutor(1) as one:  # in this process, so that its calls are counted in order
        scenario, out = fs.preset("tiny", QUIET), directory / "results"
        found = fs.compare(["lyapunov", "random"], scenario, seeds=1, out=out, executor=one)
    if found.failures:  # a plan says which of its runs failed, and keeps the others
        raise RunError(found.failures[0].reason)


def _report(directory: Path) -> None:
    results = results_in(directory.parent / COMPARED / "results")
    write(results, directory / "page")


WORKS: dict[str, Callable[[Path], None]] = {
    "run": _run, "learn": _learn, "save": _save, "compare": _compare, "report": _report,
}  # fmt: skip


class Disk:
    """The preloaded library: it counts and fails the calls that change files below one directory."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(None)
        self.library.disk_calls.restype = self.library.disk_failures.restype = ctypes.c_long
        self.library.disk_fails.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int]

    def fails(self, below: Path, nth: int, error: int, manner: int) -> None:
        self.library.disk_fails(str(below).encode(), nth, error, manner)

    def mended(self) -> tuple[int, int]:
        """From now on all is well; how many calls were counted, and how many failed."""
        counted = self.library.disk_calls(), self.library.disk_failures()
        self.library.disk_fails(b"", 0, 0, 0)
        return counted


def contents(directory: Path) -> dict[str, bytes]:
    """All files whose bytes are decided by the work, by name; run.json and plan.json hold times."""
    kept = (
        path for path in sorted(directory.rglob("*")) if path.is_file() and path.suffix in {".parquet", ".npz", ".csv"}
    )
    return {str(path.relative_to(directory)): path.read_bytes() for path in kept}


def wrong_after(directory: Path, right: dict[str, bytes]) -> str:
    """What is taken for a complete run after a failure, and is not the right one."""
    for about in directory.rglob("run.json"):
        try:
            run = fs.read(about.parent)
        except fs.FeelstreamError:
            continue
        right_here = _under(right, directory, about.parent)
        here = {name: content for name, content in contents(about.parent).items() if not name.startswith("progress/")}
        if run.manifest.complete and here != right_here:  # `progress` may be left over; the next call removes it
            return f"{about.parent.name} reads as complete and has other bytes"
    return ""


def _under(right: dict[str, bytes], directory: Path, part: Path) -> dict[str, bytes]:
    """What should be in that part; .NAME.tmp is to become NAME by one rename, and the next call removes it."""
    name = part.name[1:].removesuffix(".tmp") if part.name.startswith(".") else part.name
    prefix = f"{part.relative_to(directory).with_name(name)}/"
    return {name.removeprefix(prefix): content for name, content in right.items() if name.startswith(prefix)}


def carried_out(order: dict[str, Any], disk: Disk, place: Path, right: dict[str, dict[str, bytes]]) -> dict[str, Any]:
    work, directory = WORKS[order["work"]], place / "work"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    end, said = "survived", ""
    disk.fails(directory, order["nth"], order["error"], order["manner"])
    try:
        work(directory)
    except fs.FeelstreamError as problem:
        end, said = "refused", str(problem)
    except BaseException as problem:
        end, said = "lost", f"{type(problem).__name__}: {problem}"
    calls, failures = disk.mended()
    wanted = right.setdefault(order["work"], {} if order["nth"] else contents(directory))
    wrong = wrong_after(directory, wanted)
    if end == "survived" and wanted.items() - contents(directory).items():
        wrong = wrong or "other bytes, without a word"
    work(directory)  # the same command again, now that the disk is well
    if contents(directory) != wanted:
        wrong = wrong or f"other bytes when the same was done again, after: {said or 'nothing was said'}"
    if left := [path.name for path in directory.rglob("*.tmp")]:
        wrong = wrong or f"left behind: {left}"
    return {"end": end, "said": said, "calls": calls, "failures": failures, "wrong": wrong}


def main(place: Path) -> None:
    disk, right = Disk(), dict[str, dict[str, bytes]]()
    (place / COMPARED).mkdir()
    _compare(place / COMPARED)
    for line in sys.stdin:
        print(json.dumps(carried_out(json.loads(line), disk, place, right)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
