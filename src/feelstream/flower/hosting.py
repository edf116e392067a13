"""One process that starts and ends all processes of a small federation: `python -m feelstream.flower.hosting`.

It takes commands as JSON lines on its standard input and answers each on its standard output. When the input ends, for
whatever reason its parent is gone, it ends all that it has started. Every process is forked from it, and so is what
those start for each message and each run: Flower is imported once, and a process costs a fork instead of a new
interpreter; otherwise each message would import all anew, and a SuperNode look for messages every 3 s only. So two
things of Flower's are replaced: how its executor of tasks starts a process, and the sleep between two looks. On Linux
every process also ends with the one that started it, even by SIGKILL.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
import traceback
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import Any, NoReturn

LONGEST_SLEEP_S = 0.25  # in Flower's loops
PROGRAMS = ("flower-superlink", "flower-supernode", "flower-superexec", "flwr-serverapp", "flwr-clientapp", "flwr")
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GRACE_S = 3.0


class Host:
    """The processes by name, and how those ended that did. Each leads a group, with all that it starts."""

    def __init__(self) -> None:
        self.pids: dict[str, int] = {}
        self.ended: dict[int, int] = {}

    def handle(self, do: str, name: str = "", **more: Any) -> dict[str, Any]:
        if do == "start":
            _programs()
            self.pids[name] = os.fork()
            if not self.pids[name]:
                _become(name, **more)
        elif do == "kill":
            os.killpg(self.pids[name], signal.SIGKILL)
        elif do == "warm":  # load the data set that all nodes share
            from feelstream.flower import replay

            replay.prepare(more["scenario"])
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                self.ended[found[0]] = os.waitstatus_to_exitcode(found[1])
        return {"ended": self.ended.get(self.pids.get(name, 0))}

    def end_all(self) -> None:
        """Ask everyone to go, and kill who does not."""
        end = time.monotonic() + GRACE_S
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in self.pids.values():
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, number)
            while len(self.ended) < len(self.pids) and time.monotonic() < end:
                self.handle("poll")
                time.sleep(0.05)


def main() -> None:
    os.setsid()
    for number in INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)
    host, answers = Host(), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever is printed here must not look like an answer
    try:
        for line in sys.stdin:
            try:
                answer = host.handle(**json.loads(line))
            except Exception as problem:
                answer = {"error": f"{type(problem).__name__}: {problem}"}
            print(json.dumps(answer), file=answers, flush=True)
    finally:
        host.end_all()


@cache
def _programs() -> dict[str, Any]:
    """What Flower's commands call, with all that forked processes need, before anything here has started a thread."""
    from flwr.supercore.superexec import run_superexec
    from flwr.supercore.superexec.executor import subprocess_executor
    from flwr.supernode import start_client_internal

    from feelstream.flower import strategy  # noqa: F401

    short = {**vars(time), "sleep": lambda seconds: time.sleep(min(seconds, LONGEST_SLEEP_S))}
    start_client_internal.time = run_superexec.time = SimpleNamespace(**short)  # type: ignore[assignment]
    subprocess_executor.subprocess = SimpleNamespace(Popen=_fork, DEVNULL=None)  # type: ignore[assignment]
    return {each.name: each.load() for each in entry_points(group="console_scripts") if each.name in PROGRAMS}


def _fork(command: list[str], **_: Any) -> None:
    """What Flower's executor of tasks takes for subprocess.Popen: a fork in place of a new interpreter."""
    if not os.fork():
        _run(command[0], *command)


def _become(name: str, command: list[str], log: str, port: int | None) -> NoReturn:
    """Run a command of Flower's. port: where it hands out apps to run; they are started beside it."""
    os.setsid()
    for number in INTERRUPTS:
        signal.signal(number, signal.SIG_DFL)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for number, opened in enumerate((os.open(os.devnull, os.O_RDONLY), file, file)):
        os.dup2(opened, number)
    parent = os.getpid()
    if port is not None and not os.fork():
        from feelstream.flower.federation import listens

        while not listens(port):  # it would wait for longer and longer
            time.sleep(0.05)
        address = "--runtime-api-address", f"127.0.0.1:{port}"
        _run("superexec", "flower-superexec", "--insecure", *address, "--parent-pid", str(parent))
    _run(name, *command)


def _run(name: str, *command: str) -> NoReturn:
    """Call a command in this process, which then ends."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG: ends with whoever started it
        ctypes.CDLL(None).prctl(15, name.encode()[:15], 0, 0, 0)  # PR_SET_NAME: what ps and top show
    # Whoever runs apps never asks for how they ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN if name == "superexec" else signal.SIG_DFL)
    sys.argv, code = list(command), 1
    try:
        _programs()[command[0]]()
        code = 0
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
