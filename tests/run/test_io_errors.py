"""A disk that fails at any write, and directories that hold what no run leaves: a sentence, and nothing is lost."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from builders import small
from small_plans import in_process

from feelstream.errors import RunError, explain
from feelstream.experiment import Arm, Plan
from feelstream.run import files, simulate_in
from feelstream.run.files import write_atomically


class FailingDisk:
    """Stands for `os` in run/files.py: the n-th call of those that reach the disk fails."""

    def __init__(self, nth: int) -> None:
        self.left = nth

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _fails(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def fsync(self, handle: int) -> None:
        self._fails()
        os.fsync(handle)

    def replace(self, source: Path, target: Path) -> None:
        self._fails()
        os.replace(source, target)


def _tables(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*.parquet"))}


@pytest.mark.slow
def test_an_error_at_any_write_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As SQLite is tried: fail the first time that the disk is asked, then the second, until the run gets through."""
    scenario = small("system.rounds=3")
    simulate_in(tmp_path / "whole", scenario, 1)
    wanted, failed = _tables(tmp_path / "whole"), 0
    for nth in range(1, 1000):
        directory = tmp_path / str(nth)
        monkeypatch.setattr(files, "os", disk := FailingDisk(nth))
        try:
            simulate_in(directory, scenario, 1, checkpoint_s=0)
        except RunError as problem:
            assert "Input/output error" in str(problem)  # noqa: PT017
            failed += 1
        monkeypatch.setattr(files, "os", os)
        simulate_in(directory, scenario, 1)
        assert _tables(directory) == wanted
        assert not list(directory.rglob("*.tmp"))
        if disk.left > 0:
            break
    else:
        pytest.fail("the run never got through")
    assert failed > 20


def test_the_directory_is_forced_to_disk_after_the_new_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Noting(FailingDisk):
        def fsync(self, handle: int) -> None:
            done.append("directory" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")
            os.fsync(handle)

        def replace(self, source: Path, target: Path) -> None:
            done.append("name")
            os.replace(source, target)

    monkeypatch.setattr(files, "os", Noting(0))
    write_atomically(tmp_path / "file", lambda path: path.write_text("x"))
    assert done == ["file", "name", "directory"] or not Path("/proc/self/fd").exists()


ERRORS = """
class MuteError(Exception):
    def __str__(self):
        raise ValueError("no text")

class Nameless(type):
    @property
    def __name__(cls):
        raise ValueError("no name")

class HostileError(Exception, metaclass=Nameless):
    def __str__(self):
        raise SystemExit

import feelstream as fs

class OursError(fs.FeelstreamError):
    def __str__(self):
        raise ValueError("no text")

class Mute(fs.Policy):
    def select(self, state, observation, rng):
        raise ERROR
"""


@pytest.mark.parametrize("error", ["MuteError", "HostileError", "OursError"])
def test_an_error_without_a_text_of_its_own_is_a_sentence_too(error: str, tmp_path: Path) -> None:
    """Alone, and in a plan, where a worker asks of every error whether the disk is full."""
    made: dict[str, Any] = {}
    exec(ERRORS, made)
    assert explain(made[error]()) == error
    (tmp_path / "mute.py").write_text(ERRORS.replace("ERROR", error))
    scenario = small("system.rounds=2", f"policy.name={tmp_path / 'mute.py'}:Mute")
    (failure,) = in_process(Plan("mute", (Arm("one", scenario),), (0,)), tmp_path / "out").failures
    assert error in failure.reason
