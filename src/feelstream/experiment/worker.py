"""What happens in a worker process. Arguments and answers are plain values, so that any executor can carry them.

A run is always played in a directory, because only there it can be resumed. A worker of our own process pool plays
straight in the results, so a killed call loses at most the second since the last checkpoint. Of a batch of short runs
a killed call loses the one under way and those of the half second before it: each is played in memory and appears in
the results whole. A worker of any other executor may sit on another machine: it plays in a temporary
directory and sends the files back, and the caller stores them. No shared file system is needed, and the files are the
same bytes either way.
"""

from __future__ import annotations

import ctypes
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from feelstream import learning
from feelstream.errors import BusyError, explain, is_disk_full
from feelstream.experiment.identity import identity
from feelstream.learning import cost
from feelstream.learning.cost import Cost
from feelstream.run import dataset_of, simulate, simulate_in
from feelstream.run.files import appear_whole, force_names
from feelstream.scenario import Scenario
from feelstream.scenario.files import from_dict

BUSY_SECONDS = 20.0
STORE_SECONDS = 0.5  # short runs are played so long before they are stored together
KEPT_BYTES = 1 << 20  # a larger array is given back when it is freed, and so is more than this at the heap's end
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
STORING = 16  # of them at once: the disk takes together what is forced to it at the same time


@dataclass(frozen=True)
class Answer:
    """What a worker found or made, or the problem with it in a sentence."""

    problem: str | None = None
    disk_full: bool = False
    files: dict[str, bytes] | None = None  # of a run that was played elsewhere than in the results
    identity: dict[str, Any] | None = None
    parameters: int | None = None  # with the identity: of the model, where one is trained
    cost: Cost | None = None  # with the identity: of a round of the model, where the scenario asks for it

    @classmethod
    def of(cls, problem: BaseException) -> Answer:
        return cls(explain(problem), is_disk_full(problem))


def start(lifeline: Connection) -> None:
    """Prepare a process of our pool: it ends when the runner closes the lifeline or dies, whatever it is doing.

    Without this the workers of a killed runner would wait for ever. Ctrl-C is the runner's to handle.
    """
    _give_memory_back()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):  # it was blocked from the process's first moment on (pool.py)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def watch() -> None:
        try:
            lifeline.recv_bytes()
        except (EOFError, OSError):
            os._exit(1)

    threading.Thread(target=watch, name="lifeline", daemon=True).start()


def _give_memory_back() -> None:
    """Let glibc return every large array to the system as soon as it is freed.

    By default it begins to keep them for itself once some were freed, up to 64 MB, and a worker that learns with many
    devices then holds 30 MB that nobody uses. Other systems' allocators have no such function and are left alone.
    """
    with suppress(AttributeError, OSError, TypeError):  # TypeError: Windows has no library of the process itself
        library = ctypes.CDLL(None)
        if hasattr(library, "gnu_get_libc_version"):
            library.mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
            library.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)


def identify(scenario: dict[str, Any]) -> Answer:
    """`identity` of a scenario on this worker, or the problem."""
    try:
        settings = from_dict(scenario)
        learner = learning.make(settings.learning, learning.probe(dataset_of(settings)), threads=1)
        return Answer(
            identity=identity(settings),
            parameters=learner.parameters if learner else None,
            cost=cost.of(settings.learning, dataset_of(settings)) if settings.autos else None,
        )
    except KeyboardInterrupt:  # this may be the runner's own process
        raise
    except BaseException as problem:
        return Answer.of(problem)


Played = dict[str, bytes] | Answer  # the files of a run, or the problem with it
Work = tuple[dict[str, Any], int, str | None, dict[str, Any]]  # scenario, seed, directory, what it must be made with


def play_all(work: Sequence[Work]) -> list[Answer]:
    """Play one run, or a batch of short ones, in this order; an answer for each.

    Short runs are forced to disk many at a time, which takes hardly longer than one. Nothing is played meanwhile: each
    of the many calls that store a run would wait for Python's lock, up to 5 ms, and take it from whoever plays.
    """
    if len(work) == 1 or any(directory is None for _, _, directory, _ in work):
        return [play(*job) for job in work]
    made: dict[int, Scenario] = {}

    def scenario_of(table: dict[str, Any], promised: dict[str, Any]) -> Scenario:
        """Made once for all runs that were sent with the same table, unless it names code, which may remember."""
        if id(table) in made:
            return made[id(table)]
        scenario = from_dict(table)
        if promised.get("files") == {}:
            made[id(table)] = scenario
        return scenario

    answers, waiting, since = list[Answer](), list[tuple[Played, str]](), monotonic()
    with ThreadPoolExecutor(STORING, "storing") as storing:
        for table, seed, directory, promised in work:
            played = play_briefly(lambda table=table, promised=promised: scenario_of(table, promised), seed, promised)
            waiting.append((played, directory or ""))
            if len(answers) + len(waiting) == len(work) or monotonic() - since >= STORE_SECONDS:
                answers += store_together(waiting, storing)
                waiting, since = [], monotonic()
    return answers


def play_briefly(make: Callable[[], Scenario], seed: int, promised: dict[str, Any]) -> Played:
    """Play a run in memory: for runs that are over before a checkpoint would be taken."""
    try:
        return simulate(make(), seed, threads=1, promised=promised).files()
    except BaseException as problem:
        return Answer.of(problem)


def store_together(runs: Sequence[tuple[Played, str]], storing: ThreadPoolExecutor) -> list[Answer]:
    """Store runs that were played in memory. None is said to be there before the disk has all files and names."""
    answers = list(storing.map(lambda each: store_briefly(*each), runs))
    try:
        for parent in {Path(directory).parent for _, directory in runs}:
            force_names(parent)
    except BaseException as problem:
        return [Answer.of(problem)] * len(runs)
    return answers


def store_briefly(played: Played, directory: str) -> Answer:
    """Write the files of a run that was played in memory, and move them into place together."""
    if isinstance(played, Answer):
        return played
    try:
        appear_whole(Path(directory), played, forced=False)
        return Answer()
    except BaseException as problem:
        return Answer.of(problem)


def play(scenario: dict[str, Any], seed: int, directory: str | None, promised: dict[str, Any]) -> Answer:
    """Play one run in `directory`, or elsewhere and answer with its files; a problem is an answer too.

    Exceptions are turned into text here, since those of a user's own policy may not survive the way back. So are those
    that would end the process: a policy that calls sys.exit, a library that panics.
    """
    try:
        settings = from_dict(scenario)
        if directory is not None:
            run_with_retry(directory, settings, seed, promised)
            return Answer()
        with tempfile.TemporaryDirectory(prefix="feelstream-") as elsewhere:
            simulate_in(elsewhere, settings, seed, threads=1, promised=promised)
            tables = sorted(Path(elsewhere).glob("[!.]*"))
            return Answer(files={file.name: file.read_bytes() for file in tables})
    except BaseException as problem:
        return Answer.of(problem)


def run_with_retry(directory: str, settings: Any, seed: int, promised: dict[str, Any]) -> None:
    """The worker of a runner that was just killed may hold the directory for one more moment."""
    give_up = monotonic() + BUSY_SECONDS
    while True:
        try:
            simulate_in(directory, settings, seed, threads=1, promised=promised)
            return
        except BusyError:
            if monotonic() > give_up:
                raise
            sleep(0.02)
