"""The attack `io` in short: a preloaded library fails the calls by which a run, a plan and a report change files."""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRIALS = 40  # `make soak ATTACKS=io` goes through all of some two thousand

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not sys.platform.startswith("linux") or shutil.which("cc") is None, reason="needs Linux and a C compiler"
    ),
]


def test_a_call_that_fails_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from soak.io import Io

    attack = Io(tmp_path / "io", random.Random(0))
    for _ in range(TRIALS):
        attack.try_once()
    attack.close()
    assert attack.lost == []
    assert attack.refused > TRIALS // 2  # the errors did happen, and each was one sentence
    assert min(attack.calls.values()) > 20  # and they were counted in every kind of work
