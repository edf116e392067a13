"""A small federation to try local training and server updates on: two classes of noisy points, a linear model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from feelstream.arrays import Ids
from feelstream.data.datasets import assembled
from feelstream.learning.contract import Learner
from feelstream.learning.local import Cohort
from feelstream.learning.models import Dense, Model

SAMPLES, CLASSES, SHAPE = 120, 2, (1, 1, 6)


@dataclass(frozen=True)
class Case:
    """Rounds in which devices train and some of their updates get lost, the same every time."""

    devices: int = 6
    size: int = 3
    rounds: int = 6
    held: tuple[int, ...] = (10, 33, 1, 64, 7, 32)  # samples by device
    lost: float = 0.3

    def ids(self, round: int) -> Ids:
        return np.sort(np.random.default_rng([1, round]).permutation(self.devices)[: self.size])

    def sent(self, round: int) -> np.ndarray:
        return np.random.default_rng([2, round]).random(self.size) >= self.lost

    def cohort(self, round: int, ids: Ids) -> Cohort:
        return Cohort(3, round, self.rounds, self.devices, ids, self._held, self._draw)

    def _held(self, device: int) -> Ids:
        return np.random.default_rng([4, device]).integers(SAMPLES, size=self.held[device % len(self.held)])

    def _draw(self, device: int, shape: tuple[int, ...], rng: np.random.Generator) -> Ids:
        return rng.choice(self._held(device), shape)


@lru_cache(maxsize=2)
def learner(torch: bool) -> Learner:
    """A linear model on the points, by the engine that is asked for."""
    rng = np.random.default_rng(5)
    labels = rng.integers(CLASSES, size=SAMPLES)
    points = (rng.normal(size=(SAMPLES, *SHAPE)) + labels[:, None, None, None]).astype(np.float32)
    arrays = {"x_train": points, "y_train": labels, "x_test": points, "y_test": labels}
    model, data = Model(SHAPE, (Dense(CLASSES),)), assembled("points", arrays, "none")
    if torch:
        from feelstream.learning.torch_engine import TorchLearner

        return TorchLearner(model, data)
    from feelstream.learning.native import NativeLearner

    return NativeLearner(model, data, 1)
