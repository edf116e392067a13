"""A buffer of one's own: the newest samples, twice as many for devices that have never transmitted.

feelstream check examples/my_buffer.py:Newest
feelstream run tiny --set data.buffer.kind=examples/my_buffer.py:Newest --set data.buffer.few=20
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from feelstream.arrays import Ints, Nested
from feelstream.data.streaming.buffers import Buffer, IntervalStore, Items


class NewestStore(IntervalStore):
    """Holds the arrivals lo, …, hi − 1 of every device."""

    def __init__(self, devices: int, few: int) -> None:
        super().__init__(devices)
        self.few, self.was_used = few, np.zeros(devices, bool)

    def join(self, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        came, _ = super().join(devices, counts, rng)
        most = np.where(self.was_used, self.few, 2 * self.few)
        return came, self.drop_below(np.arange(len(self.hi)), np.maximum(self.lo, self.hi - most))

    def use(self, devices: Ints) -> bool:
        self.was_used[devices] = True
        return False  # a transmission by itself deletes nothing

    def snapshot(self) -> Nested:
        return super().snapshot() | {"was_used": self.was_used.copy()}

    def restore(self, saved: Nested) -> None:
        super().restore(saved)
        self.was_used[:] = saved["was_used"]


class Newest(Buffer):
    """The last `few` samples, twice as many until a device has transmitted."""

    few: int = Field(10, ge=1, description="samples that a device holds once it has transmitted; ≥ 1")

    @property
    def most_held(self) -> int:
        return 2 * self.few

    def store(self, devices: int, longest: int | None) -> NewestStore:
        return NewestStore(devices, self.few)
