"""A real Dask cluster on this machine: a scheduler and two workers, one of which is killed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from patience import PATIENCE_S
from small_plans import in_process, tables, two_arms

import feelstream
from feelstream.errors import RunError
from feelstream.experiment import Progress, dask_executor, execute

distributed = pytest.importorskip("distributed")
# Dask's own clean-up warns about its sockets and loops; ours is checked everywhere else.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@contextmanager
def process(folder: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A module run in a directory of its own, where it knows nothing of the results."""
    environment = os.environ | {"PYTHONPATH": str(Path(feelstream.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", *command], env=environment, cwd=folder, text=True, stderr=subprocess.PIPE
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def told(started: subprocess.Popen[str], what: str) -> str:
    """The rest of the line in which a process of Dask says something."""
    assert started.stderr is not None
    for line in started.stderr:
        if what in line:
            return line.partition(what)[2].strip()
    raise AssertionError(f"{started.args} ended without a word of {what}")


@contextmanager
def scheduler(folder: Path) -> Iterator[str]:
    """The address of a scheduler that nobody works for yet."""
    arguments = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    with process(folder / "scheduler", "distributed.cli.dask_scheduler", *arguments) as started:
        yield told(started, "Scheduler at:")


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[str]]]]:
    with ExitStack() as stack:
        address = stack.enter_context(scheduler(folder))
        arguments = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
        workers = [
            stack.enter_context(process(folder / f"worker{n}", "distributed.cli.dask_worker", address, *arguments))
            for n in range(2)
        ]
        for worker in workers:
            told(worker, "Registered to:")
        yield address, workers


@pytest.mark.nightly
def test_a_cluster_that_loses_a_worker_gives_the_same_files(tmp_path: Path) -> None:
    plan = two_arms(range(6), "system.rounds=80")
    with cluster(tmp_path) as (address, workers), dask_executor(address) as executor:

        def kill_one(state: Progress) -> None:
            if state.runs_done == 3:
                workers[0].kill()

        results = execute(plan, tmp_path / "dask", executor=executor, progress=kill_one)
        assert workers[0].wait(PATIENCE_S) != 0
        assert workers[1].poll() is None
    assert results.failures == []
    in_process(plan, tmp_path / "here")
    assert tables(tmp_path / "dask") == tables(tmp_path / "here")


def test_no_scheduler_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unused_port() -> int:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port: int = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        return port

    monkeypatch.setattr("feelstream.experiment.pool.DASK_SECONDS", 0.5)
    address = f"tcp://127.0.0.1:{asyncio.run(unused_port())}"
    with pytest.raises(RunError, match=f"there is no Dask scheduler at {address}"), dask_executor(address):
        pass


def test_a_scheduler_without_workers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feelstream.experiment.pool.DASK_SECONDS", 300)  # the machine may be busy
    monkeypatch.setattr("feelstream.experiment.pool.DASK_WORKER_SECONDS", 0.1)
    with scheduler(tmp_path) as address:
        told_so = f"the Dask scheduler at {address} has had no worker for 0.1 s; start some with dask worker {address}"
        with pytest.raises(RunError, match=told_so), dask_executor(address):
            pass
