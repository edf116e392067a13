"""Values that were recorded: a table of (round, device, value), read once a run and looked up by round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feelstream.arrays import Frozen, Ids, Reals
from feelstream.tables import MOST_ROUNDS, Column, TableFile


@dataclass(frozen=True)
class Recorded(Frozen):
    """All rows in order of rounds; those of one round keep the order of the file."""

    rounds: Ids
    devices: Ids
    values: Reals

    def of(self, round: int) -> tuple[Ids, Reals]:
        """The devices that have a row in this round, and their values."""
        rows = slice(*np.searchsorted(self.rounds, (round, round + 1)))
        return self.devices[rows], self.values[rows]


def values_by_round(field: str, path: str, value: Column, devices: int) -> Recorded:
    """The table of a .csv or .parquet file with the columns round, device and that of the value."""
    wanted = (
        Column("round", 1, MOST_ROUNDS, whole=True),
        Column("device", 0, devices - 1, whole=True),
        value,
    )
    round, device, values = TableFile(field, path).columns(wanted)
    order = np.argsort(round, kind="stable")
    return Recorded(round[order], device[order], values[order].astype(np.float64))
