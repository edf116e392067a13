"""One process that starts and ends all processes of a small federation: `python -m feelstream.flower.hosting`.

It takes commands as JSON lines on its standard input and answers each on its standard output. When the input ends, for
whatever reason its parent is gone, it ends every process that came of it and then itself; being their subreaper, it
also finds those that detached themselves. SuperNodes are forked from it, and so is what they start for each message:
Flower is imported once, and a message costs a fork instead of a new interpreter.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

LONGEST_SLEEP_S = 0.25  # in Flower's loops, which look for messages every 3 s otherwise
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GRACE_S = 3.0


class Host:
    """The processes by name, and how those ended that did."""

    def __init__(self) -> None:
        self.pids: dict[str, int] = {}
        self.ended: dict[int, int] = {}

    def handle(self, command: dict[str, Any]) -> dict[str, Any]:
        name = command.get("name", "")
        if command["do"] == "warm":
            _warm(command.get("scenario"))
        elif command["do"] == "start":
            with Path(command["log"]).open("ab") as log:
                started = subprocess.Popen(
                    command["command"], stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=command["cwd"],
                    start_new_session=True,
                )  # fmt: skip
            self.pids[name] = started.pid
            started.returncode = 0  # it is waited for here, not there
        elif command["do"] == "node":
            self.pids[name] = _fork_node(command["arguments"], command["address"], Path(command["log"]))
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


def _warm(scenario: str | None) -> None:
    """Import what forked processes need, and load the data set they share."""
    from flwr.supercore.superexec import run_superexec
    from flwr.supernode import main, start_client_internal
    from flwr.supernode.cli import flower_supernode
    from flwr.supernode.runtime import run_clientapp

    from feelstream.flower import replay

    del flower_supernode, run_clientapp, main
    start_client_internal.time = run_superexec.time = _ShortSleeps()  # type: ignore[assignment]
    if scenario is not None:
        replay.prepare(scenario)


class _ShortSleeps:
    """The module `time`, except that nobody sleeps for long."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    @staticmethod
    def sleep(seconds: float) -> None:
        time.sleep(min(seconds, LONGEST_SLEEP_S))


def _fork_node(arguments: list[str], address: str, log: Path) -> int:
    """A SuperNode, with what starts its ClientApps beside it; a session of its own, so that both can be killed."""
    pid = os.fork()
    if pid:
        return pid
    _begin_child(log)
    os.setsid()
    node = os.getpid()
    if os.fork():
        from flwr.supernode.cli.flower_supernode import flower_supernode

        sys.argv = ["flower-supernode", *arguments]
        _run_and_exit(flower_supernode)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    from flwr.supercore.superexec import run_superexec

    run_superexec.get_executor = lambda *_, **__: _ForkExecutor()  # type: ignore[assignment]
    _run_and_exit(lambda: run_superexec.run_superexec(address, insecure=True, parent_pid=node))
    raise AssertionError


def _begin_child(log: Path) -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def _run_and_exit(function: Any) -> NoReturn:
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
        from flwr.supercore.superexec.executor.types import LaunchResult

        if not os.fork():
            from flwr.supernode.runtime.run_clientapp import run_clientapp

            _run_and_exit(
                lambda: run_clientapp(
                    spec.runtime_api_address, spec.token, insecure=True, parent_pid=spec.parent_pid,
                    runtime_dependency_install=False,
                )
            )  # fmt: skip
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


def _prctl(option: int, value: int) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main()
