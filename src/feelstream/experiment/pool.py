"""The processes that play: our own, which survive the death of one of them, a Dask cluster, or any other executor."""

from __future__ import annotations

import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from types import ModuleType
from typing import Any

from feelstream.errors import RunError, needed, sentence
from feelstream.experiment import worker
from feelstream.experiment.plan import Job
from feelstream.experiment.worker import Answer
from feelstream.learning import cores

DEATHS_PER_RUN = 3  # while nothing else is played, so that nobody else can be to blame
FRUITLESS = 10  # deaths in a row, without one finished run
WHY_DEAD = "out of memory?"
DASK_SECONDS, DASK_WORKER_SECONDS = 10, 30  # to reach a scheduler, and for its first worker to come
LISTEN_SECONDS = 0.2  # an untimed wait is deaf to Ctrl-C once Polars runs its threads


Done = Callable[[Job, Answer], None]


def play_on(executor: Executor, waiting: Iterable[Job], done: Done) -> None:
    """Play on an executor of the user's, which may be on other machines: the files come back with the answer."""
    futures: dict[Future[Answer], Job] = {}
    try:
        for job in waiting:
            futures[executor.submit(worker.play, *job.work(here=False))] = job
        while futures:
            finished, _ = wait(futures, timeout=LISTEN_SECONDS, return_when=FIRST_COMPLETED)
            for future in finished:
                job = futures.pop(future)
                try:
                    answer = future.result()
                except Exception as problem:  # of the executor itself: a lost worker, a broken pool
                    answer = Answer(f"the executor could not run it: {sentence(problem)}")
                done(job, answer)
    finally:
        for future in futures:
            future.cancel()


def play_here(
    workers: int,
    jobs: Iterable[Job],
    done: Done,
    *,
    begun: Callable[[Job], object] = lambda _: None,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Play in processes of this machine, one run each at a time.

    begun: called for each job that is handed to a worker, again if its worker died. meanwhile: every now and then.

    The runs of a worker that was killed may be to blame for it, or whatever else filled the memory. So they are
    repeated at the end, each while nothing else is played; a run whose worker dies three times then fails.
    """
    waiting, suspects, deaths, fruitless = deque(jobs), deque[Job](), Counter[Path](), 0
    players = [Worker() for _ in range(workers)]
    idle = list(players)
    running: dict[Future[Answer], tuple[Worker, Job, bool]] = {}
    try:
        while waiting or suspects or running:
            while idle and (waiting or (suspects and not running)):
                alone = not waiting
                job, player = (suspects if alone else waiting).popleft(), idle.pop()
                running[player.play(job)] = player, job, alone
                begun(job)
            finished, _ = wait(running, timeout=LISTEN_SECONDS, return_when=FIRST_COMPLETED)
            if not finished:
                meanwhile()
            for future in finished:
                player, job, alone = running.pop(future)
                idle.append(player)
                try:
                    answer, fruitless = future.result(), 0
                except BrokenExecutor:
                    player.renew()
                    fruitless += 1
                    deaths[job.directory] += alone
                    if deaths[job.directory] < DEATHS_PER_RUN:
                        suspects.append(job)
                        continue
                    answer = Answer(f"its worker process was killed again and again ({WHY_DEAD})")
                done(job, answer)
            if fruitless >= FRUITLESS:
                for job in (*suspects, *waiting):
                    done(job, Answer(f"not run, since worker processes keep dying ({WHY_DEAD})"))
                waiting.clear()
                suspects.clear()
    finally:
        for player in players:
            player.lifeline.close()
        for player in players:
            player.stop()


@contextmanager
def dask_executor(address: str | None, workers: int | None = None) -> Iterator[Executor | None]:
    """The executor of a Dask cluster: `tcp://host:port` of its scheduler, or `local` for one made here; None for none.

    Only runs and their files travel: the workers need feelstream (and any module that holds a policy of your own)
    installed, and no shared file system.
    """
    if address is None:
        yield None
        return
    distributed = needed("distributed", "dask", "Dask")
    if address == "local":
        cluster = distributed.LocalCluster(n_workers=workers or cores(), threads_per_worker=1, dashboard_address=None)
        with cluster, distributed.Client(cluster) as client:
            yield client.get_executor()
        return
    try:
        client = distributed.Client(address, timeout=DASK_SECONDS)
    except (OSError, ValueError, TypeError) as problem:
        raise RunError(f"there is no Dask scheduler at {address}: {sentence(problem)}") from problem
    with client:
        try:
            client.wait_for_workers(1, timeout=DASK_WORKER_SECONDS)
        except TimeoutError as problem:
            raise RunError(
                f"the Dask scheduler at {address} has had no worker for {DASK_WORKER_SECONDS} s; start some with "
                f"dask worker {address}"
            ) from problem
        yield client.get_executor()


class Worker:
    """A process, and the lifeline that ends it at once: by `stop`, or by the death of this process."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        context = _OwnMain()
        self.lifeline: Connection
        theirs, self.lifeline = context.Pipe(duplex=False)
        self.pool: Executor = ProcessPoolExecutor(1, context, initializer=worker.start, initargs=(theirs,))

    def play(self, job: Job) -> Future[Answer]:
        try:
            return self.pool.submit(worker.play, *job.work(here=True))
        except BrokenExecutor:  # it was killed while it was idle
            self.renew()
            return self.pool.submit(worker.play, *job.work(here=True))

    def stop(self) -> None:
        self.lifeline.close()
        self.pool.shutdown(wait=True, cancel_futures=True)

    def renew(self) -> None:
        self.stop()
        self.start()


class _Process(SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 (multiprocessing's name)
        """Start without the user's main module, so that a script needs no guard.

        A spawned process imports the main module of its parent, and a script that calls `fs.compare` would call it
        again in every worker. Ours need nothing of it: they are handed plain values and import what these name.
        """
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        # Ctrl-C is for the whole group: the process blocks it until `worker.start` ignores it, since Python's own start
        # would answer it with a traceback. For this process it only waits.
        mask = getattr(signal, "pthread_sigmask", lambda how, signals: signals)
        before = mask(getattr(signal, "SIG_BLOCK", 0), {signal.SIGINT})
        try:
            return SpawnProcess._Popen(process_obj)  # pyright: ignore[reportAttributeAccessIssue]
        finally:
            mask(getattr(signal, "SIG_SETMASK", 0), before)
            sys.modules["__main__"] = main


class _OwnMain(SpawnContext):
    """Not fork: Polars and other libraries run threads, which a fork copies in whatever state they are."""

    Process = _Process
