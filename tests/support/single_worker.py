"""A pool of one worker plays in a thread of the test's own process, since a process takes more than a second of CPU
time to start; and unless a test asks for more, there is one worker.

What is handed to the worker, what it stores and what it answers are the same. Two and more are processes, as are all
where a test asks for `worker_processes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from feelstream.experiment.pool import WorkerPool

_start = WorkerPool._start


def _start_alone(pool: Any) -> None:
    if pool.workers > 1:
        _start(pool)
        return
    pool.broken = False
    _, pool.lifeline = pool.context.Pipe(duplex=False)
    pool.pool = ThreadPoolExecutor(1, "worker")


@pytest.fixture(scope="session", autouse=True)
def single_worker() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("feelstream.experiment.runner.cores", lambda: 1)
        patch.setattr(WorkerPool, "_start", _start_alone)
        yield


@pytest.fixture
def worker_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real processes, however few."""
    monkeypatch.setattr(WorkerPool, "_start", _start)
