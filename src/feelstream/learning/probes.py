"""Probes: what a device computes of θ and of samples that it holds, for the server to schedule by.

    values = probe.measure(asked)           (n, …), a row for each of the n devices that answer

A user's own function is asked device by device, with the model's predictions and the numbers of the device's samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Frozen, Ids, Nested, Reals, read_only
from feelstream.evaluation.contract import Predict
from feelstream.guard import Array, Out, ask
from feelstream.learning.contract import ABSENT, Learner
from feelstream.learning.local import Cohort, LocalTraining, padded_rows
from feelstream.plugins import Kind, Named
from feelstream.policies.base import TRAINING
from feelstream.randomness import Purpose


@dataclass(frozen=True, eq=False)
class Asked(Frozen):
    """The n devices that answer in a round, all of which hold data, and the model that they were sent."""

    learner: Learner | None
    theta: NDArray[np.float32]
    local: LocalTraining
    cohort: Cohort
    kept: Nested  # by the devices, of their local training
    most: int  # samples that a report is made of
    gain: Reals  # (n,) |g_k|², which the server measures as a report arrives

    @cached_property
    def samples(self) -> Ids:
        """(n, s) numbers of at most `most` samples of each device, drawn without replacement; ABSENT behind them."""
        return read_only(padded_rows([self._drawn(int(k)) for k in self.cohort.ids]))

    def _drawn(self, device: int) -> Ids:
        held = self.cohort.held(device)
        if len(held) <= self.most:
            return np.asarray(held, np.int64)
        return self.cohort.rng(device, Purpose.REPORTS).choice(held, self.most, replace=False).astype(np.int64)

    @property
    def engine(self) -> Learner:
        assert self.learner is not None  # a scenario without one refuses a probe that needs it
        return self.learner

    @cached_property
    def predict(self) -> Predict:
        return Predict(self.theta, self.engine)


class Probe(Named, ABC):
    """Base of the probes."""

    plugin_field: ClassVar[str] = "probe"
    contract: ClassVar[Mapping[str, Out]] = {"measure": Out(Array(("n", ...), "fiub"))}
    needs_learner: ClassVar[bool] = True

    @abstractmethod
    def measure(self, asked: Asked) -> NDArray[Any]:
        """(n, …) finite numbers, of each device."""

    def shape(self, asked: Asked) -> tuple[int, ...]:
        """Of what one device would report, where nobody does; by default a number."""
        return ()


Function = Callable[[Predict, Ids], Any]


class FunctionProbe(Probe):
    """A user's function of (predict, samples): what one device reports, a number or an array of numbers.

    predict(“train”, samples) gives loss and class of samples, predict.theta the parameters; samples: (s,) numbers.
    """

    def __init__(self, function: Function) -> None:
        self.function = function

    def measure(self, asked: Asked) -> NDArray[Any]:
        found = [np.asarray(self.function(asked.predict, row[row != ABSENT]), float) for row in asked.samples]
        if any(each.shape != found[0].shape for each in found):
            raise ValueError("it must give the same number of values for every device")
        return np.stack(found)

    def shape(self, asked: Asked) -> tuple[int, ...]:
        return np.shape(self.function(asked.predict, np.zeros(1, np.int64)))  # as for a device with sample 0


class GradientNorm(Probe):
    """‖∇F_k(θ)‖₂, of the mean loss of the samples."""

    def measure(self, asked: Asked) -> NDArray[Any]:
        return asked.engine.gradients(asked.theta, asked.samples).norms


class UpdateNorm(Probe):
    """‖Δθ_k‖₂, of the update that the device would send: it trains for it, on the mini-batches of this round."""

    def measure(self, asked: Asked) -> NDArray[Any]:
        cohort, known = asked.cohort, (asked.engine, asked.theta, asked.cohort, asked.kept)
        sizes = {"n": len(cohort.ids), "d": len(asked.theta)}
        training, _ = ask(asked.local, "train", *known, at=cohort.round, **sizes)
        return training.norms


class Entropy(Probe):
    """Predictive entropy, −Σ_c p_c ln p_c in nats, mean over the samples."""

    def measure(self, asked: Asked) -> NDArray[Any]:
        there = asked.samples != ABSENT
        logs = asked.engine.log_probabilities(asked.theta, asked.samples[there]).astype(np.float64)
        entropy = np.zeros(there.shape)
        entropy[there] = -(np.exp(logs) * logs).sum(axis=1)
        return entropy.sum(axis=1) / there.sum(axis=1)


class Embedding(Probe):
    """What the model's last layer is given, mean over the samples: (n, features)."""

    def measure(self, asked: Asked) -> NDArray[Any]:
        return asked.engine.embeddings(asked.theta, asked.samples)

    def shape(self, asked: Asked) -> tuple[int, ...]:
        return asked.engine.embeddings(asked.theta, np.zeros((1, 1), np.int64)).shape[1:]


class Gain(Probe):
    """|g_k|² of the round, which the server measures as the report arrives."""

    needs_learner: ClassVar[bool] = False

    def measure(self, asked: Asked) -> NDArray[Any]:
        return asked.gain


PROBES: Kind[Any] = Kind(
    "probe",
    "probes",
    Probe,
    {"gradient_norm": GradientNorm, TRAINING: UpdateNorm, "entropy": Entropy, "embedding": Embedding, "gain": Gain},
    FunctionProbe,
)


def reported(name: str, asked: Asked) -> Reals:
    """(K, …) what the devices report, NaN for those that do not answer."""
    cohort = asked.cohort
    if not len(cohort.ids):
        return np.full((cohort.devices, *PROBES.instance(name).shape(asked)), np.nan)
    values = ask(PROBES.instance(name), "measure", asked, at=cohort.round, n=len(cohort.ids))
    found = np.full((cohort.devices, *values.shape[1:]), np.nan)
    found[cohort.ids] = values
    return found
