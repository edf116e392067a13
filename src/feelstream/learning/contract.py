"""The learner: one model on one data set, behind which an engine does the arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Training:
    """What a cohort of n devices brings back from one round of local training.

    updates: float32 (n, parameters), the change θ_k − θ of each device's model.
    losses: float32 (n, steps, batch), the loss of each drawn sample at the step it was drawn for.
    """

    updates: NDArray[np.float32]
    losses: NDArray[np.float32]


@dataclass(frozen=True)
class Evaluation:
    """Mean cross-entropy and share of correct answers on the whole test set."""

    loss: float
    accuracy: float


class Learner(Protocol):
    """The contract of every engine. θ is one float32 vector in the order that models.py documents."""

    name: str  # "native" or "torch": stored with the run
    details: dict[str, str]  # what else decides the last bit: instruction set, library version

    @property
    def parameters(self) -> int: ...

    def init(self, seed: int) -> NDArray[np.float32]:
        """θ(1): the same vector whatever the engine."""
        ...

    def train(self, theta: NDArray[np.float32], batches: NDArray[np.int64], lr: float) -> Training:
        """Plain SGD from θ for each device; `batches` is (n, steps, batch) sample numbers of the training set."""
        ...

    def evaluate(self, theta: NDArray[np.float32]) -> Evaluation: ...
