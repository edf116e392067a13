"""Checkpoints: what a run under way keeps in its directory, so that it survives being killed.

`progress/` holds the rows so far in numbered parts, the player's state, and checkpoint.json, which names the files that
count with their SHA-256 (an empty text: this part of the table has no rows). Rows are written first, then the state,
then checkpoint.json: a kill in between leaves files that do not count and are written again. A file that counts and is
not what was written is refused before it is parsed.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from feelstream.arrays import Nested, flatten, unflatten
from feelstream.errors import RunError
from feelstream.loop.round import RoundRecord
from feelstream.run.files import SEAL, as_sentence, check_digest, read_json, read_table, write_atomically, write_sealed
from feelstream.run.trace import Tables, joined
from feelstream.scenario import Scenario

DAMAGE = (OSError, ValueError, KeyError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error)


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

    def snapshot(self) -> Nested:
        """All that `restore` needs to go on exactly here: `round`, and more."""

    def restore(self, state: Nested) -> None: ...


class Checkpoint:
    """The progress of one run, which is known by the digest of all that decides its outcome."""

    def __init__(self, directory: Path, run: str, full: bool) -> None:
        self.directory, self.run = directory, run
        self.parts: dict[str, list[str]] = {table: [] for table in (Tables._fields if full else ("rounds",))}
        self.file = directory / "checkpoint.json"

    def restore(self, player: Player) -> None:
        """Put the player where the checkpoint was taken; at the start, if there is none."""
        if not self.file.exists():
            return
        try:
            state = self._read()
            for table, digests in self.parts.items():
                for number, digest in enumerate(digests):
                    if digest:
                        check_digest(self._part(table, number), digest)
            saved = read_state(state)
        except RunError as problem:
            raise RunError(f"{problem}; {self._remedy}") from problem
        try:
            player.restore(saved)
        except DAMAGE as problem:
            raise RunError(f"{state} is damaged; {self._remedy}") from problem

    def stored(self) -> Tables:
        """The rows so far of a run that another process may be playing."""
        if not self.file.exists():
            raise RunError(f"{self.directory.parent} holds a run of which no round is stored yet")
        self.parts = self._described()["parts"]
        return self.tables()

    def _described(self) -> dict[str, Any]:
        stored = read_json(self.file)
        if not isinstance(stored, dict) or not {SEAL, "run", "parts", "state"} <= stored.keys():
            raise RunError(f"{self.file} is damaged: it does not describe a checkpoint")
        if stored["run"] != self.run or stored["parts"].keys() != self.parts.keys():
            raise RunError(f"{self.file} is the checkpoint of another run")
        return stored

    def _read(self) -> Path:
        """Learn which parts count; the file of the player's state."""
        stored = self._described()
        self.parts = stored["parts"]
        state = self._state()
        check_digest(state, stored["state"])
        return state

    def save(self, tables: Tables, player: Player) -> None:
        """Add the rows since the last checkpoint, and the player as it is now."""
        self.add(tables, player.snapshot(), player.round)

    def add(self, tables: Tables, state: Nested, round: int) -> None:
        number = self._count
        for table, digests in self.parts.items():
            rows = getattr(tables, table)
            part = self._part(table, number)
            digests.append("" if rows is None else write_atomically(part, rows.write_parquet))
        before = self._state(number)
        digest = write_state(self._state(), state)
        about: dict[str, Any] = {"run": self.run, "round": round, "state": digest, "parts": self.parts}
        write_sealed(self.file, about)
        with as_sentence(before):
            before.unlink(missing_ok=True)

    def tables(self) -> Tables:
        """All rows of the parts that count."""

        def read_all(table: str) -> list[pl.DataFrame | None]:
            parts: list[pl.DataFrame | None] = []
            try:
                for number, digest in enumerate(self.parts[table]):
                    if digest:
                        check_digest(self._part(table, number), digest)
                    parts.append(read_table(self._part(table, number)) if digest else None)
            except RunError as problem:
                raise RunError(f"{problem}; {self._remedy}") from problem
            return parts

        return joined([Tables(*part) for part in zip(*(read_all(table) for table in self.parts), strict=True)])

    @property
    def _count(self) -> int:
        return len(self.parts["rounds"])

    def _part(self, table: str, number: int) -> Path:
        return self.directory / f"{table}-{number:06d}.parquet"

    def _state(self, count: int | None = None) -> Path:
        return self.directory / f"state-{self._count if count is None else count:06d}.npz"

    @property
    def _remedy(self) -> str:
        return f"remove {self.directory} to start the run again"


def write_state(path: Path, state: Nested) -> str:
    """Nested dictionaries of arrays as one .npz file; its SHA-256."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **flatten(state))

    return write_atomically(path, write)


def read_state(path: Path) -> Nested:
    """What `write_state` wrote."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return unflatten(dict(stored))
    except DAMAGE as problem:
        raise RunError(f"{path} is damaged") from problem


def rounds_so_far(directory: Path) -> int:
    """Rounds that the run under way in this directory has stored; 0 where that is not known."""
    try:
        path = max((directory / "progress").glob("state-*.npz"), default=None)
        if path is None:
            return 0
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return int(stored["round"])
    except DAMAGE:  # it may be on the point of being replaced
        return 0
