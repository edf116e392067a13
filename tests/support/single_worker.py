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

from feelstream.experiment import pool

play_in_processes = pool.play_here


class InThread(pool.Worker):
    """A worker that is a thread of this process."""

    def start(self) -> None:
        super().start()
        self.pool = ThreadPoolExecutor(1, "worker")


def play_here(workers: int, *args: Any, **options: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if workers == 1:
            patch.setattr(pool, "Worker", InThread)
        play_in_processes(workers, *args, **options)


@pytest.fixture(scope="session", autouse=True)
def single_worker() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("feelstream.experiment.runner.cores", lambda: 1)
        patch.setattr("feelstream.experiment.runner.play_here", play_here)
        yield


@pytest.fixture
def worker_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real processes, however few."""
    monkeypatch.setattr("feelstream.experiment.runner.play_here", play_in_processes)
