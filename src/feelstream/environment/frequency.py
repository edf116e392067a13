"""CPU frequencies f_k(t): the paper's, levels, and those of a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from feelstream.environment.base import Process, ProcessContext, Recorded, State, Step, gives
from feelstream.guard import Array, Out
from feelstream.plugins import Kind
from feelstream.tables import Wanted


def in_its_range(process: Any, found: Step, round: int, state: State, context: ProcessContext, rng: Any) -> str | None:
    """Every frequency lies in the range of its device."""
    f_hz, low, high = found[0], context.frequency_low_hz, context.frequency_high_hz
    if (f_hz >= low).all() and (f_hz <= high).all():  # the usual case, in few passes through memory
        return None
    outside = (f_hz < low * (1 - 1e-12)) | (f_hz > high * (1 + 1e-12))
    if not outside.any():
        return None
    k = int(np.argmax(outside))
    return f"gives device {k} {f_hz[k]:g} Hz, which is not between {low[k]:g} and {high[k]:g}"


class Frequency(Process):
    """Values in Hz, within each device's range."""

    plugin_field: ClassVar[str] = "world.frequency"
    contract: ClassVar[Mapping[str, Out]] = gives(Array(above=True, least=0), in_its_range)


class UniformFrequency(Frequency):
    """f_k(t) ~ U(lowest, highest), independent over devices and rounds: the paper's."""

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        return rng.uniform(context.frequency_low_hz, context.frequency_high_hz), state


class FrequencyLevels(Frequency):
    """A Markov chain over equally spaced levels of each device's range, as governors step through them.

    With probability `stay` a device keeps its level, otherwise it moves to one of the others, all equally likely. The
    chain is symmetric, so its stationary law is uniform over the levels, and round 1 is drawn from it.
    """

    levels: int = Field(default=8, strict=True, ge=2, le=1000, description="frequency levels of a device; 2 to 1000")
    stay: float = Field(default=0.8, strict=True, ge=0, lt=1, description="probability to keep the level; 0 to below 1")

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

    path: str = Field(min_length=1, description="a .csv or .parquet file with columns round, device, f_hz")

    def init(self, context: ProcessContext, rng: np.random.Generator) -> State:
        self._recorded(context)  # read here, with all that the run starts from
        return {"f_hz": context.frequency_low_hz.copy()}

    def step(self, round: int, state: State, context: ProcessContext, rng: np.random.Generator) -> Step:
        f_hz = state["f_hz"].copy()
        devices, values = self._recorded(context).of(round)
        f_hz[devices] = np.clip(values, context.frequency_low_hz[devices], context.frequency_high_hz[devices])
        return f_hz, {"f_hz": f_hz}

    def _recorded(self, context: ProcessContext) -> Recorded:
        return context.recorded("world.frequency.path", self.path, Wanted("f_hz"))


FREQUENCIES = Kind(
    "frequency",
    "frequencies",
    Frequency,
    {"uniform": UniformFrequency, "levels": FrequencyLevels, "trace": RecordedFrequency},
)
