"""The world a policy meets: data streams, CPU frequencies and channels, all functions of (scenario, seed, round)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from feelstream.data.streaming.stream import Stream
from feelstream.randomness import Purpose, generator
from feelstream.scenario import Scenario

Reals = NDArray[np.float64]


class World:
    """Arrivals, frequencies and gains of one seed. Only the stream has a state; the rest can be asked for any round."""

    def __init__(self, scenario: Scenario, seed: int, labels: NDArray[np.uint8], classes: int) -> None:
        self.scenario, self.seed = scenario, seed
        self.devices = scenario.system.devices
        self.stream = Stream(
            partition=scenario.data.partition,
            arrivals=scenario.data.arrivals,
            buffer=scenario.data.buffer,
            fresh=scenario.data.fresh,
            labels=labels,
            classes=classes,
            devices=self.devices,
            rounds=scenario.system.rounds,
            round_s=scenario.system.round_s,
            seed=seed,
        )
        low_db, high_db = scenario.radio.gain_db
        shadowing = generator(seed, Purpose.LARGE_SCALE_FADING)
        self.beta: Reals = 10 ** (shadowing.uniform(low_db, high_db, self.devices) / 10)
        self.beta.flags.writeable = False  # handed out every round

    def frequency_hz(self, round: int) -> Reals:
        """f_k(t), uniform over the range of the scenario."""
        return generator(self.seed, Purpose.CPU_FREQUENCY, round).uniform(*self.scenario.cpu.frequency_hz, self.devices)

    def gain(self, round: int) -> Reals:
        """|g_k(t)|²: β_k times a unit exponential where the channel is Rayleigh, β_k where it does not fade."""
        if self.scenario.radio.fading == "none":
            return self.beta
        return self.beta * generator(self.seed, Purpose.SMALL_SCALE_FADING, round).standard_exponential(self.devices)

    def mini_batches(self, round: int, devices: NDArray[np.int64], steps: int, batch: int) -> NDArray[np.int64]:
        """(n, steps, batch) sample numbers, each device's drawn with replacement from what it holds."""
        batches = np.empty((len(devices), steps, batch), dtype=np.int64)
        for row, device in enumerate(devices):
            rng = generator(self.seed, Purpose.MINI_BATCHES, round, int(device))
            batches[row] = self.stream.draw(int(device), (steps, batch), rng)
        return batches
