"""A disk that fails at any write, and errors without a text: a sentence, and nothing is lost."""

from __future__ import annotations

import os
import random
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders import small
from small_plans import in_process

from feelstream.experiment import Arm, Plan
from feelstream.run import files
from feelstream.run.files import write_atomically

ROOT = Path(__file__).parents[2]
TRIALS = 40  # `make soak ATTACKS=io` goes through all of some two thousand


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)
def test_a_call_that_fails_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack `io` in short: a preloaded library fails calls by which a run, a plan and a report change files."""
    monkeypatch.syspath_prepend(str(ROOT))
    from soak.io import Io

    attack = Io(tmp_path / "io", random.Random(0))
    for _ in range(TRIALS):
        attack.try_once()
    attack.close()
    assert attack.lost == []
    assert attack.refused > TRIALS // 2  # the errors did happen, and each was one sentence
    assert min(attack.calls.values()) > 20  # and they were counted in every kind of work


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs to know what a handle is of")
def test_the_directory_is_forced_to_disk_after_the_new_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def fsync(handle: int) -> None:
        done.append("directory" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")

    def replace(source: Path, target: Path) -> None:
        done.append("name")
        os.replace(source, target)

    monkeypatch.setattr(files, "os", SimpleNamespace(**vars(os) | {"fsync": fsync, "replace": replace}))
    write_atomically(tmp_path / "file", lambda path: path.write_text("x"))
    assert done == ["file", "name", "directory"]


MUTE = """
import feelstream as fs

class Mute(fs.Policy):
    def select(self, state, observation, rng):
        raise {error}

class OursError(fs.FeelstreamError):
    def __str__(self):
        raise ValueError("no text")

class MuteError(Exception):
    __str__ = OursError.__str__
"""


@pytest.mark.parametrize("error", ["MuteError", "OursError"])
def test_an_error_without_a_text_of_its_own_is_a_sentence_too(error: str, tmp_path: Path) -> None:
    """In a plan, where a worker asks of every error whether the disk is full."""
    (tmp_path / "mute.py").write_text(MUTE.format(error=error))
    scenario = small("system.rounds=2", f"policy.name={tmp_path / 'mute.py'}:Mute")
    (failure,) = in_process(Plan("mute", (Arm("one", scenario),), (0,)), tmp_path / "out").failures
    assert error in failure.reason
