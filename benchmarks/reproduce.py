"""How long the paper's figures take: `reproduce` with N seeds on two workers, where the time goes, memory per worker.

python benchmarks/reproduce.py --seeds 10            # the paper's setting on MNIST
python benchmarks/reproduce.py --smoke               # seconds, synthetic data, no learning
"""

from __future__ import annotations

import argparse
import platform
import tempfile
import threading
from collections import Counter
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Self

import psutil

from feelstream.experiment import execute
from feelstream.learning import cores
from feelstream.run.files import read_json
from feelstream.studies import reporting
from feelstream_studies.hu2023 import paper as reproduce

GOAL_STUDY, GOAL_MEMORY_MB = 1.1, 250.0
SMOKE = ("system.rounds=5", "system.devices=8", "data.dataset=synthetic", "data.samples=400", "learning.engine=none")


class Memory:
    """The most memory that this process and any one of its workers held at once, MB, looked at four times a second.

    worker_mb: all that is resident in it, libraries that processes share counted in each. own_mb: what it alone holds,
    which is what one more worker takes of the machine; NaN where the system does not tell.

    The system's own count of a finished child begins with the memory of the process that it was forked from.
    """

    def __enter__(self) -> Self:
        self.here_mb = self.worker_mb = self.own_mb = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        here = psutil.Process()
        while not self._end.wait(0.25):
            self.here_mb = max(self.here_mb, here.memory_info().rss / 1e6)
            for worker in here.children(recursive=True):
                try:
                    self.worker_mb = max(self.worker_mb, worker.memory_info().rss / 1e6)
                    self.own_mb = max(self.own_mb, worker.memory_full_info().uss / 1e6)
                except psutil.NoSuchProcess:
                    continue
                except psutil.AccessDenied:
                    self.own_mb = float("nan")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--figure", default="all", choices=[*reproduce.FIGURES, "all"])
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--set", action="append", default=[], dest="overrides", metavar="SECTION.FIELD=VALUE")
    options.add_argument("--smoke", action="store_true", help="small, to see that it works")
    asked = options.parse_args()
    seeds, overrides = (2, SMOKE) if asked.smoke else (asked.seeds, tuple(asked.overrides))
    plan = reproduce.plan(asked.figure, range(seeds), overrides)

    print(f"{platform.machine()}, {cores()} cores, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory)
        start = perf_counter()
        with Memory() as memory:
            results = execute(plan, out, workers=asked.workers)
        played_s = perf_counter() - start
        start = perf_counter()
        written = reporting.write(results, out)
        report_s = perf_counter() - start
        size_mb = written.report.stat().st_size / 1e6
        phases: Counter[str] = Counter()
        engines = set()
        for key in results.finished:
            about = read_json(results.directories[key] / "run.json")
            engines.add(about["engine"]["name"])
            phases.update({name: value for name, value in about["timings"].items() if name.endswith("_s")})

    runs = len(results.finished)
    print(f"{asked.figure}: {runs} runs ({len(plan.arms)} arms × {seeds} seeds), engine {', '.join(sorted(engines))}")
    print(f"played in {played_s:.1f} s on {asked.workers} workers, {runs / played_s:.2f} runs/s")
    total = phases.pop("total_s")
    for name, seconds in phases.most_common():
        print(f"  {name.removesuffix('_s'):10} {seconds:8.1f} s  {seconds / total:6.1%} of the workers' time")
    rest = total - sum(phases.values())
    print(f"  {'files':10} {rest:8.1f} s  {rest / total:6.1%} of the workers' time")
    outside = asked.workers * played_s - total
    print(f"  {'outside':10} {outside:8.1f} s  starting, loading data, waiting")
    computed = sum(phases.values())
    print(f"the study took {asked.workers * played_s / computed:.2f} times its runs' compute (goal: ≤ {GOAL_STUDY:g})")
    print(f"figures, curves, claims and report in {report_s:.1f} s; report.html has {size_mb:.1f} MB")
    print(f"memory of the largest worker: {memory.worker_mb:.0f} MB (goal: < {GOAL_MEMORY_MB:.0f} MB)")
    print(f"memory here while they worked: {memory.here_mb:.0f} MB")
    for failure in results.failures:
        print(f"failed: {failure.arm}, seed {failure.seed}: {failure.reason}")


if __name__ == "__main__":
    main()
