"""Every block of commands of docs/deployment.md, as it stands there, by real processes, in an empty home.

One thing is changed: ports, which may be taken on this machine, are replaced by free ones.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import MARK, alive, marked, until

from feelstream.flower.federation import free_port

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux's /proc to end what was started"),
]
ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8"), re.DOTALL)
PORT = re.compile(r"(?<=127\.0\.0\.1:)\d{4}|(?<=--port )\d{4}|(?<='127\.0\.0\.1', )\d{4}")
LOOPBACK, SIMULATION, SUPERLINK, SECURE = "flower run tiny", "num-supernodes", "--insecure", "--enable-supernode-auth"
FIRST = "first_run.py"


def block(holding: str) -> str:
    """The one block that holds this text, on free ports."""
    (found,) = [lines for lines in BLOCKS if holding in lines]
    ports = {port: str(free_port()) for port in sorted(set(PORT.findall(found)))}
    return PORT.sub(lambda port: ports[port[0]], found)


class Terminal:
    """A directory with the examples in it, which is also the home, and a shell that gives up at the first failure."""

    def __init__(self, directory: Path, mark: str) -> None:
        self.directory, self.mark = directory, mark
        shutil.copytree(ROOT / "examples", directory / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        # Flower's local SuperLink and Ray are told nothing by the commands, so their ports and places come from here.
        ports = {f"FLWR_LOCAL_{name}_PORT": str(free_port()) for name in ("SUPERLINK_HTTP_API", "CONTROL_API")}
        quiet = {"RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}
        self.environment = {**os.environ, "HOME": str(directory), "PATH": path, MARK: mark, **ports, **quiet}
        self.environment.pop("FLWR_HOME", None)

    def paste(self, commands: str, again_after: str | None = None, tries: int = 4) -> str:
        """What the commands said, those in the background included; tried again if they failed saying `again_after`."""
        log = self.directory / "terminal.log"
        with log.open("wb") as file:
            shell = subprocess.Popen(
                ["bash", "-e", "-c", commands],
                cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                start_new_session=True,
            )  # fmt: skip
        until(lambda: shell.poll() is not None)
        said = log.read_text(errors="replace")
        if shell.returncode and tries > 1 and again_after is not None and again_after in said:
            return self.paste(commands, again_after, tries - 1)
        assert shell.returncode == 0, said[-6000:]
        return said


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with marked() as mark:
        yield Terminal(tmp_path, mark)


def check_rounds(said: str, rounds: int) -> None:
    """Nobody was lost in any, the first included."""
    assert re.search(rf"round {rounds}: \{{'loss': [\d.]+, 'accuracy': [\d.]+\}}", said)
    assert said.count("aggregate_train: Received 2 results and 0 failures") == rounds


def test_no_block_is_left_out() -> None:
    assert len(BLOCKS) == len([FIRST, LOOPBACK, SIMULATION, SUPERLINK, SECURE])


def test_first_run(terminal: Terminal) -> None:
    pytest.importorskip("torch", reason="the example app needs PyTorch: install feelstream[torch]")
    assert "lyapunov" in terminal.paste(block(FIRST))


def test_loopback(terminal: Terminal) -> None:
    terminal.paste(block(LOOPBACK))
    assert (terminal.directory / "runs" / "tiny" / "run.json").exists()
    assert not alive(terminal.mark)


def test_simulation(terminal: Terminal) -> None:
    pytest.importorskip("ray", reason="needs Ray: install flwr[simulation]")
    pytest.importorskip("torch", reason="the example app needs PyTorch: install feelstream[torch]")
    # Flower gives its local SuperLink 15 s to start, and the page tells the reader to try again.
    check_rounds(terminal.paste(block(SIMULATION), again_after="Failed to start local SuperLink within"), 2)


def test_superlink_and_supernodes(terminal: Terminal) -> None:
    pytest.importorskip("torch", reason="the example app needs PyTorch: install feelstream[torch]")
    said = terminal.paste(block(SUPERLINK))
    check_rounds(said, 2)
    stored = terminal.directory / ".flwr" / "runs" / "feelstream.flower-mnist" / "first"
    assert f"Run directory: {stored}" in said  # at the start
    assert f"feelstream verify {stored}" in said  # at the end
    until(lambda: not alive(terminal.mark))  # the block's last line ends everything


@pytest.mark.skipif(not (shutil.which("openssl") and shutil.which("ssh-keygen")), reason="needs openssl and ssh-keygen")
def test_tls_and_authentication(terminal: Terminal) -> None:
    pytest.importorskip("torch", reason="the example app needs PyTorch: install feelstream[torch]")
    check_rounds(terminal.paste(block(SECURE)), 1)
    until(lambda: not alive(terminal.mark))
