"""A buffer of one's own: the newest samples, twice as many for devices that have never transmitted.

feelstream check examples/my_buffer.py:Newest
feelstream run tiny --set data.buffer.kind=examples/my_buffer.py:Newest --set data.buffer.few=20
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from feelstream.arrays import Ints, Nested
from feelstream.data.streaming.buffers import Interval, Items, drop_below


class Newest(Interval):
    """The last `few` samples, twice as many until a device has transmitted."""

    few: int = Field(10, ge=1, description="samples that a device holds once it has transmitted; ≥ 1")

    @property
    def most_held(self) -> int:
        return 2 * self.few

    def init(self, devices: int) -> Nested:
        """Of every device `hi` samples have arrived, of which it holds those from `lo` on."""
        return super().init(devices) | {"was_used": np.zeros(devices, bool)}

    def join(self, state: Nested, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        came, _ = super().join(state, devices, counts, rng)
        most = np.where(state["was_used"], self.few, 2 * self.few)
        everyone = np.arange(len(most))
        return came, drop_below(state, everyone, np.maximum(state["lo"], state["hi"] - most))

    def use(self, state: Nested, devices: Ints) -> None:
        state["was_used"][devices] = True  # a transmission by itself deletes nothing
