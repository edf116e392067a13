"""Dask clusters as executors: one of this machine, or any scheduler that can be reached."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from feelstream.errors import RunError, needed, sentence
from feelstream.learning import cores

CONNECT_SECONDS = 10
WORKER_SECONDS = 30


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
        client = distributed.Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TypeError) as problem:
        raise RunError(f"there is no Dask scheduler at {address}: {sentence(problem)}") from problem
    with client:
        try:
            client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError as problem:
            raise RunError(
                f"the Dask scheduler at {address} has had no worker for {WORKER_SECONDS} s; start some with "
                f"dask worker {address}"
            ) from problem
        yield client.get_executor()
