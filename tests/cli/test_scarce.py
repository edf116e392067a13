"""No room on the disk, few file descriptors, little memory: a sentence and exit code 2, never a traceback."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import feelstream as fs

SOURCE = str(Path(fs.__file__ or "").parents[1])
SMALL = ["tiny", "--set", "learning.engine=none", "--set", "system.rounds=3"]
FULL = Path("/dev/full")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full, where every write finds the disk full"),
]


def feelstream(
    *arguments: str,
    cwd: Path,
    stdout: str = os.devnull,
    closed: bool = False,
    files: int | None = None,
    addresses: int | None = None,
) -> tuple[int, str]:
    """Exit code and standard error of a real process with limits on file descriptors and on bytes of address space."""

    def limited() -> None:
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        if addresses is not None:
            resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
        if closed:
            os.close(1)

    with open(stdout, "wb") as sink:
        done = subprocess.run(
            [sys.executable, "-m", "feelstream", *arguments],
            stdout=sink,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": SOURCE},
            preexec_fn=limited,
            check=False,
        )
    return done.returncode, done.stderr.decode(errors="replace")


@pytest.mark.parametrize("arguments", [["presets"], ["run", *SMALL, "--json"]], ids=["presets", "run"])
def test_a_full_disk_behind_standard_output(arguments: list[str], tmp_path: Path) -> None:
    code, said = feelstream(*arguments, cwd=tmp_path, stdout=str(FULL))
    assert code == 2
    assert said.strip().splitlines()[-1].startswith("feelstream: ")
    assert "No space left on device" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("command", [["run"], ["compare", "--seeds", "1", "--workers", "1"]], ids=["run", "compare"])
def test_a_full_device_as_the_place_for_results(command: list[str], tmp_path: Path) -> None:
    code, said = feelstream(command[0], *SMALL, *command[1:], "--out", str(FULL), cwd=tmp_path)
    assert code == 2
    assert str(FULL) in said
    assert "Traceback" not in said


@pytest.mark.parametrize("files", [20, pytest.param(8, marks=pytest.mark.nightly)])
def test_few_file_descriptors(files: int, tmp_path: Path) -> None:
    """Enough to begin with, not for a pool of workers: whatever comes of it is told, and a later try succeeds."""
    words = [*SMALL, "--policy", "random", "--seeds", "2", "--workers", "2", "--out", "out"]
    code, said = feelstream("compare", *words, cwd=tmp_path, files=files)
    assert code in (0, 1, 2)
    assert "Traceback" not in said, said
    if code:
        assert said.strip().splitlines()[-1].startswith("feelstream: "), said
        code, said = feelstream("compare", *words, "--workers", "1", cwd=tmp_path)  # another number, the same files
        assert code == 0, said


def test_a_closed_standard_output(tmp_path: Path) -> None:
    """Nobody reads what is printed; the run is done all the same."""
    code, said = feelstream("run", *SMALL, "--out", "out", cwd=tmp_path, closed=True)
    assert code == 0, said
    assert fs.verify(tmp_path / "out").ok


def test_a_directory_whose_name_is_no_text(tmp_path: Path) -> None:
    code, said = feelstream("run", *SMALL, "--out", os.fsdecode(b"bad\xff"), cwd=tmp_path)
    assert code == 2
    assert said.strip().endswith("its name must be UTF-8")
    assert not list(tmp_path.iterdir())


def test_too_little_memory(tmp_path: Path) -> None:
    """Half a gigabyte of address space is too little for the libraries, which would abort: a sentence instead."""
    code, said = feelstream("run", *SMALL, "--out", "out", cwd=tmp_path, addresses=512 * 2**20)
    assert code == 2
    assert said.startswith("feelstream: the limit on the address space (ulimit -v) is 512 MiB")
    assert said.count("\n") == 1
