"""The processes that play: our own pool, which survives the death of a worker, or an executor of the user's.

What is handed to a worker is a batch of jobs: one run that takes long, or many that take moments.
"""

from __future__ import annotations

import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from types import ModuleType
from typing import Any

from feelstream.errors import sentence
from feelstream.experiment import worker
from feelstream.experiment.worker import Answer

DEATHS_PER_RUN = 3  # alone in the pool, so that nobody else can be to blame
FRUITLESS_POOLS = 10  # in a row, without one finished run
WHY_DEAD = "out of memory?"
LISTEN_SECONDS = 0.2  # an untimed wait is deaf to Ctrl-C once Polars runs its threads


@dataclass(frozen=True)
class Job:
    """One run to play, and where it will be stored."""

    scenario: dict[str, Any]
    seed: int
    directory: Path
    promised: dict[str, Any] = field(default_factory=dict)  # files and data that it must be made with


Batch = tuple[Job, ...]
Done = Callable[[Job, Answer], None]


def play_on(executor: Executor, batches: Iterable[Batch], done: Done) -> None:
    """Play on an executor of the user's, which may be on other machines: the files come back with the answer."""
    futures: dict[Future[list[Answer]], Batch] = {}
    try:
        for batch in batches:
            work = [(job.scenario, job.seed, None, job.promised) for job in batch]
            futures[executor.submit(worker.play_all, work)] = batch
        while futures:
            finished, _ = wait(futures, timeout=LISTEN_SECONDS, return_when=FIRST_COMPLETED)
            for future in finished:
                batch = futures.pop(future)
                for job, answer in zip(batch, _answers(future, len(batch)), strict=True):
                    done(job, answer)
    finally:
        for future in futures:
            future.cancel()


def _answers(future: Future[list[Answer]], jobs: int) -> list[Answer]:
    try:
        return future.result()
    except Exception as problem:  # of the executor itself: a lost worker, a broken pool
        return [Answer(f"the executor could not run it: {sentence(problem)}")] * jobs


def play_here(
    workers: int,
    batches: Iterable[Batch],
    done: Done,
    *,
    begun: Callable[[Job], object] = lambda _: None,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Play in processes of this machine, one batch each at a time.

    begun: called for each job that is handed to a worker, again if its worker died. meanwhile: every now and then.

    When a worker is killed, Python gives up the whole pool and does not say which run was to blame. So we make a new
    pool and make the runs that were under way one at a time; a run whose worker dies three times while alone fails.
    """
    waiting, suspects = deque(batches), deque[Job]()
    deaths: Counter[Path] = Counter()
    fruitless = 0
    pool = WorkerPool(workers)
    try:
        while waiting or suspects:
            alone = bool(suspects)
            source = deque([(suspects.popleft(),)]) if alone else waiting
            answered, lost = pool.play(source, done, begun, meanwhile)
            if alone:
                suspects.extend(job for batch in source for job in batch)  # not begun: a worker had died while idle
            if not pool.broken:
                continue
            pool.renew()
            fruitless = 0 if answered else fruitless + 1
            for job in lost:
                deaths[job.directory] += alone
                if deaths[job.directory] < DEATHS_PER_RUN:
                    suspects.append(job)
                else:
                    done(job, Answer(f"its worker process was killed again and again ({WHY_DEAD})"))
            if fruitless == FRUITLESS_POOLS:
                for job in (*suspects, *(job for batch in waiting for job in batch)):
                    done(job, Answer(f"not run, since worker processes keep dying ({WHY_DEAD})"))
                return
    finally:
        pool.stop()


class _Process(SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 (multiprocessing's name)
        """Start without the user's main module, so that a script needs no guard.

        A spawned process imports the main module of its parent, and a script that calls `fs.compare` would call it
        again in every worker. Ours need nothing of it: they are handed plain values and import what these name.
        """
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            with _without_interrupts():
                return SpawnProcess._Popen(process_obj)  # pyright: ignore[reportAttributeAccessIssue]
        finally:
            sys.modules["__main__"] = main


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """A process that starts here blocks SIGINT until `worker.start` ignores it: Ctrl-C is for the whole group, and
    Python's own start would answer it with a traceback. For this process it only waits.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _OwnMain(SpawnContext):
    """Not fork: Polars and other libraries run threads, which a fork copies in whatever state they are."""

    Process = _Process


class WorkerPool:
    """A process pool and the lifeline that ends its workers at once: by `stop`, or by the death of this process."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.context = _OwnMain()
        self._start()

    def _start(self) -> None:
        self.broken = False
        self.lifeline: Connection
        theirs, self.lifeline = self.context.Pipe(duplex=False)
        self.pool = ProcessPoolExecutor(self.workers, self.context, initializer=worker.start, initargs=(theirs,))

    def play(
        self, batches: deque[Batch], done: Done, begun: Callable[[Job], object], meanwhile: Callable[[], None]
    ) -> tuple[int, list[Job]]:
        """Take batches until none is left or the pool breaks; how many jobs were answered, and those that were lost.

        No more batches are handed out than there are workers, so that only runs under way can be lost.
        """
        running: dict[Future[list[Answer]], Batch] = {}
        answered, lost = 0, list[Job]()
        while True:
            while batches and not self.broken and len(running) < self.workers:
                work = [(job.scenario, job.seed, str(job.directory), job.promised) for job in batches[0]]
                try:
                    future = self.pool.submit(worker.play_all, work)
                except BrokenExecutor:
                    self.broken = True
                    break
                running[future] = batches.popleft()
                for job in running[future]:
                    begun(job)
            if not running:
                return answered, lost
            finished, _ = wait(running, timeout=LISTEN_SECONDS, return_when=FIRST_COMPLETED)
            if not finished:
                meanwhile()
            for future in finished:
                batch = running.pop(future)
                try:
                    answers = future.result()
                except BrokenExecutor:
                    self.broken = True
                    lost += batch
                    continue
                answered += len(batch)
                for job, answer in zip(batch, answers, strict=True):
                    done(job, answer)

    def stop(self) -> None:
        self.lifeline.close()
        self.pool.shutdown(wait=True, cancel_futures=True)

    def renew(self) -> None:
        self.stop()
        self._start()
