"""Callbacks: what a run tells as it goes, to whatever keeps or shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from feelstream.loop.round import RoundRecord
from feelstream.run.files import read_table
from feelstream.run.trace import round_row
from feelstream.scenario import Scenario

if TYPE_CHECKING:
    from feelstream.run.run import Run

Row = Mapping[str, float | int | None]


class Callback:
    """Base of all callbacks: override what you need.

    >>> class Print(Callback):
    ...     def on_round(self, row):
    ...         print(row["round"], row["transmitted"])
    >>> from feelstream import simulate
    >>> _ = simulate("tiny", rounds=2, engine="none", callbacks=[Print()])
    1 2
    2 2
    """

    def on_start(self, scenario: Scenario, seed: int) -> None:
        """Before the first round, and again when a stopped run goes on."""

    def on_round(self, row: Row) -> None:
        """After each round that is computed now: a row of rounds.parquet, with its names and units.

        None where a value was not measured in this round (accuracy and loss, between tests).
        """

    def on_model(self, round: int, theta: NDArray[np.float32]) -> None:
        """After each round of a simulation that learns: the model that is tested, float32 (d,), read-only, as
        `feelstream.learning.models` lays it out; before on_round.
        """

    def on_end(self, run: Run) -> None:
        """After the last round."""


class Telling:
    """Callbacks as the `progress` and `resumed` of a run."""

    def __init__(self, callbacks: Sequence[Callback], progress: Callable[[RoundRecord], None] | None) -> None:
        self.callbacks, self._progress = tuple(callbacks), progress
        self._energy_sum_j = 0.0

    def start(self, scenario: Scenario, seed: int) -> None:
        for callback in self.callbacks:
            callback.on_start(scenario, seed)

    def resumed(self, directory: Path, round: int) -> None:
        """Take up the running mean of the energy from the rows so far."""
        for part in sorted((directory / "progress").glob("rounds-*.parquet")):
            rows = read_table(part)
            self._energy_sum_j += float(rows.filter(rows["round"] <= round)["energy_mean_j"].sum())

    def progress(self, record: RoundRecord) -> None:
        if self._progress:
            self._progress(record)
        if not self.callbacks:
            return
        row = round_row(record)
        self._energy_sum_j += row["energy_mean_j"] or 0.0
        row["energy_mean_cum_j"] = self._energy_sum_j / record.observation.round
        for callback in self.callbacks:
            if record.theta is not None:
                callback.on_model(record.observation.round, record.theta)
            callback.on_round(row)

    def end(self, run: Run) -> None:
        for callback in self.callbacks:
            callback.on_end(run)
