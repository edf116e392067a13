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
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from secrets import token_hex
from time import monotonic, sleep
from typing import Any

from feelstream import code, learning
from feelstream.columns import FORMAT
from feelstream.errors import BusyError, explain, is_disk_full
from feelstream.learning import cost
from feelstream.learning.cost import Cost
from feelstream.run import dataset_of, simulate, simulate_in
from feelstream.run.files import appear_whole
from feelstream.scenario import Scenario
from feelstream.scenario.files import from_dict
from feelstream.version import __version__

BUSY_SECONDS = 20.0
SHORT = 50_000  # rows of devices × rounds up to which a run without learning is over in moments
Work = tuple[dict[str, Any], int, str | None, dict[str, Any]]  # scenario, seed, directory, what it must be made with


@dataclass(frozen=True)
class Answer:
    """What a worker found or made, or the problem with it in a sentence."""

    problem: str | None = None
    disk_full: bool = False
    files: dict[str, bytes] | None = None  # of a run that was played elsewhere than in the results
    identity: dict[str, Any] | None = None  # all that decides the numbers of a scenario's runs, but settings and seed
    parameters: int | None = None  # with the identity: of the model, where one is trained
    cost: Cost | None = None  # with the identity: of a round of the model, where the scenario asks for it

    @classmethod
    def of(cls, problem: BaseException) -> Answer:
        return cls(explain(problem), is_disk_full(problem))


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


def identify(scenario: dict[str, Any]) -> Answer:
    """What this worker would play the scenario with, or the problem.

    A stored run is used again only if nothing of it has changed: the version of feelstream and of the run format, the
    engine with its instruction set or library version, the data, and the contents of every file the scenario names (a
    policy of the user's own, a recorded trace of arrivals).
    """
    try:
        settings = from_dict(scenario)
        dataset = dataset_of(settings)
        learner = learning.make(settings.learning, learning.blank(dataset), threads=1)
        code.check(settings)
        once = {"once": token_hex()} if code.without_file(settings) else {}  # no other plan has its runs
        return Answer(
            identity={
                "feelstream": __version__,
                "format": FORMAT,
                "engine": {"name": learner.name if learner else "none", **(learner.details if learner else {})},
                "data": dataset.digest,
                "files": code.named_files(settings),
            }
            | once,
            parameters=learner.parameters if learner else None,
            cost=cost.of(settings.learning, dataset) if settings.autos else None,
        )
    except KeyboardInterrupt:  # this may be the runner's own process
        raise
    except BaseException as problem:
        return Answer.of(problem)


def is_short(scenario: Scenario) -> bool:
    """No learning, no device table, and few rounds: the run is over before a checkpoint would be taken."""
    schedule_only = scenario.learning.engine == "none" and scenario.trace.level == "rounds"
    return schedule_only and scenario.system.devices * scenario.system.rounds <= SHORT


def play_all(work: Sequence[Work]) -> list[Answer]:
    """Play one run, or a batch of short ones; an answer for each.

    Short ones are forced to disk at the same time, which takes hardly longer than one, and none is played meanwhile.
    """
    played = [play(*run) for run in work]
    with ThreadPoolExecutor(len(work), "storing") as storing:
        return list(storing.map(_store, played, [directory for _, _, directory, _ in work]))


def play(scenario: dict[str, Any], seed: int, directory: str | None, promised: dict[str, Any]) -> Answer:
    """Play one run in `directory`; elsewhere, or if it is short, answer with its files. A problem is an answer too.

    Exceptions are turned into text here, since those of a user's own policy may not survive the way back. So are those
    that would end the process: a policy that calls sys.exit, a library that panics.
    """
    try:
        settings = from_dict(scenario)
        if is_short(settings):
            return Answer(files=simulate(settings, seed, threads=1, promised=promised).files())
        if directory is not None:
            _play_in(directory, settings, seed, promised)
            return Answer()
        with tempfile.TemporaryDirectory(prefix="feelstream-") as elsewhere:
            simulate_in(elsewhere, settings, seed, threads=1, promised=promised)
            tables = sorted(Path(elsewhere).glob("[!.]*"))
            return Answer(files={file.name: file.read_bytes() for file in tables})
    except BaseException as problem:
        return Answer.of(problem)


def _store(played: Answer, directory: str | None) -> Answer:
    """Write the files of a run that was played in memory, and move them into place together."""
    if played.files is None or directory is None:
        return played
    try:
        appear_whole(Path(directory), played.files)
        return Answer()
    except BaseException as problem:
        return Answer.of(problem)


def _play_in(directory: str, settings: Scenario, seed: int, promised: dict[str, Any]) -> None:
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
