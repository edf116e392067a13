"""CPU frequencies f_k(t) beside the paper's: levels, and those of a file."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from feelstream.environment.base import ProcessContext, Recorded, State, Step
from feelstream.environment.paper import Frequency
from feelstream.tables import Column


class FrequencyLevels(Frequency):
    """A Markov chain over equally spaced levels of each device's range, as governors step through them.

    With probability `stay` a device keeps its level, otherwise it moves to one of the others, all equally likely. The
    chain is symmetric, so its stationary law is uniform over the levels, and round 1 is drawn from it.
    """

    tag: ClassVar[str] = "levels"

    levels: Annotated[int, Field(strict=True, ge=2, le=1000, description="frequency levels of a device; 2 to 1000")] = 8
    stay: Annotated[
        float, Field(strict=True, ge=0, lt=1, description="probability to keep the level; 0 to below 1")
    ] = 0.8

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        return {"level": rng.integers(0, self.levels, context.devices)}

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        level = state["level"]
        span = context.frequency_high_hz - context.frequency_low_hz
        f_hz = context.frequency_low_hz + span * level / (self.levels - 1)
        moves = rng.random(context.devices) >= self.stay
        shift = rng.integers(1, self.levels, context.devices)
        return f_hz, {"level": np.where(moves, (level + shift) % self.levels, level)}


class RecordedFrequency(Frequency):
    """Frequencies from a file with the columns round, device and f_hz; a device keeps its last one until the next.

    Before a device's first row it has the lowest frequency of its range; values are clipped to the range.
    """

    tag: ClassVar[str] = "trace"

    path: Annotated[str, Field(min_length=1, description="a .csv or .parquet file with columns round, device, f_hz")]

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        self._recorded(context)  # read here, with all that the run starts from
        return {"f_hz": context.frequency_low_hz.copy()}

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        f_hz = state["f_hz"].copy()
        devices, values = self._recorded(context).of(round)
        f_hz[devices] = np.clip(values, context.frequency_low_hz[devices], context.frequency_high_hz[devices])
        return f_hz, {"f_hz": f_hz}

    def _recorded(self, context: ProcessContext) -> Recorded:
        return context.recorded("world.frequency.path", self.path, Column("f_hz"))
