"""Real processes that are killed or interrupted at any time, and go on to the same bytes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from time import monotonic, sleep

import psutil

import feelstream as fs
from feelstream.run import simulate_in
from soak.attack import Attack, Lost, in_turn
from soak.starter import Starter

SETTINGS = ["learning.engine=none", "system.rounds=300"]
WORDS = [word for setting in SETTINGS for word in ("--set", setting)]
COMMANDS = {"run": ["run", "tiny", *WORDS], "compare": ["compare", "tiny", "--seeds", "1", "--workers", "1", *WORDS]}
SOURCE = str(Path(fs.__file__ or "").parents[1])
OURS = str(Path(SOURCE) / "feelstream")
FROM_NOTHING = 0.2  # the share that begins with Python itself; the others are forked, which takes a tenth of the time
SEVERAL = 0.3  # the share of `compare`, which has a worker
PATIENCE_S = 120.0
WORKERS_EVERY = 10  # looks
LOOK_S = 0.02  # a signal comes at most so much later than it is meant to


class Command:
    """A command that was started, alone in its session."""

    def __init__(self, words: list[str], said: Path, starter: Starter | None) -> None:
        self.said = said
        self.wait: Callable[[], int]
        if starter is not None:
            self.pid = starter.told(words=words, said=str(said))
            self.wait = lambda: starter.told(wait=self.pid)
        else:
            with said.open("wb") as file:
                own = subprocess.Popen(
                    [sys.executable, "-m", "feelstream", *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=file, env={**os.environ, "PYTHONPATH": SOURCE}, start_new_session=True,
                )  # fmt: skip
            self.pid, self.wait = own.pid, own.wait
        self._leader, self._looks, self._known = psutil.Process(self.pid), 0, list[psutil.Process]()

    @property
    def ended(self) -> bool:
        return self._leader.status() == psutil.STATUS_ZOMBIE  # until `code` asks for it

    def used_s(self) -> float:
        """CPU time so far, with that of workers: unlike the clock it says how far a command has come."""
        self._looks += 1
        if self._looks % WORKERS_EVERY == 1:  # to look for them takes longer than all the rest
            self._known = [self._leader, *self._leader.children(recursive=True)]
        total = 0.0
        for process in self._known:
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system
        return total

    def code(self, patience_s: float) -> int | None:
        """The exit code, once nothing of the command is left; None, and it is killed, if that takes longer."""
        in_time = self._until_gone(lambda: self.ended, patience_s)
        code = self.wait()
        in_time &= self._until_gone(self._nobody_left, patience_s)  # its workers too
        return code if in_time else None

    def _until_gone(self, gone: Callable[[], bool], patience_s: float) -> bool:
        end = monotonic() + patience_s
        while not gone():
            if monotonic() > end:
                with suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
                return False
            sleep(LOOK_S)
        return True

    def _nobody_left(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return True
        return False


def _started(name: str, directory: Path, starter: Starter | None) -> Command:
    return Command([*COMMANDS[name], "--out", str(directory / name)], directory / "said", starter)


@cache
def _takes_s(name: str) -> float:
    """The CPU time of a forked command that nobody stops; of the beginning, until Python has imported everything."""
    with tempfile.TemporaryDirectory() as place, closing(Starter()) as starter:
        forked = name != "beginning"
        command, used_s = _started(name if forked else "run", Path(place), starter if forked else None), 0.0
        while not command.ended:
            used_s = max(used_s, command.used_s())
            sleep(LOOK_S)
        if command.code(PATIENCE_S) != 0:
            sys.exit(f"without any signal, feelstream {name} failed: {command.said.read_text(errors='replace')[-500:]}")
    return used_s if forked else max(used_s - _takes_s("run"), 0.0)


class Processes(Attack):
    """Start `feelstream run` or `compare`, stop it at some moment of its work, and let it come to its end."""

    def prepare(self) -> None:
        self.scenario = fs.preset("tiny", SETTINGS)
        self.right = simulate_in(self.place / "alone", self.scenario, 0).manifest.digests
        self.starter = Starter()

    def close(self) -> None:
        self.starter.close()

    def send(self, command: Command, number: int) -> None:
        os.kill(command.pid, number)

    def stopped(self, directory: Path, number: int) -> tuple[int, str, float]:
        """The exit code, what was said, and how long the end took; begun anew until the signal comes in time."""
        while True:
            name = "compare" if self.draw.random() < SEVERAL else "run"
            starter = None if self.draw.random() < FROM_NOTHING else self.starter
            moment_s = self.draw.uniform(0, _takes_s(name) + (0 if starter else _takes_s("beginning")))
            self.what = f"{signal.Signals(number).name} to {name} after {moment_s:.2f} s of CPU time"
            command = _started(name, directory, starter)
            while not (ended := command.ended) and command.used_s() < moment_s:
                sleep(LOOK_S)
            if not ended:
                break
            command.code(in_turn(PATIENCE_S))
            shutil.rmtree(directory)
            directory.mkdir()
        self.send(command, number)
        begin = monotonic()
        code = command.code(in_turn(PATIENCE_S))
        if code is None:
            raise Lost(f"no end after {signal.Signals(number).name}")
        return code, command.said.read_text(errors="replace"), monotonic() - begin

    def check(self, directory: Path) -> None:
        """Let what is there come to its end; the same bytes as without any signal."""
        runs = [path.parent for path in directory.rglob("run.json")]
        for run in runs:
            if simulate_in(run, self.scenario, 0).manifest.digests != self.right:
                raise Lost(f"{run.name}: other bytes")
            if left := [file.name for file in run.rglob("*.tmp")]:
                raise Lost(f"left behind: {left}")


class Kills(Processes):
    name = "kills"

    def trial(self, directory: Path) -> str:
        self.stopped(directory, signal.SIGKILL)
        self.check(directory)
        return self.what


class Signals(Processes):
    name = "signals"

    def trial(self, directory: Path) -> str:
        number = self.draw.choice([signal.SIGINT, signal.SIGTERM])
        code, said, seconds = self.stopped(directory, number)
        if code not in (0, 128 + number, -number, 1):
            raise Lost(f"exit code {code}: {said[-200:]}")
        if "Traceback" in said and OURS in said:  # while Python itself starts, nothing of ours can be asked
            raise Lost(f"a traceback: {said[-300:]}")
        self.slowest_s = max(self.slowest_s or 0.0, seconds)
        if seconds > in_turn(10):  # two, and some more for a disk that is slow
            raise Lost(f"the end took {seconds:.1f} s")
        self.check(directory)
        return self.what


class Groups(Signals):
    """As Ctrl-C in a terminal does: the command and all of its workers at once."""

    name = "groups"

    def send(self, command: Command, number: int) -> None:
        os.killpg(command.pid, number)
