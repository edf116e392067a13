"""What happens in a worker process. Arguments and answers are plain values, so that any executor can carry them.

A run is always played in a directory, because only there it can be resumed. A worker of our own process pool plays
straight in the results, so a killed call loses at most the second since the last checkpoint. Of a batch of short runs
a killed call loses the one under way: each is played in memory and appears in the results whole. A worker of any other
executor may sit on another machine: it plays in a temporary directory and sends the files back, and the caller
stores them. No shared file system is needed, and the files are the same bytes either way.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import tempfile
import threading
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from feelstream.errors import BusyError, FeelstreamError
from feelstream.experiment.identity import identity
from feelstream.run import simulate, simulate_in
from feelstream.scenario.files import from_dict

BUSY_SECONDS = 20.0
Answer = dict[str, Any]


def start(lifeline: Connection) -> None:
    """Prepare a process of our pool: it ends when the runner closes the lifeline or dies, whatever it is doing.

    Without this the workers of a killed runner would wait for ever. Ctrl-C is the runner's to handle.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        try:
            lifeline.recv_bytes()
        except (EOFError, OSError):
            os._exit(1)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()


def identify(scenario: dict[str, Any]) -> Answer:
    """`identity` of a scenario on this worker, or the problem."""
    try:
        return {"identity": identity(from_dict(scenario))}
    except Exception as problem:
        return {"problem": explain(problem)}


def play_all(work: Sequence[tuple[dict[str, Any], int, str | None]]) -> list[Answer]:
    """Play one run, or a batch of short ones, in this order; an answer for each. work: scenario, seed, directory."""
    alone = len(work) == 1
    return [play(*job) if alone or job[2] is None else play_briefly(job[0], job[1], job[2]) for job in work]


def play_briefly(scenario: dict[str, Any], seed: int, directory: str) -> Answer:
    """Play a run in memory and move its files into place: for runs that are over before a checkpoint would be taken."""
    path = Path(directory)
    incoming = path.with_name(f".{path.name}.tmp")
    try:
        settings = from_dict(scenario)
        shutil.rmtree(incoming, ignore_errors=True)
        simulate(settings, seed, threads=1).save(incoming)
        shutil.rmtree(path, ignore_errors=True)  # an unfinished one
        os.replace(incoming, path)
        return {}
    except Exception as problem:
        return {"problem": explain(problem), "disk_full": is_disk_full(problem)}


def play(scenario: dict[str, Any], seed: int, directory: str | None) -> Answer:
    """Play one run in `directory`, or elsewhere and answer with its files; a problem is an answer too.

    Exceptions are turned into text here, since those of a user's own policy may not survive the way back.
    """
    try:
        settings = from_dict(scenario)
        if directory is not None:
            _patiently(directory, settings, seed)
            return {}
        with tempfile.TemporaryDirectory(prefix="feelstream-") as elsewhere:
            simulate_in(elsewhere, settings, seed, threads=1)
            tables = sorted(Path(elsewhere).glob("[!.]*"))
            return {"files": {file.name: file.read_bytes() for file in tables}}
    except Exception as problem:
        return {"problem": explain(problem), "disk_full": is_disk_full(problem)}


def _patiently(directory: str, settings: Any, seed: int) -> None:
    """The worker of a runner that was just killed may hold the directory for one more moment."""
    give_up = monotonic() + BUSY_SECONDS
    while True:
        try:
            simulate_in(directory, settings, seed, threads=1)
            return
        except BusyError:
            if monotonic() > give_up:
                raise
            sleep(0.02)


def explain(problem: BaseException) -> str:
    """One sentence; for an error that is not ours, with the place where it came up."""
    frames = traceback.extract_tb(problem.__traceback__)
    if isinstance(problem, FeelstreamError) or not frames:
        return sentence(problem)
    return f"{sentence(problem)} ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"


def sentence(problem: BaseException) -> str:
    """The first line of an error, with its kind if it is not ours."""
    text = str(problem).strip().splitlines()
    if isinstance(problem, FeelstreamError):
        return " ".join(text)
    return f"{type(problem).__name__}{': ' + text[0] if text else ''}"


def is_disk_full(problem: BaseException | None) -> bool:
    while problem is not None:
        if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if "No space left on device" in str(problem):  # Polars reports some of its own as text only
            return True
        problem = problem.__cause__ or problem.__context__
    return False
