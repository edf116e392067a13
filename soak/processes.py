"""Real processes that are killed or interrupted at any time, and go on to the same bytes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic

import feelstream as fs
from feelstream.run import simulate_in
from soak.attack import Attack, Lost, in_turn

SETTINGS = ["learning.engine=none", "system.rounds=1500"]
SOURCE = str(Path(fs.__file__ or "").parents[1])
OURS = str(Path(SOURCE) / "feelstream")


class Processes(Attack):
    """Start `feelstream run` or `compare`, stop it some time later, and again, until it comes to its end."""

    def prepare(self) -> None:
        self.scenario = fs.preset("tiny", SETTINGS)
        begin = monotonic()
        self.right = simulate_in(self.place / "alone", self.scenario, 0).manifest.digests
        self.alone_s = monotonic() - begin

    def start(self, directory: Path) -> subprocess.Popen[bytes]:
        words = [word for setting in SETTINGS for word in ("--set", setting)]
        several = self.draw.random() < 0.3
        command = ["compare", "--seeds", "1", "--workers", "1"] if several else ["run"]
        where = directory / command[0]
        arguments = [sys.executable, "-m", "feelstream", command[0], "tiny", *command[1:], *words, "--out", str(where)]
        environment = {**os.environ, "PYTHONPATH": SOURCE}
        return subprocess.Popen(
            arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, start_new_session=True
        )

    def send(self, process: subprocess.Popen[bytes], number: int) -> None:
        process.send_signal(number)

    def stopped(self, directory: Path, number: int) -> tuple[int, str, float]:
        """The exit code, what was said, and how long the end took; begun anew until the signal comes in time."""
        while True:
            process = self.start(directory)
            try:
                process.communicate(timeout=self.draw.uniform(0.1, 2 + self.alone_s))
            except subprocess.TimeoutExpired:
                break
            shutil.rmtree(directory)
            directory.mkdir()
        self.send(process, number)
        begin = monotonic()
        try:
            process.wait(timeout=in_turn(120))  # its own end; what it left behind may hold the pipe
            seconds = monotonic() - begin
            _, said = process.communicate(timeout=in_turn(120))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Lost(f"no end after {signal.Signals(number).name}") from None
        return process.returncode, said.decode(errors="replace"), seconds

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
        self.what = "SIGKILL"
        self.stopped(directory, signal.SIGKILL)
        self.check(directory)
        return self.what


class Signals(Processes):
    name = "signals"

    def trial(self, directory: Path) -> str:
        number = self.draw.choice([signal.SIGINT, signal.SIGTERM])
        self.what = signal.Signals(number).name
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

    def send(self, process: subprocess.Popen[bytes], number: int) -> None:
        os.killpg(process.pid, number)
