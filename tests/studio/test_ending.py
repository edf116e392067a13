"""The studio as a process of its own: its address answers when it is told, and a signal ends it cleanly."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from patience import PATIENCE_S

import feelstream

pytest.importorskip("nicegui", reason="the extra studio is not installed")
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_at_its_address_and_ends_without_a_word_on_standard_error(tmp_path: Path, number: int) -> None:
    # The first race is being prepared when the signal comes: a thread in compiled code, at which Python would abort.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    environment |= {"PYTHONPATH": str(Path(feelstream.__file__).parents[1]), "FEELSTREAM_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", "feelstream", "studio", "--no-open"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    ) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]+/", server.stdout.readline())
            assert found is not None
            with urllib.request.urlopen(found.group(), timeout=PATIENCE_S) as answer:
                assert answer.status == 200
            server.send_signal(number)
            told, complained = server.communicate(timeout=PATIENCE_S)
        finally:
            server.kill()
    assert (server.returncode, complained) == (0, "")
    assert told.endswith("The studio has ended.\n")
