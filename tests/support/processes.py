"""Processes that a test has started, and whatever came of them: all carry a mark in their environment."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from uuid import uuid4

import pytest
from patience import PATIENCE_S

MARK = "FEELSTREAM_TEST_MARK"


@contextmanager
def marked() -> Iterator[str]:
    """A mark to put into the environment; who still has it at the end is killed."""
    mark = uuid4().hex
    try:
        yield mark
    finally:
        while left := alive(mark):  # a process may start another while it is killed
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            Event().wait(0.05)


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


def until(condition: Callable[[], bool], check: Callable[[], None] = lambda: None) -> None:
    """Wait for something that processes bring about; check: fails where it cannot come any more."""
    pause = Event()
    for _ in range(int(PATIENCE_S * 20)):
        if condition():
            return
        check()
        pause.wait(0.05)
    pytest.fail("it takes too long")
