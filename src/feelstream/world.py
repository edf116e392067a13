"""The world of a run: data streams, CPU frequencies and channels, all functions of (scenario, seed, round)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Ids, Reals
from feelstream.data.recording import Recording
from feelstream.data.streaming.stream import Stream
from feelstream.learning.contract import Learner, Training
from feelstream.randomness import Purpose, generator
from feelstream.scenario import Scenario

Theta = NDArray[np.float32]


class World:
    """Arrivals, frequencies and gains of one seed. Only the stream has a state; the rest can be asked for any round."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        labels: NDArray[np.uint8],
        classes: int,
        recording: Recording | None = None,
    ) -> None:
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
            recording=recording,
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

    def train(self, round: int, devices: Ids, learner: Learner, theta: Theta) -> Training:
        """Local SGD of these devices on what they hold. One without data has the update 0 and no loss (NaN)."""
        settings = self.scenario.learning
        holds = self.stream.stored[devices] > 0
        updates = np.zeros((len(devices), len(theta)), np.float32)
        losses = np.full((len(devices), settings.steps, settings.batch), np.nan, np.float32)
        if holds.any():
            batches = self.mini_batches(round, devices[holds], settings.steps, settings.batch)
            trained = learner.train(theta, batches, settings.lr)
            updates[holds], losses[holds] = trained.updates, trained.losses
        return Training(updates, losses)

    def mini_batches(self, round: int, devices: Ids, steps: int, batch: int) -> Ids:
        """(n, steps, batch) sample numbers, each device's drawn with replacement from what it holds."""
        batches = np.empty((len(devices), steps, batch), dtype=np.int64)
        for row, device in enumerate(devices):
            rng = generator(self.seed, Purpose.MINI_BATCHES, round, int(device))
            batches[row] = self.stream.draw(int(device), (steps, batch), rng)
        return batches
