"""What SIGINT and SIGTERM do to a command.

While modules are imported there is nothing to lose, so a signal simply ends the process (start.py). Afterwards it
interrupts the command, which tidies up and says how to go on; if that takes longer than PATIENCE_SECONDS (some library
does not listen), a watching thread ends the process. A run directory survives that, as it survives a kill.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType

PATIENCE_SECONDS = 1.5
SIGNALS = (signal.SIGINT, signal.SIGTERM)
SENTENCE = "interrupted; with --out the same command goes on where this one stopped"
received: list[int] = []  # the signals so far
temporary_files: set[Path] = set()  # that are being written, for whoever must end the process at once


def interrupt(watched: bool) -> None:
    """Let signals raise KeyboardInterrupt in the main thread; watched: and end the process if that does not help."""
    for each in SIGNALS:
        signal.signal(each, _interrupt)
    if watched:
        sys.unraisablehook = _ignored
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(reading,), name="signals", daemon=True).start()


def exit_with(code: int) -> None:
    """End as Python would, but with this exit code.

    If an interrupt came while text was executed, as when a module makes a dataclass, Python remembers that and ends by
    SIGINT, whatever exit code was asked for.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _ignored(problem: sys.UnraisableHookArgs) -> None:
    """An interrupt may come where Python cannot raise it, as in a weak reference's callback: the watcher ends us."""
    if not (received and problem.exc_type is KeyboardInterrupt):
        sys.__unraisablehook__(problem)


def _interrupt(number: int, frame: FrameType | None) -> None:
    received.append(number)
    raise KeyboardInterrupt


def _watch(reading: int) -> None:
    while (number := os.read(reading, 1)) and number[0] not in SIGNALS:
        pass
    threading.Event().wait(PATIENCE_SECONDS)
    for file in list(temporary_files):
        file.unlink(missing_ok=True)
    # In a thread of its own, since writing to a stopped terminal never returns.
    last_words = f"\nfeelstream: {SENTENCE}\n".encode()
    speaker = threading.Thread(target=os.write, args=(2, last_words), daemon=True)
    speaker.start()
    speaker.join(0.2)
    os._exit(128 + number[0])
