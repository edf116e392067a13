"""What happens in a worker process. Arguments and answers are plain values, so that any executor can carry them.

A run that may take long is played in a directory, because only there it can be resumed. A worker of our own pool plays
straight in the results, so a killed call loses at most the second since the last checkpoint; a short run it plays in
memory, and the run appears in the results whole. A worker of any other executor may sit on another machine: it plays in
a temporary directory and sends the files back, and the caller stores them. No shared file system is needed, and the
files are the same bytes either way.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from feelstream.errors import BusyError, is_disk_full, sentence_and_place
from feelstream.experiment.plan import is_short
from feelstream.run import simulate, simulate_in
from feelstream.run.files import appear_whole
from feelstream.scenario import Scenario
from feelstream.scenario.files import from_dict

BUSY_SECONDS = 20.0


@dataclass(frozen=True)
class Answer:
    """What a worker made, or the problem with it in a sentence."""

    problem: str | None = None
    disk_full: bool = False
    files: dict[str, bytes] | None = None  # of a run that was played elsewhere than in the results

    @classmethod
    def of(cls, problem: BaseException) -> Answer:
        return cls(sentence_and_place(problem), is_disk_full(problem))


def start(lifeline: Connection) -> None:
    """Prepare a process of our pool: it ends when the runner closes the lifeline or dies, whatever it is doing.

    Without this the workers of a killed runner would wait for ever. Ctrl-C is the runner's to handle.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):  # it was blocked from the process's first moment on (pool.py)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def watch() -> None:
        try:
            lifeline.recv_bytes()
        except (EOFError, OSError):
            os._exit(1)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()


def play(scenario: dict[str, Any], seed: int, directory: str | None, pinned: dict[str, Any]) -> Answer:
    """Play one run in `directory`; without one, answer with its files. A problem is an answer too.

    Exceptions are turned into text here, since those of a user's own policy may not survive the way back. So are those
    that would end the process: a policy that calls sys.exit, a library that panics.
    """
    try:
        settings = from_dict(scenario)
        if is_short(settings):
            files = simulate(settings, seed, threads=1, pinned=pinned).files()
            if directory is None:
                return Answer(files=files)
            appear_whole(Path(directory), files)
        elif directory is None:
            with tempfile.TemporaryDirectory(prefix="feelstream-") as elsewhere:
                simulate_in(elsewhere, settings, seed, threads=1, pinned=pinned)
                return Answer(files={file.name: file.read_bytes() for file in Path(elsewhere).glob("[!.]*")})
        else:
            _play_in(directory, settings, seed, pinned)
        return Answer()
    except BaseException as problem:
        return Answer.of(problem)


def _play_in(directory: str, settings: Scenario, seed: int, pinned: dict[str, Any]) -> None:
    """The worker of a runner that was just killed may hold the directory for one more moment."""
    give_up = monotonic() + BUSY_SECONDS
    while True:
        try:
            simulate_in(directory, settings, seed, threads=1, pinned=pinned)
            return
        except BusyError:
            if monotonic() > give_up:
                raise
            sleep(0.02)
