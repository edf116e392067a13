"""An arrival process of one's own: by day samples come in, by night none do, and every device has its own time zone.

feelstream run tiny --set data.arrivals.kind=examples/my_arrivals.py:Daily --set data.arrivals.day=8
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from feelstream.data.streaming.arrivals import EndlessArrivals


class Daily(EndlessArrivals):
    """Poisson(rate) samples a round in the first half of a device's day, none in the second."""

    rate: float = Field(default=5.0, gt=0, le=1e6, description="mean samples per device and round by day; above 0")
    day: int = Field(default=24, ge=2, description="rounds of a day; ≥ 2")

    def init(self, devices: int, rng: np.random.Generator) -> NDArray:
        return rng.integers(0, self.day, devices)  # the hour of each device at the start

    def counts(self, round: int, state: NDArray, devices: int, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
        by_day = (state + round) % self.day < self.day / 2
        return np.where(by_day, rng.poisson(self.rate, devices), 0), state
