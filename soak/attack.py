"""What all attacks share: a trial, and how its end is counted."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import traceback
import warnings
from pathlib import Path
from time import monotonic
from types import FrameType

from feelstream.errors import FeelstreamError
from soak.counts import Counts

SENTENCE = 2000  # characters; more than that nobody reads
PATIENCE_S = 300.0  # a trial that takes longer hangs


def in_turn(seconds: float) -> float:
    """What may take so long on a machine with nothing else to do, here, where other processes may have the turn."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Lost(Exception):  # noqa: N818
    """Something was silently wrong."""


class Attack:
    """Many trials of one kind. survived: it came out right; refused: one sentence; lost: anything else."""

    name = ""
    most = sys.maxsize  # trials that differ

    def __init__(self, place: Path, draw: random.Random) -> None:
        self.place, self.draw = place, draw
        self.tried = self.survived = self.refused = 0
        self.lost: list[str] = []
        self.spent_s = 0.0
        self.slowest_s: float | None = None  # that a signal took to end a process, where this attack measures it
        place.mkdir(parents=True)
        self.prepare()

    @property
    def counts(self) -> Counts:
        return Counts(self.name, self.tried, self.survived, self.refused, list(self.lost), self.slowest_s)

    def prepare(self) -> None:
        """Once, before the first trial."""

    def close(self) -> None:
        """Once, after the last trial."""

    def trial(self, directory: Path) -> str:
        """One trial in an empty directory; what was tried, for the report. FeelstreamError: refused; else: lost."""
        raise NotImplementedError

    def try_once(self) -> None:
        begin, directory = monotonic(), self.place / "trial"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        self.tried += 1
        self.what = ""
        before = signal.signal(signal.SIGALRM, _hangs)
        signal.setitimer(signal.ITIMER_REAL, in_turn(PATIENCE_S))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.trial(directory)
            self.survived += 1
        except FeelstreamError as problem:
            text = str(problem)
            if "\n" in text.strip() or len(text) > SENTENCE:
                self.lost.append(f"{self.what}: not a sentence: {text[:200]!r}")
            else:
                self.refused += 1
        except KeyboardInterrupt:
            self.tried -= 1  # it came to no end
            raise
        except BaseException as problem:
            frame = traceback.extract_tb(problem.__traceback__)[-1]
            where = f"{Path(frame.filename).name}:{frame.lineno}"
            self.lost.append(f"{self.what}: {type(problem).__name__}: {str(problem)[:300]} ({where})")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.spent_s += monotonic() - begin


def _hangs(number: int, frame: FrameType | None) -> None:
    raise Lost("no end")
