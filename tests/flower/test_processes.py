"""Whatever becomes of `feelstream flower run`, no process stays behind, and the same command goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from uuid import uuid4

import pytest

import feelstream as fs
from feelstream.flower.loopback import rounds_done

pytestmark = pytest.mark.slow
CHANGES = [
    "system.devices=2", "system.rounds=4", "policy.size=1", "learning.engine=none", "data.samples=200",
    "cpu.frequency_hz=[1e9, 1.5e9]",
]  # fmt: skip
MARK = "FEELSTREAM_TEST_MARK"  # in the environment of everything that comes of the command
PATIENCE_S = 300


def until(condition: Callable[[], bool], started: subprocess.Popen[bytes] | None = None) -> None:
    pause = Event()
    for _ in range(PATIENCE_S * 20):
        if condition():
            return
        assert started is None or started.poll() is None, (started.communicate()[1] or b"").decode()
        pause.wait(0.05)
    pytest.fail("it takes too long")


@pytest.fixture
def mark() -> Iterator[str]:
    mark = uuid4().hex
    yield mark
    for pid in alive(mark):
        os.kill(pid, signal.SIGKILL)


def alive(mark: str) -> list[int]:
    """The processes with the mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def superlink(mark: str) -> int:
    """Its process, not that of what it has started."""
    for pid in alive(mark):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if any(word.endswith(b"flower-superlink") for word in words):
            return pid
    raise AssertionError("there is no SuperLink")


def command(out: Path, mark: str) -> subprocess.Popen[bytes]:
    changes = [word for change in CHANGES for word in ("--set", change)]
    code = "import sys; from feelstream.cli import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", code, "flower", "run", "tiny", "--out", str(out), *changes],
        env={**os.environ, MARK: mark}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux's /proc")
def test_killed_anywhere_it_leaves_no_process_and_goes_on(tmp_path: Path, mark: str) -> None:
    out = tmp_path / "run"
    for rounds, number in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGINT), start=1):
        running = command(out, mark)
        until(lambda rounds=rounds: rounds_done(out) >= rounds, running)
        running.send_signal(number)
        running.communicate()
        assert running.returncode != 0
        until(lambda: not alive(mark))
    running = command(out, mark)
    until(lambda: rounds_done(out) == 3 and (out / "logs" / "superlink.log").exists() and len(alive(mark)) > 6, running)
    os.kill(superlink(mark), signal.SIGKILL)
    said = running.communicate()[1].decode()
    if running.returncode:  # unless it was quicker than we
        assert running.returncode == 2
        assert "the federation stopped before the run was complete" in " ".join(said.split())
        assert "Traceback" not in said
    until(lambda: not alive(mark))
    running = command(out, mark)
    assert running.communicate()[1] is not None
    assert running.returncode == 0
    assert not alive(mark)
    run = fs.read(out)
    assert run.devices is not None
    simulated = fs.simulate(run.scenario, 0).devices
    assert simulated is not None
    for column in ("scheduled", "transmitted", "stored", "fresh"):
        assert run.devices[column].to_list() == simulated[column].to_list()
    assert fs.verify(out).ok
    assert (out / "logs" / "node-0.log").read_text()
