"""The model at the end of a run: θ(T+1), kept as model.npz beside the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from feelstream import learning
from feelstream.data.datasets import Dataset
from feelstream.errors import RunError
from feelstream.learning.contract import Evaluation
from feelstream.learning.models import Model
from feelstream.run.checkpoint import DAMAGE
from feelstream.run.files import write_atomically
from feelstream.run.player import Player
from feelstream.scenario import Scenario

MODEL = "model.npz"  # holds one array, theta: float32 (d,)


@dataclass(frozen=True)
class FinalModel:
    """θ(T+1) of a run: float32 (d,), in the order that `feelstream.learning.models` documents (PyTorch's own)."""

    scenario: Scenario = field(repr=False)
    theta: NDArray[np.float32] = field(repr=False)
    load_dataset: Callable[[Scenario], Dataset] = field(repr=False)

    def __repr__(self) -> str:
        return f"FinalModel({self.scenario.learning.model}, {len(self.theta)} parameters)"

    def weights(self) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """(weight, bias) of each layer that has them, in the shapes of PyTorch; stacks of feelstream layers only."""
        model = learning.describe(self.scenario.learning.model, self.load_dataset(self.scenario))
        if not isinstance(model, Model):
            raise RunError(f"'{self.scenario.learning.model}' is not a stack of feelstream layers; use theta itself")
        found, at = [], 0
        for shape, _ in model.weights():
            size = int(np.prod(shape))
            weight, bias = self.theta[at : at + size].reshape(shape), self.theta[at + size : at + size + shape[0]]
            found.append((weight, bias))
            at += size + shape[0]
        return found

    def evaluate(self) -> Evaluation:
        """Loss and accuracy on the test set of the run's data."""
        learner = learning.make(self.scenario.learning, self.load_dataset(self.scenario))
        assert learner is not None
        return learner.evaluate(self.theta)


def model_of(player: Player) -> NDArray[np.float32] | None:
    """θ as the player has it now; None where it learns nothing, or keeps its model itself."""
    theta = player.snapshot().get("theta")
    return theta if theta is not None and theta.size else None


def write_model(directory: Path, theta: NDArray[np.float32]) -> None:
    """model.npz; the same θ gives the same bytes."""

    def save(path: Path) -> None:
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, theta=theta)

    write_atomically(directory / MODEL, save)


def read_model(directory: Path) -> NDArray[np.float32]:
    path = directory / MODEL
    if not path.is_file():
        raise RunError(f"{directory} holds no {MODEL}: nothing was learned, or an older version ran it")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            names, theta = stored.files, stored["theta"] if "theta" in stored.files else None
    except DAMAGE as problem:
        raise RunError(f"{path} is damaged, or holds another kind of model") from problem
    if theta is None:
        raise RunError(
            f"{path} holds the model of a deployed app, which only the app can use: {len(names)} arrays, which "
            "numpy.load gives by name"
        )
    return theta
