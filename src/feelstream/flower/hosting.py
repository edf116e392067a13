"""One process that starts and ends all processes of a small federation: `python -m feelstream.flower.hosting`.

It takes commands as JSON lines on its standard input and answers each on its standard output. When the input ends, for
whatever reason its parent is gone, it ends every process that came of it and then itself; being their subreaper, it
also finds those that detached themselves. All of them are forked from it, and so is what they start for each message
and each run: Flower is imported once, and a process costs a fork instead of a new interpreter. That is not only
quicker. Flower starts a ServerApp again that is not there within 30 s, and on a busy machine, where imports may take
that long, again and again.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NoReturn

LONGEST_SLEEP_S = 0.25  # in Flower's loops, which look for messages every 3 s otherwise
PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 1, 15, 36
PROGRAMS = ("flower-superlink", "flower-supernode", "flwr-serverapp", "flwr-clientapp", "flwr")
GRACE_S = 3.0


class Host:
    """The processes by name, and how those ended that did."""

    def __init__(self) -> None:
        self.pids: dict[str, int] = {}
        self.ended: dict[int, int] = {}

    def handle(self, command: dict[str, Any]) -> dict[str, Any]:
        name = command.get("name", "")
        if command["do"] == "warm":
            _warm(command["scenario"])
        elif command["do"] == "start":
            _imports()
            self.pids[name] = _fork(
                name, command["program"], command["arguments"], Path(command["log"]), command.get("address")
            )
        elif command["do"] == "kill":
            with suppress(ProcessLookupError):
                os.killpg(self.pids[name], signal.SIGKILL)
        self._reap()
        pid = self.pids.get(name, 0)
        return {"pid": pid, "ended": self.ended.get(pid)}

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                self.ended[pid] = os.waitstatus_to_exitcode(status)

    def end_all(self) -> None:
        """Ask everyone to go, and kill who does not."""
        end = time.monotonic() + GRACE_S
        for pid in _descendants(os.getpid()):
            _signal(pid, signal.SIGTERM)
        while _descendants(os.getpid()) and time.monotonic() < end:
            self._reap()
            time.sleep(0.05)
        while left := _descendants(os.getpid()):  # a process may start another while it is killed
            for pid in left:
                _signal(pid, signal.SIGKILL)
            self._reap()
            time.sleep(0.02)


def main() -> None:
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    host = Host()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever is printed here must not look like an answer
    try:
        for line in sys.stdin:
            try:
                answer = host.handle(json.loads(line))
            except Exception as problem:
                answer = {"error": f"{type(problem).__name__}: {problem}"}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
    finally:
        host.end_all()


@cache
def _imports() -> None:
    """All that forked processes need; before they are forked, and before anything here has started a thread."""
    from flwr.supercore.superexec import run_superexec
    from flwr.supernode import main, start_client_internal

    from feelstream.flower import strategy

    for program in PROGRAMS:
        _entry(program)
    del main, strategy
    start_client_internal.time = run_superexec.time = _ShortSleeps()  # type: ignore[assignment]


def _warm(scenario: str) -> None:
    """Load the data set that the nodes share."""
    from feelstream.flower import replay

    replay.prepare(scenario)


class _ShortSleeps:
    """The module `time`, except that nobody sleeps for long."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    @staticmethod
    def sleep(seconds: float) -> None:
        time.sleep(min(seconds, LONGEST_SLEEP_S))


def _entry(program: str) -> Any:
    """What a command of Flower's calls."""
    found = entry_points(group="console_scripts", name=program)
    if not found:
        raise LookupError(f"'{program}' is not installed; install feelstream[flower]")
    return next(iter(found)).load()


def _fork(name: str, program: str, arguments: list[str], log: Path, address: str | None) -> int:
    """A command of Flower's as a process with a session of its own, so that it can be killed with all it starts.

    address: where it hands out apps to run; they are started beside it.
    """
    entry = _entry(program)
    pid = os.fork()
    if pid:
        return pid
    _begin_child(log)
    os.setsid()
    parent = os.getpid()
    if address is not None and not os.fork():
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        _run_apps(address, parent)
    return _call(name, entry, program, arguments)


def _run_apps(address: str, parent: int) -> NoReturn:
    """Flower's SuperExec, for the apps of one SuperLink or SuperNode."""
    from flwr.supercore.superexec import run_superexec

    host, port = address.rsplit(":", 1)
    while not listens(host, int(port)):  # it would wait for longer and longer
        time.sleep(0.05)
    run_superexec.get_executor = lambda *_, **__: _ForkExecutor()  # type: ignore[assignment]
    _run_and_exit("superexec", lambda: run_superexec.run_superexec(address, insecure=True, parent_pid=parent))


def listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def _begin_child(log: Path) -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def _call(name: str, entry: Any, program: str, arguments: list[str]) -> NoReturn:
    sys.argv = [program, *arguments]
    _run_and_exit(name, entry)


def _run_and_exit(name: str, function: Any) -> NoReturn:
    _prctl(PR_SET_NAME, name.encode()[:15])  # what ps and top show
    code = 0
    try:
        function()
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class _ForkExecutor:
    """Flower's executor of tasks, with a fork in place of a new interpreter."""

    def launch(self, spec: Any) -> Any:
        from flwr.supercore.constant import TASK_TYPE_TO_APPIO_API_ADDRESS_ARG, TASK_TYPE_TO_COMMAND
        from flwr.supercore.superexec.executor.types import LaunchResult

        program = TASK_TYPE_TO_COMMAND[spec.task_type]
        arguments = [
            TASK_TYPE_TO_APPIO_API_ADDRESS_ARG[spec.task_type], spec.runtime_api_address, "--token", spec.token,
            "--insecure", "--parent-pid", str(spec.parent_pid),
        ]  # fmt: skip
        if not os.fork():
            _call(program, _entry(program), program, arguments)
        return LaunchResult.accepted()

    def get_eligible_capacity(self, supported_task_types: Any, **_: Any) -> tuple[Any, set[str]]:
        return supported_task_types, set()

    def wait_for_capacity(self, *_: Any, **__: Any) -> None: ...

    def reconcile(self) -> None:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    def close(self) -> None: ...


def _descendants(root: int) -> list[int]:
    """All living processes that came of `root`, by /proc; zombies are waited for, not killed."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    children.setdefault(int(parent), []).append(int(entry.name))
    found, queue = [], [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _prctl(option: int, value: int | bytes) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
