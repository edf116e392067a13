"""What plays a run round by round, and can stop and go on: a simulation, or a federation of real devices."""

from __future__ import annotations

from typing import Protocol

from feelstream.arrays import Nested
from feelstream.scenario import Scenario
from feelstream.scheduling import RoundRecord


class Player(Protocol):
    """The contract that a run directory asks for."""

    scenario: Scenario
    round: int  # the last one played; 0 before the first
    timings: dict[str, float]  # seconds spent, by phase

    def step(self) -> RoundRecord:
        """Play the next round."""
        ...

    def snapshot(self) -> Nested:
        """All that `restore` needs to go on exactly here: `round`, and `theta` if there is a model here, and more."""
        ...

    def restore(self, state: Nested) -> None: ...
