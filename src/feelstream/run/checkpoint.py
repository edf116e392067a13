"""Checkpoints: what a run under way keeps in its directory, so that it survives being killed.

`progress/` holds the rows so far in numbered parts, the player's state, and checkpoint.json, which names the files that
count with their SHA-256. Rows are written first, then the state, then checkpoint.json: a kill in between leaves files
that do not count and are written again. A file that counts and is not what was written is refused before it is parsed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Nested, flatten, unflatten
from feelstream.errors import RunError
from feelstream.loop.round import RoundRecord
from feelstream.run.files import (
    DAMAGE,
    SEAL,
    as_sentence,
    check_digest,
    read_arrays,
    read_json,
    read_table,
    write_arrays,
    write_atomically,
    write_sealed,
)
from feelstream.run.trace import Tables, joined
from feelstream.scenario import Scenario

CHECKPOINT_SECONDS = 1.0
CHECKPOINT_SHARE = 0.1  # of the time, at most: a million devices take a while to write


class Player(Protocol):
    """What plays a run round by round, and can stop and go on: a simulation, or a federation of real devices."""

    scenario: Scenario
    round: int  # the last one played; 0 before the first
    timings: dict[str, float]  # seconds spent, by phase

    @property
    def model(self) -> NDArray[np.float32] | None:
        """The model as it is now; empty where nothing is learned, None where it is kept elsewhere."""

    def step(self) -> RoundRecord:
        """Play the next round."""
        ...

    def snapshot(self) -> Nested:
        """All that `restore` needs to go on exactly here: `round`, and more."""
        ...

    def restore(self, state: Nested) -> None: ...


class Checkpoint:
    """The progress of one run, which is known by the digest of all that decides its outcome."""

    def __init__(self, directory: Path, run: str, every_s: float | None = None) -> None:
        """every_s: time between checkpoints; by default a second, or more where writing one takes long."""
        self.directory, self.run, self.every_s = directory, run, every_s
        self.next_s = perf_counter() + (CHECKPOINT_SECONDS if every_s is None else every_s)
        self.file = directory / "checkpoint.json"
        self.parts = 0
        self.digests: dict[str, str] = {}  # of the files that count, by name

    def restore(self, player: Player) -> None:
        """Put the player where the checkpoint was taken; at the start, if there is none."""
        if not self.file.exists():
            return
        with self._with_remedy():
            self._take_up()
            for name, digest in self.digests.items():
                check_digest(self.directory / name, digest)
            saved = unflatten(read_arrays(self._state))
        try:
            player.restore(saved)
        except DAMAGE as problem:
            raise RunError(f"{self._state} is damaged; {self._remedy}") from problem

    def energy_sum_j(self) -> float:
        """Σ of `energy_mean_j` over the rows so far, added up in the order of the rounds."""
        parts = [self._read("rounds", number)["energy_mean_j"] for number in range(self.parts)]
        return float(np.cumsum(np.concatenate(parts))[-1]) if parts else 0.0

    def stored(self) -> Tables:
        """The rows so far of a run that another process may be playing."""
        if not self.file.exists():
            raise RunError(f"{self.directory.parent} holds a run of which no round is stored yet")
        self._take_up()
        return self.tables()

    def _take_up(self) -> None:
        stored = read_json(self.file)
        if not isinstance(stored, dict) or not {SEAL, "run", "parts", "digests"} <= stored.keys():
            raise RunError(f"{self.file} is damaged: it does not describe a checkpoint")
        if stored["run"] != self.run:
            raise RunError(f"{self.file} is the checkpoint of another run")
        self.parts, self.digests = stored["parts"], stored["digests"]

    def save(self, tables: Tables, player: Player) -> None:
        """Add the rows since the last checkpoint, and the player as it is now."""
        begun = perf_counter()
        self.add(tables, player.snapshot())
        took_s = perf_counter() - begun
        pause_s = max(CHECKPOINT_SECONDS, took_s / CHECKPOINT_SHARE) if self.every_s is None else self.every_s
        self.next_s = begun + took_s + pause_s

    def add(self, tables: Tables, state: Nested) -> None:
        """The same, of a player in this state."""
        for table, rows in tables._asdict().items():
            if rows is not None:
                part = self._part(table, self.parts)
                self.digests[part.name] = write_atomically(part, rows.write_parquet)
        before = self._state
        self.digests.pop(before.name, None)
        self.parts += 1
        self.digests[self._state.name] = write_arrays(self._state, flatten(state))
        about = {"run": self.run, "round": int(state["round"]), "parts": self.parts, "digests": self.digests}
        write_sealed(self.file, about)
        with as_sentence(before):
            before.unlink(missing_ok=True)

    def tables(self) -> Tables:
        """All rows of the parts that count."""
        with self._with_remedy():
            numbers = range(self.parts)
            return joined([Tables(*(self._read(table, number) for table in Tables._fields)) for number in numbers])

    def _read(self, table: str, number: int) -> Any:
        part = self._part(table, number)
        if part.name not in self.digests:
            return None
        check_digest(part, self.digests[part.name])
        return read_table(part)

    def _part(self, table: str, number: int) -> Path:
        return self.directory / f"{table}-{number:06d}.parquet"

    @property
    def _state(self) -> Path:
        """The player's state after the parts so far."""
        return self.directory / f"state-{self.parts:06d}.npz"

    @contextmanager
    def _with_remedy(self) -> Iterator[None]:
        try:
            yield
        except RunError as problem:
            raise RunError(f"{problem}; {self._remedy}") from problem

    @property
    def _remedy(self) -> str:
        return f"remove {self.directory} to start the run again"


def rounds_so_far(directory: Path) -> int:
    """Rounds that the run under way in this directory has stored; 0 where that is not known."""
    try:
        return read_json(directory / "progress" / "checkpoint.json")["round"]
    except RunError:  # there is none yet, or no longer
        return 0
