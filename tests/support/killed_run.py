"""Play a run and be killed, again and again: `killed_run.py DIRECTORY KIND:AT,… [RECORDED_NPZ | odd]`.

KIND `file`: SIGKILL at the AT-th time a file is about to be forced to disk or moved into place; `time`: AT ms after
the start of the simulation; `never`. Each is a process of its own, forked from one that has imported everything and
done nothing yet: the imports take longer than the run. Printed: how each ended, 0 or minus the signal.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from odd_plugins import ODD

from feelstream.run import simulate_in
from feelstream.scenario.files import from_dict


def scenario(recorded: str = "") -> Any:
    """A drawn stream without learning, or the natural one in an .npz file of five owners with learning; or all odd."""
    overrides = ODD if recorded == "odd" else []
    recorded = "" if recorded == "odd" else recorded
    stream = {"dataset": "synthetic", "samples": 100, "arrivals": {"kind": "bursts", "rate": 3.0}}
    natural = {
        "dataset": recorded,
        "partition": {"kind": "natural"},
        "arrivals": {"kind": "recorded", "speed": "fit", "start": "spread"},
    }
    return from_dict(
        {
            "system": {"devices": 5, "rounds": 40},
            "data": (natural if recorded else stream) | {"buffer": {"kind": "reservoir", "capacity": 5}},
            "policy": {"name": "age", "size": 2},  # which has a memory
            "learning": {"engine": "native" if recorded else "none", "model": "har-cnn", "steps": 2, "batch": 4},
        },
        overrides,
    )


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at_call(at: int) -> None:
    left = [at]

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def before(*arguments: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                die()
            return call(*arguments)

        return before

    os.fsync, os.replace = counted(os.fsync), counted(os.replace)


if __name__ == "__main__":
    directory, fates, *recorded = sys.argv[1:]
    for fate in fates.split(","):
        if child := os.fork():
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            continue
        status = 1
        try:
            kind, at = fate.split(":")
            if kind == "file":
                die_at_call(int(at))
            elif kind == "time":
                threading.Timer(int(at) / 1000, die).start()
            simulate_in(directory, scenario(*recorded), seed=4, checkpoint_s=0)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)  # the timer may still be ticking
