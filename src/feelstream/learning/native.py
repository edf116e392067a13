"""The learner on feelstream's own C++ kernel: fast on any CPU, nothing else to install.

What the kernel does and how is described in docs/engine.md. Results depend on the instruction set (recorded in
`details`) in the last bits, and on nothing else: any number of threads gives the same bits.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feelstream import _native
from feelstream.data.datasets.dataset import Dataset, Pixels
from feelstream.errors import EngineError
from feelstream.evaluation.contract import Part
from feelstream.learning import cores
from feelstream.learning.contract import Floats, Gradients, Learner, LocalSGD, Numbers, Training
from feelstream.learning.models import Conv, Dense, Layer, MaxPool, Model, ReLU

ISA_VARIABLE = "FEELSTREAM_ISA"
SURE = 1e4  # a bias so far above the others that softmax is exactly 1 there and 0 elsewhere


def instruction_sets() -> list[str]:
    """Instruction sets that this build has and this machine can run, slowest first."""
    return _native.available()


def chosen_instruction_set() -> str:
    """The one named in FEELSTREAM_ISA, else the fastest the machine can run."""
    available = instruction_sets()
    wanted = os.environ.get(ISA_VARIABLE, "")
    if wanted and wanted not in available:
        raise EngineError(
            f"{ISA_VARIABLE} is {wanted!r}, and this build on this machine can run: {', '.join(available)}"
        )
    return wanted or available[-1]


def compile_engine(model: Model, isa: str) -> _native.Engine:
    """The kernel's own description of a model, for one instruction set."""
    channels, rows, columns = model.input
    return _native.Engine(
        channels, rows, columns, [part for layer in model.layers for part in _native_layers(layer)], isa
    )


def _native_layers(layer: Layer) -> list[_native.Layer]:
    """What the engine computes for this layer."""
    kind = _native.Kind
    match layer:
        case Conv(channels):
            convolution = _native.Layer(kind.CONVOLUTION, channels, layer.rows, layer.columns)
            padding = _native.Layer(kind.PAD, rows=layer.rows - 1, columns=layer.columns - 1)
            return [padding, convolution] if layer.same else [convolution]
        case Dense(units):
            return [_native.Layer(kind.DENSE, units)]
        case MaxPool(rows, columns):
            return [_native.Layer(kind.POOL, rows=rows, columns=columns)]
        case ReLU():
            return [_native.Layer(kind.RELU)]


class NativeLearner(Learner):
    """One model on one data set, trained and evaluated by the C++ kernel.

    The kernel reads images as they are and normalises on the way, so no copy exists.
    threads: at most this many devices, or blocks of test samples, are computed at once.
    """

    name = "native"

    def __init__(self, model: Model, data: Dataset, threads: int | None = None) -> None:
        super().__init__(data)
        isa = chosen_instruction_set()
        self.model, self.threads, self.details = model, threads or cores(), {"isa": isa}
        self._engine = compile_engine(model, isa)
        self.parameters = self._engine.parameters
        self._pixels: dict[Part, Any] = {
            part: np.ascontiguousarray(own).reshape(len(own), -1) for part, own in self.images.items()
        }
        most = 255.0 if data.train_images.dtype == np.uint8 else 1.0
        self._normalise = 1.0 / (most * data.std), -data.mean / data.std  # times x, plus that

    def init(self, seed: int) -> Floats:
        return self.model.init(seed)

    def _train(
        self, theta: Floats, batches: Numbers, sgd: LocalSGD, correction: Floats | None, found: Training
    ) -> None:
        rates = sgd.rates(batches.shape[1]).tolist()
        native = _native.LocalSgd(rates, sgd.momentum, sgd.weight_decay, sgd.prox, sgd.clip or 0.0, sgd.nesterov)
        arrays = theta, batches, native, found.momentum, correction
        self._engine.train(*self._data("train"), *arrays, self.threads, found.updates, found.losses, False)

    def _gradients(self, theta: Floats, samples: Numbers, found: Gradients) -> None:
        arrays = theta, samples[:, None]  # batches of one step
        self._engine.gradients(*self._data("train"), *arrays, self.threads, found.values, found.losses[:, None])

    def _evaluate(self, theta: Floats) -> tuple[float, int]:
        return self._engine.evaluate(*self._data("test"), theta, self.threads, False)[:2]

    def _predict(self, theta: Floats, of: Part, samples: Numbers, losses: Floats, classes: NDArray[np.int32]) -> None:
        self._engine.predict(*self._data(of), theta, samples, self.threads, losses, classes)

    def log_probabilities(self, theta: Floats, samples: Numbers) -> Floats:
        """See Learner.log_probabilities; the kernel gives losses and gradients only, so its last layer is changed.

        ln p_c = −loss of a sample whose label were c; with the rows moved on by s, that of the label y is c = y + s.
        """
        classes, features = _last(self.model)
        found = np.empty((len(samples), classes), np.float32)
        for s in range(classes):
            changed = theta.copy()
            weight, bias = _rows(changed, classes, features)
            weight[:], bias[:] = np.roll(weight, -s, axis=0), np.roll(bias, -s)
            predicted = self.predict(changed, "train", samples)
            found[np.arange(len(samples)), (predicted.labels + s) % classes] = -predicted.losses
        return found

    def embeddings(self, theta: Floats, samples: Numbers) -> Floats:
        """See Learner.embeddings: the mean of h_i, what the last layer is given of sample i, whatever that layer is.

        With weights 0 and a bias that makes class a certain, the row of a has the gradient mean((1 − [y_i = a]) h_i);
        where another class is certain, −mean([y_i = a] h_i). The difference is the mean of h_i.
        """
        classes, features = _last(self.model)
        rows = []
        for certain in (0, 1):
            changed = theta.copy()
            weight, bias = _rows(changed, classes, features)
            weight[:], bias[:] = 0.0, 0.0
            bias[certain] = SURE
            gradients = self.gradients(changed, samples).values
            rows.append(gradients[:, -classes * (features + 1) :][:, :features])  # of class 0
        return rows[0] - rows[1]

    def _data(self, of: Part) -> tuple[Pixels, NDArray[np.int32], float, float]:
        """Images, labels, scale and shift of a part of the data set, as the engine takes them."""
        return self._pixels[of], self.labels[of], *self._normalise


def _last(model: Model) -> tuple[int, int]:
    """(classes, features) of the last layer."""
    (classes, *rest), _ = model.weights()[-1]
    if not isinstance(model.layers[-1], Dense) or classes < 2:
        raise EngineError(
            "learning.model: entropy and embedding need one that ends in a dense layer of two logits or more"
        )
    return classes, rest[0]


def _rows(theta: Floats, classes: int, features: int) -> tuple[Floats, Floats]:
    """(classes, features) weights and (classes,) biases of the last layer, as views."""
    last = theta[-classes * (features + 1) :]
    return last[: classes * features].reshape(classes, features), last[classes * features :]
