"""Checkpoints: what a run under way keeps in its directory, so that it survives being killed.

`progress/` holds the rows so far in numbered parts, and checkpoint.npz, which holds the player's state and says
how many parts count. Rows are written first, then the checkpoint: a kill between the two leaves rows that do not
count and are written again.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from feelstream.errors import RunError
from feelstream.run.files import read_table, write_atomically
from feelstream.run.player import Player
from feelstream.run.trace import Tables

DAMAGE = (OSError, ValueError, KeyError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error)


class Checkpoint:
    """The progress of one run."""

    def __init__(self, directory: Path, full: bool) -> None:
        self.directory, self.full, self.parts = directory, full, 0

    def _part(self, table: str, number: int) -> Path:
        return self.directory / f"{table}-{number:06d}.parquet"

    def restore(self, player: Player) -> None:
        """Put the player where the checkpoint was taken; at the start, if there is none."""
        path = self.directory / "checkpoint.npz"
        if not path.exists():
            return
        try:
            state = _load(path)
            self.parts = int(state.pop("parts"))
            player.restore(state)
        except DAMAGE as problem:
            raise RunError(f"{path} is damaged; {self._remedy}") from problem
        for table in ("rounds", "devices") if self.full else ("rounds",):
            for part in (self._part(table, number) for number in range(self.parts)):
                if not part.is_file():
                    raise RunError(f"{part} is missing; {self._remedy}")

    def save(self, tables: Tables, player: Player) -> None:
        rounds, devices = tables
        write_atomically(self._part("rounds", self.parts), rounds.write_parquet)
        if devices is not None:
            write_atomically(self._part("devices", self.parts), devices.write_parquet)
        self.parts += 1
        state = player.snapshot() | {"parts": np.array(self.parts)}

        def write(path: Path) -> None:
            with path.open("wb") as file:
                np.savez(file, allow_pickle=False, **state)

        write_atomically(self.directory / "checkpoint.npz", write)

    def tables(self) -> Tables:
        """All rows of the parts that count."""

        def read_all(table: str) -> pl.DataFrame:
            paths = [self._part(table, number) for number in range(self.parts)]
            try:
                return pl.concat([read_table(path) for path in paths], rechunk=True)
            except RunError as problem:
                raise RunError(f"{problem}; {self._remedy}") from problem

        return read_all("rounds"), read_all("devices") if self.full else None

    @property
    def _remedy(self) -> str:
        return f"remove {self.directory} to play the run from its start"


def _load(path: Path) -> dict[str, NDArray]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        return dict(stored)
