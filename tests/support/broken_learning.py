"""Local training and server updates that break one promise of their contract each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from feelstream.arrays import Nested
from feelstream.learning.contract import Training
from feelstream.learning.local import Cohort, Sgd
from feelstream.learning.server import FedAvg, UpdateContext


class Changed(Sgd):
    """sgd, with what it brings back changed."""

    def train(self, learner: Any, theta: Any, cohort: Cohort, state: Nested) -> tuple[Training, Nested]:
        training, after = super().train(learner, theta, cohort, state)
        return self.changed(training, cohort, state), after

    def changed(self, training: Training, cohort: Cohort, state: Nested) -> Training:
        return training


class Doubles(Changed):
    def changed(self, training: Training, cohort: Cohort, state: Nested) -> Training:
        return replace(training, updates=training.updates.astype(np.float64))


class MeanLoss(Changed):
    def changed(self, training: Training, cohort: Cohort, state: Nested) -> Training:
        return replace(training, losses=training.losses.mean(axis=(1, 2)))


class Crowd(Changed):
    """Takes smaller steps where more devices train."""

    def changed(self, training: Training, cohort: Cohort, state: Nested) -> Training:
        return replace(training, updates=training.updates / np.float32(len(cohort.ids)))


class Tired(Changed):
    """Remembers in an attribute of its class what belongs into its state."""

    times: ClassVar[list[int]] = []

    def changed(self, training: Training, cohort: Cohort, state: Nested) -> Training:
        self.times.append(1)
        return replace(training, updates=training.updates / np.float32(len(self.times)))


class Names(Sgd):
    def update(self, state: Nested, after: Nested, cohort: Cohort, sent: Any) -> Nested:
        return {"names": ["a"]}


class Recognises(Changed):
    """Goes on otherwise from a state that is not the very object it returned."""

    known: ClassVar[list[Any]] = []

    @property
    def remembers(self) -> bool:
        return True

    def changed(self, training: Training, cohort: Cohort, state: Nested) -> Training:
        same = not state or any(state["last"] is each for each in self.known)
        return training if same else replace(training, updates=0.9 * training.updates)

    def update(self, state: Nested, after: Nested, cohort: Cohort, sent: Any) -> Nested:
        self.known.append(np.zeros(1))
        return {"last": self.known[-1]}


BROKEN_LOCAL = [
    (Doubles(), "contract"),
    (MeanLoss(), "contract"),
    (Crowd(), "alone"),
    (Tired(), "repeatable"),
    (Names(), "alone"),
    (Recognises(), "checkpoint"),
]


class Precise(FedAvg):
    def step(self, theta: Any, updates: Any, context: UpdateContext, state: Nested, rng: Any) -> tuple[Any, Nested]:
        found, state = super().step(theta, updates, context, state, rng)
        return found.astype(np.float64), state


class Noisy(FedAvg):
    """Draws random numbers of its own."""

    def step(self, theta: Any, updates: Any, context: UpdateContext, state: Nested, rng: Any) -> tuple[Any, Nested]:
        found, state = super().step(theta, updates, context, state, rng)
        return found + np.random.default_rng().random(len(theta)).astype(np.float32), state


class Endless(FedAvg):
    """Remembers what is no number."""

    def step(self, theta: Any, updates: Any, context: UpdateContext, state: Nested, rng: Any) -> tuple[Any, Nested]:
        return super().step(theta, updates, context, state, rng)[0], {"least": np.array(-np.inf)}


class Averages(FedAvg):
    """Hands out one number for the whole model."""

    def handed_out(self, theta: Any, state: Nested) -> Any:
        return theta.mean(keepdims=True)


class Free(FedAvg):
    def bits(self, parameters: int) -> float:
        return 0.0


class Recalls(FedAvg):
    """As Recognises."""

    known: ClassVar[list[Any]] = []

    def init(self, parameters: int) -> Nested:
        self.known.append(np.zeros(1))
        return {"last": self.known[-1]}

    def step(self, theta: Any, updates: Any, context: UpdateContext, state: Nested, rng: Any) -> tuple[Any, Nested]:
        same = any(state["last"] is each for each in self.known)
        found, _ = super().step(theta, updates if same else 0.9 * updates, context, state, rng)
        self.known.append(np.zeros(1))
        return found, {"last": self.known[-1]}


BROKEN_SERVERS = [
    (Precise(), "contract"),
    (Noisy(), "repeatable"),
    (Endless(), "contract"),
    (Averages(), "contract"),
    (Free(), "bits"),
    (Recalls(), "checkpoint"),
]
