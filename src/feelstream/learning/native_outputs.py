"""What the kernel says of its last layer, found by changing that layer: the kernel gives losses and gradients only.

The last layer has a row of weights, and a bias, for each of C logits z_c. Neither way needs more than a few calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from feelstream.errors import EngineError
from feelstream.learning.models import Dense, Model

if TYPE_CHECKING:
    from feelstream.learning.native import NativeLearner

SURE = 1e4  # a bias so far above the others that softmax is exactly 1 there and 0 elsewhere


def log_probabilities(
    learner: NativeLearner, theta: NDArray[np.float32], samples: NDArray[np.int64]
) -> NDArray[np.float32]:
    """ln p_c = −loss of a sample whose label were c; with the rows moved on by s, that of the label y is c = y + s."""
    classes, features = _last(learner.model)
    found = np.empty((len(samples), classes), np.float32)
    for s in range(classes):
        changed = theta.copy()
        weight, bias = _rows(changed, classes, features)
        weight[:], bias[:] = np.roll(weight, -s, axis=0), np.roll(bias, -s)
        predicted = learner.predict(changed, "train", samples)
        found[np.arange(len(samples)), (predicted.labels + s) % classes] = -predicted.losses
    return found


def embeddings(learner: NativeLearner, theta: NDArray[np.float32], samples: NDArray[np.int64]) -> NDArray[np.float32]:
    """The mean of h_i, what the last layer is given of sample i, which does not depend on that layer.

    With weights 0 and a bias that makes class a certain, the row of a has the gradient mean((1 − [y_i = a]) h_i); where
    another class is certain, −mean([y_i = a] h_i). The difference is the mean of h_i.
    """
    classes, features = _last(learner.model)
    rows = []
    for certain in (0, 1):
        changed = theta.copy()
        weight, bias = _rows(changed, classes, features)
        weight[:], bias[:] = 0.0, 0.0
        bias[certain] = SURE
        gradients = learner.gradients(changed, samples).values
        rows.append(gradients[:, -classes * (features + 1) :][:, :features])  # of class 0
    return rows[0] - rows[1]


def _last(model: Model) -> tuple[int, int]:
    """(classes, features) of the last layer."""
    (classes, *rest), _ = model.weights()[-1]
    if not isinstance(model.layers[-1], Dense) or classes < 2:
        raise EngineError(
            "learning.model: entropy and embedding need one that ends in a dense layer of two logits or more"
        )
    return classes, rest[0]


def _rows(theta: NDArray[np.float32], classes: int, features: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(classes, features) weights and (classes,) biases of the last layer, as views."""
    last = theta[-classes * (features + 1) :]
    return last[: classes * features].reshape(classes, features), last[classes * features :]
