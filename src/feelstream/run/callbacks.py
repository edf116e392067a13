"""Callbacks: what a run tells as it goes, to whatever keeps or shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from feelstream.loop.round import RoundRecord
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

    def on_deployed(self, line: Mapping[str, Any], devices: Mapping[str, Sequence[Any] | NDArray]) -> None:
        """After each round of a deployment, before on_round. line: that of logs/rounds.jsonl; devices: of all that have
        a name, in the same order: `name`, `energy_j` of the round, `queue_j` after it, `reliability` before it.
        """

    def on_end(self, run: Run) -> None:
        """After the last round."""


def tell(callbacks: Sequence[Callback], record: RoundRecord, row: Row) -> None:
    """A round that was just played, and its row."""
    for callback in callbacks:
        if record.theta is not None:
            callback.on_model(record.observation.round, record.theta)
        callback.on_round(row)
