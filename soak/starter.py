"""A process that has imported what commands need, and forks one in a moment: orders as lines of JSON.

    {"words": ["run", "tiny", …], "said": "file for what it says"} → its process id, which leads a session
    {"wait": 123} → its exit code, once it has ended

No Polars has run in this process, so that no thread of it is missing in a fork. Commands note their state often
(CHECKPOINT_S), so that a short one is killed between notes too.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CHECKPOINT_S = 0.05
NEEDED = (
    "cli.run", "cli.compare", "run.play", "experiment", "policies", "loop.simulation", "learning", "report", "studies",
)  # fmt: skip


class Starter:
    """The other end: orders are given here."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "soak.starter"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=Path(__file__).parents[1], start_new_session=True,
        )  # fmt: skip

    def told(self, **order: Any) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(order), file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def main() -> None:
    """Read orders until there are no more; a fork leaves this loop to be the command."""
    for name in NEEDED:
        importlib.import_module(f"feelstream.{name}")
    from feelstream.run import checkpoint
    from feelstream.start import main as command

    checkpoint.CHECKPOINT_SECONDS = CHECKPOINT_S
    while line := sys.stdin.readline():
        order = json.loads(line)
        if "wait" in order:
            _, status = os.waitpid(order["wait"], 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
        elif child := _forked(order["said"]):
            print(child, flush=True)
        else:
            sys.argv = ["feelstream", *order["words"]]
            sys.modules["__main__"] = importlib.import_module("feelstream.__main__")  # what workers look for
            command()
            return


def _forked(said: str) -> int:
    """Fork; the child, to which 0 is returned, leads a session before its parent goes on."""
    reading, writing = os.pipe()
    if child := os.fork():
        os.close(writing)
        os.read(reading, 1)
        os.close(reading)
        return child
    os.setsid()
    os.close(reading)
    for stream, file in ((0, os.devnull), (1, os.devnull), (2, said)):
        opened = os.open(file, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, stream)
        os.close(opened)
    os.close(writing)
    return 0


if __name__ == "__main__":
    main()
