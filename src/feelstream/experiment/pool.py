"""The processes that play: our own, which survive the death of one of them, a Dask cluster, or any other executor.

What is handed to a worker is a batch of jobs: one run that takes long, or several that take moments.
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

from feelstream.errors import RunError, needed, sentence
from feelstream.experiment import worker
from feelstream.experiment.worker import Answer
from feelstream.learning import cores
from feelstream.scenario import Scenario

DEATHS_PER_RUN = 3  # while nothing else is played, so that nobody else can be to blame
FRUITLESS = 10  # deaths in a row, without one finished run
WHY_DEAD = "out of memory?"
AT_MOST = 16  # runs in a batch: what a killed call may have to play again is less than this
DASK_SECONDS, DASK_WORKER_SECONDS = 10, 30  # to reach a scheduler, and for its first worker to come
LISTEN_SECONDS = 0.2  # an untimed wait is deaf to Ctrl-C once Polars runs its threads


@dataclass(frozen=True)
class Job:
    """One run to play, and where it will be stored."""

    scenario: Scenario
    table: dict[str, Any]  # the same as a worker receives it
    seed: int
    directory: Path
    made_with: dict[str, Any] = field(default_factory=dict)  # the identity of its scenario

    def work(self, here: bool) -> worker.Work:
        promised = {what: self.made_with[what] for what in ("files", "data") if what in self.made_with}
        return self.table, self.seed, str(self.directory) if here else None, promised


Batch = tuple[Job, ...]
Done = Callable[[Job, Answer], None]


def batches(jobs: Iterable[Job], workers: int) -> list[Batch]:
    """Long runs alone, the longest first: one that begins last would leave all other workers idle at the end.

    Short ones several together, small enough that every worker gets some, and by seed: runs of one world meet the same
    arrivals, the last of which a process keeps.
    """
    short, alone = list[Job](), list[Job]()
    for job in jobs:
        (short if worker.is_short(job.scenario) else alone).append(job)
    alone.sort(key=lambda job: -expense(job.scenario))
    short.sort(key=lambda job: job.seed)
    size = max(1, min(AT_MOST, len(short) // (4 * workers)))
    return [*((job,) for job in alone), *(tuple(short[at : at + size]) for at in range(0, len(short), size))]


def expense(scenario: Scenario) -> float:
    """How long a run takes, roughly: samples that pass through the model, or device-rounds where nothing is learned.

    A sample that is trained on takes about three times as long as one that is tested; a test has about 10,000. A policy
    that may plan fewer devices than its size may also plan all.
    """
    system, policy, learning = scenario.system, scenario.policy, scenario.learning
    decided = system.rounds * system.devices / 100
    if learning.engine == "none":
        return decided
    steps, batch = learning.local.shape or (20, 32)
    scheduled = policy.size if policy.smallest_plan == policy.size else system.devices
    trained = system.rounds * scheduled * steps * batch
    return decided + 3 * trained + 10_000 * system.rounds / learning.eval_every


def play_on(executor: Executor, waiting: Iterable[Batch], done: Done) -> None:
    """Play on an executor of the user's, which may be on other machines: the files come back with the answer."""
    futures: dict[Future[list[Answer]], Batch] = {}
    try:
        for batch in waiting:
            futures[executor.submit(worker.play_all, [job.work(here=False) for job in batch])] = batch
        while futures:
            finished, _ = wait(futures, timeout=LISTEN_SECONDS, return_when=FIRST_COMPLETED)
            for future in finished:
                batch = futures.pop(future)
                try:
                    answers = future.result()
                except Exception as problem:  # of the executor itself: a lost worker, a broken pool
                    answers = [Answer(f"the executor could not run it: {sentence(problem)}")] * len(batch)
                for job, answer in zip(batch, answers, strict=True):
                    done(job, answer)
    finally:
        for future in futures:
            future.cancel()


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

    The runs of a worker that was killed may be to blame for it, or whatever else filled the memory. So they are
    repeated at the end, each while nothing else is played; a run whose worker dies three times then fails.
    """
    waiting, suspects, deaths, fruitless = deque(batches), deque[Job](), Counter[Path](), 0
    players = [Worker() for _ in range(workers)]
    idle = list(players)
    running: dict[Future[list[Answer]], tuple[Worker, Batch, bool]] = {}
    try:
        while waiting or suspects or running:
            while idle and (waiting or (suspects and not running)):
                alone = not waiting
                batch = (suspects.popleft(),) if alone else waiting.popleft()
                player = idle.pop()
                running[player.play(batch)] = player, batch, alone
                for job in batch:
                    begun(job)
            finished, _ = wait(running, timeout=LISTEN_SECONDS, return_when=FIRST_COMPLETED)
            if not finished:
                meanwhile()
            for future in finished:
                player, batch, alone = running.pop(future)
                idle.append(player)
                try:
                    answers = future.result()
                except BrokenExecutor:
                    player.renew()
                    fruitless += 1
                    for job in batch:
                        deaths[job.directory] += alone
                        if deaths[job.directory] < DEATHS_PER_RUN:
                            suspects.append(job)
                        else:
                            done(job, Answer(f"its worker process was killed again and again ({WHY_DEAD})"))
                    continue
                fruitless = 0
                for job, answer in zip(batch, answers, strict=True):
                    done(job, answer)
            if fruitless >= FRUITLESS:
                for job in (*suspects, *(job for batch in waiting for job in batch)):
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

    def play(self, batch: Batch) -> Future[list[Answer]]:
        work = [job.work(here=True) for job in batch]
        try:
            return self.pool.submit(worker.play_all, work)
        except BrokenExecutor:  # it was killed while it was idle
            self.renew()
            return self.pool.submit(worker.play_all, work)

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
