"""Whatever becomes of `feelstream flower run`, no process stays behind, and the same command goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from processes import MARK, alive, marked, until

import feelstream as fs
from feelstream.flower.federation import rounds_done

pytestmark = pytest.mark.nightly
CHANGES = [
    "system.devices=2", "system.rounds=4", "policy.size=1", "learning.engine=none", "data.samples=200",
    "cpu.frequency_hz=[1e9, 1.5e9]",
]  # fmt: skip


@pytest.fixture
def mark() -> Iterator[str]:
    with marked() as mark:
        yield mark


def running(program: str, mark: str) -> list[int]:
    """The processes of this name, as ps shows them."""
    found = []
    for pid in alive(mark):
        with suppress(FileNotFoundError, ProcessLookupError):
            if Path(f"/proc/{pid}/comm").read_text().strip() == program:
                found.append(pid)
    return found


def still(started: subprocess.Popen[bytes]) -> Callable[[], None]:
    """A check that it has not ended by itself."""

    def check() -> None:
        assert started.poll() is None, (started.communicate()[1] or b"").decode()

    return check


def command(out: Path, mark: str) -> subprocess.Popen[bytes]:
    changes = [word for change in CHANGES for word in ("--set", change)]
    return subprocess.Popen(
        [sys.executable, "-m", "feelstream", "flower", "run", "tiny", "--out", str(out), *changes],
        env={**os.environ, MARK: mark}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux's /proc")
def test_killed_anywhere_it_leaves_no_process_and_goes_on(tmp_path: Path, mark: str) -> None:
    out = tmp_path / "run"
    for rounds, number in enumerate((signal.SIGKILL, signal.SIGTERM), start=1):  # SIGINT does what SIGTERM does
        started = command(out, mark)
        until(lambda rounds=rounds: rounds_done(out) >= rounds, still(started))
        started.send_signal(number)
        started.communicate()
        assert started.returncode != 0
        until(lambda: not alive(mark))
    started = command(out, mark)
    until(lambda: bool(running("flwr-serverapp", mark)), still(started))
    os.kill(min(running("superlink", mark)), signal.SIGKILL)
    said = started.communicate()[1].decode()
    if started.returncode:  # unless it was quicker than we
        assert started.returncode == 2
        sentence = "the federation stopped before the run was complete: 'superlink' was ended by signal 9"
        assert sentence in " ".join(said.split())
        assert "Traceback" not in said
    until(lambda: not alive(mark))
    started = command(out, mark)
    assert started.communicate()[1] is not None
    assert started.returncode == 0
    assert not alive(mark)
    run = fs.read(out)
    assert run.devices is not None
    simulated = fs.simulate(run.scenario, 0).devices
    assert simulated is not None
    for column in ("scheduled", "transmitted", "stored", "fresh"):
        assert run.devices[column].to_list() == simulated[column].to_list()
    assert fs.verify(out).ok
    assert (out / "logs" / "node-0.log").read_text()
