"""The model at the end of a run, θ(T+1) or what the server hands out for it, kept as model.npz beside the tables."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from feelstream import learning
from feelstream.data.datasets import Dataset
from feelstream.errors import RunError
from feelstream.evaluation import Predict, TestSet
from feelstream.learning.contract import Evaluation, Learner
from feelstream.learning.models import Model
from feelstream.run.files import read_arrays
from feelstream.run.preparing import dataset_of
from feelstream.scenario import Scenario

MODEL = "model.npz"  # holds one array, theta: float32 (d,)


@dataclass(frozen=True)
class FinalModel:
    """The model that a run ends with.

    Attributes:
        scenario: Of the run.
        theta: (d,) float32, in the order of `feelstream.learning.models` (PyTorch's own).
    """

    scenario: Scenario = field(repr=False)
    theta: NDArray[np.float32] = field(repr=False)

    def __repr__(self) -> str:
        return f"FinalModel({self.scenario.learning.model}, {len(self.theta)} parameters)"

    def weights(self) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """(weight, bias) of each layer that has them, in the shapes of PyTorch; stacks of feelstream layers only."""
        model = learning.describe(self.scenario.learning.model, dataset_of(self.scenario))
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
        """Loss and accuracy on the test set of the run's data; on that of the last round, if it changes."""
        dataset = dataset_of(self.scenario)
        test = TestSet(dataset.test_labels, lambda: dataset.test_images, dataset.test_rounds)
        _, last = test.of(self.scenario.system.rounds)
        return Evaluation(*Predict(self.theta, self._learner(dataset), last).score())

    def predict(self, x: ArrayLike) -> NDArray[np.int32]:
        """(n,) the class of each of n samples, in the shape and scale of the data set's own `test_images`.

        That is uint8 from 0 to 255, float32 as the data set has it once it is normalised, or int64 tokens. Vectors and
        tokens may be (n, F).
        """
        dataset, x = dataset_of(self.scenario), np.asarray(x)
        wanted = dataset.test_images.dtype
        if x.ndim == 2 and dataset.shape[1:] == (1, 1):  # vectors and tokens, as an .npz file has them
            x = x[:, :, None, None]
        if x.shape[1:] != dataset.shape or x.dtype != wanted or not len(x):
            raise RunError(
                f"samples must be {wanted} of shape (n ≥ 1, {', '.join(map(str, dataset.shape))}), as those of "
                f"{dataset.name}, not {x.dtype} of shape {x.shape}"
            )
        labels = np.zeros(len(x), dataset.test_labels.dtype)
        asked = replace(dataset, test_source=x, test_labels=labels, normalisation=(dataset.mean, dataset.std))
        return self._learner(asked).predict(self.theta).classes

    def _learner(self, dataset: Dataset) -> Learner:
        learner = learning.make(self.scenario.learning, dataset)
        assert learner is not None
        return learner


def read_model(path: Path) -> NDArray[np.float32]:
    stored = read_arrays(path)
    if "theta" not in stored:
        raise RunError(
            f"{path} holds the model of a deployed app, which only the app can use: {len(stored)} arrays, which "
            "numpy.load gives by name"
        )
    return stored["theta"]
