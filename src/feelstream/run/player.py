"""What plays a run round by round, and can stop and go on: a simulation, or a federation of real devices."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Nested
from feelstream.scenario import Scenario
from feelstream.scheduling import RoundRecord


class Player(Protocol):
    """The contract that a run directory asks for."""

    scenario: Scenario
    round: int  # the last one played; 0 before the first
    timings: dict[str, float]  # seconds spent, by phase

    @property
    def model(self) -> NDArray[np.float32] | None:
        """The model as it is now; empty where nothing is learned, None where it is kept elsewhere."""
        ...

    def step(self) -> RoundRecord:
        """Play the next round."""
        ...

    def snapshot(self) -> Nested:
        """All that `restore` needs to go on exactly here: `round`, and more."""
        ...

    def restore(self, state: Nested) -> None: ...
