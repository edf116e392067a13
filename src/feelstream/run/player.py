"""What plays a run round by round, and can stop and go on: a simulation, or a federation of real devices."""

from __future__ import annotations

from typing import Protocol

from numpy.typing import NDArray

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

    def snapshot(self) -> dict[str, NDArray]:
        """All that `restore` needs to go on exactly here, as plain arrays; `theta`, if there, is the model."""
        ...

    def restore(self, state: dict[str, NDArray]) -> None: ...
