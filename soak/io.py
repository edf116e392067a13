"""A disk that fails at each call in turn, as SQLite is tried: a sentence, and nothing half is taken for whole."""

from __future__ import annotations

import errno
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from feelstream.errors import RunError
from soak.attack import Attack, Lost

SHIM = Path(__file__).with_name("failing_disk.c")
ONCE, FROM_THEN_ON, HALF = range(3)  # as in the shim
FAULTS = {
    "EIO once": (errno.EIO, ONCE),
    "ENOSPC from then on": (errno.ENOSPC, FROM_THEN_ON),
    "half a write, then ENOSPC": (errno.ENOSPC, HALF),
}
SPREAD = 37  # trials follow each other in these steps, so that few of them reach all works and places


class Io(Attack):
    """Every work × every call of it that changes files × every fault, in a fixed order, and each once."""

    name = "io"

    def prepare(self) -> None:
        compiler = shutil.which("cc")
        if not sys.platform.startswith("linux") or compiler is None:
            sys.exit("the attack `io` needs Linux and a C compiler: leave it out, or install one")
        library = self.place / "failing_disk.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SHIM, "-ldl"], check=True)
        works = self.place / "works"
        works.mkdir()
        self.child = subprocess.Popen(
            [sys.executable, "-m", "soak.disk", works], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"LD_PRELOAD": str(library)}, cwd=SHIM.parents[1], start_new_session=True,
        )  # fmt: skip
        from soak.disk import WORKS

        self.calls = {work: int(self._ordered(work, 0, 0, ONCE)["calls"]) for work in WORKS}
        self.trials = self._all()

    def _all(self) -> Iterator[tuple[str, int, str]]:
        every = [
            (work, nth, fault) for work, calls in self.calls.items() for nth in range(1, calls + 1) for fault in FAULTS
        ]
        self.most = len(every)
        step = next(step for step in itertools.count(SPREAD) if math.gcd(self.most, step) == 1)
        return (every[number * step % self.most] for number in range(self.most))

    def _ordered(self, work: str, nth: int, error: int, manner: int) -> dict[str, Any]:
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        print(
            json.dumps({"work": work, "nth": nth, "error": error, "manner": manner}), file=self.child.stdin, flush=True
        )
        line = self.child.stdout.readline()
        if not line:
            raise Lost(f"the process ended with {self.child.wait()}")
        return json.loads(line)

    def close(self) -> None:
        """End the process that does the works."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()

    def trial(self, directory: Path) -> str:
        work, nth, fault = next(self.trials)
        self.what = f"{work}, call {nth} of {self.calls[work]}, {fault}"
        answer = self._ordered(work, nth, *FAULTS[fault])
        if answer["wrong"]:
            raise Lost(answer["wrong"])
        if answer["end"] == "lost":
            raise Lost(answer["said"])
        if answer["end"] == "refused":
            raise RunError(answer["said"])
        return self.what
