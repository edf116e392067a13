"""The commands of docs/deployment.md, as they stand there; only the ports are other ones, since these may be taken."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

from feelstream.flower.loopback import free_port

pytestmark = pytest.mark.slow
pytest.importorskip("torch", reason="the example app needs PyTorch: install feelstream[torch]")
ROOT = Path(__file__).parents[2]
PORT = re.compile(r"(?<=127\.0\.0\.1:)\d{4}|(?<=--port )\d{4}")


def block(holding: str) -> list[str]:
    """The lines of the one block of commands that holds this text."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8"), re.S)
    (found,) = [lines for lines in blocks if holding in lines]
    ports = {port: str(free_port()) for port in sorted(set(PORT.findall(found)))}
    return PORT.sub(lambda port: ports[port[0]], found).splitlines()


class Terminal:
    """A directory with the examples in it, a home, and commands that are run one after the other."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.running = directory, list[subprocess.Popen[bytes]]()
        shutil.copytree(ROOT / "examples", directory / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.environment = {**os.environ, "HOME": str(directory), "PATH": path, "OMP_NUM_THREADS": "1"}
        self.environment.pop("FLWR_HOME", None)

    def run(self, lines: list[str]) -> str:
        """All lines; what the last one said."""
        said = ""
        for line in lines:
            if line.startswith("export "):
                self.environment |= dict(pair.split("=", 1) for pair in line.split()[1:])
            elif line.endswith(" &"):
                self._start(line.removesuffix(" &"))
            else:
                done = subprocess.run(
                    ["bash", "-c", line],
                    cwd=self.directory,
                    env=self.environment,
                    capture_output=True,
                    text=True,
                    timeout=400,
                    check=False,
                )
                said = done.stdout + done.stderr
                assert done.returncode == 0, f"{line}\n{said}"
        return said

    def _start(self, line: str) -> None:
        log = (self.directory / f"{len(self.running)}.log").open("wb")
        with log:
            self.running.append(
                subprocess.Popen(
                    ["bash", "-c", f"exec {line}"],
                    cwd=self.directory,
                    env=self.environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )
        port = re.search(r"--port (\d+)", line)
        assert port is not None
        while "superlink --" in line and not _listens(int(port[1])):
            assert self.running[-1].poll() is None, (self.directory / "0.log").read_text()
            Event().wait(0.1)

    def close(self) -> None:
        for process in reversed(self.running):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.running:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


@pytest.mark.skipif(not (shutil.which("openssl") and shutil.which("ssh-keygen")), reason="needs openssl and ssh-keygen")
def test_tls_and_authentication(terminal: Terminal) -> None:
    said = terminal.run(block("--enable-supernode-auth"))
    assert re.search(r"round 2: \{'loss': [\d.]+, 'accuracy': [\d.]+\}", said)
    assert said.count("aggregate_train: Received 2 results and 0 failures") == 2
