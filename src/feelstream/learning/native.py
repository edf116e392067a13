"""The learner on feelstream's own C++ kernel: fast on any CPU, nothing else to install.

What the kernel does and how is described in docs/engine.md. Results depend on the instruction set (recorded in
`details`) in the last bits, and on nothing else: any number of threads gives the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from feelstream import _native
from feelstream.data.datasets.dataset import Features, Pixels
from feelstream.errors import EngineError
from feelstream.learning import cores
from feelstream.learning.contract import (
    ABSENT,
    Evaluation,
    Gradients,
    LocalSGD,
    Part,
    Predictions,
    Training,
    chosen,
    padded,
)
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


class NativeLearner:
    """One model on one data set, trained and evaluated by the C++ kernel.

    images, test_images: (samples, channels, rows, columns). The kernel reads them as they are and normalises on the
        way, so no copy exists: uint8 to (x / 255 − mean) / std, float32 to (x − mean) / std.
    labels, test_labels: integers (samples,), below the number of the model's logits.
    threads: at most this many devices, or blocks of test samples, are computed at once.
    """

    name = "native"

    def __init__(
        self,
        model: Model,
        images: Features,
        labels: ArrayLike,
        test_images: Features,
        test_labels: ArrayLike,
        mean: float,
        std: float,
        threads: int | None = None,
    ) -> None:
        model.check()
        isa = chosen_instruction_set()
        self.model = model
        self.details = {"isa": isa}
        self.threads = cores() if threads is None else threads
        if self.threads < 1:
            raise ValueError(f"threads must be at least 1, not {self.threads}")
        if not (np.isfinite(mean) and np.isfinite(std) and std > 0):
            raise ValueError(f"mean must be finite and std positive, not {mean} and {std}")
        self._engine = compile_engine(model, isa)
        self._images, self._labels = _samples(model, "training", images, labels)
        self._test_images, self._test_labels = _samples(model, "test", test_images, test_labels)
        if images.dtype != test_images.dtype:
            raise ValueError(f"training images are {images.dtype} and test images {test_images.dtype}, not alike")
        self._scale, self._shift = 1.0 / ((255.0 if images.dtype == np.uint8 else 1.0) * std), -mean / std

    @property
    def parameters(self) -> int:
        return self._engine.parameters

    def init(self, seed: int) -> NDArray[np.float32]:
        """θ(1): the same vector whatever the engine."""
        return self.model.init(seed)

    def train(
        self,
        theta: NDArray[np.float32],
        batches: NDArray[np.int64],
        sgd: LocalSGD | float,
        *,
        momentum: NDArray[np.float32] | None = None,
        correction: NDArray[np.float32] | None = None,
    ) -> Training:
        """Local SGD on the mean loss of each batch, from θ, for each device by itself: see Learner.train.

        theta: float32 (parameters,), finite.
        batches: int64 (devices, steps, batch), sample numbers of the training set; a number may repeat.
        Raises EngineError if a device's weights or losses stop being finite numbers.
        """
        theta = self._finite(theta)
        batches = self._batches(batches, ("devices", "steps", "batch"))
        sgd = LocalSGD.of(sgd)
        updates = np.empty((len(batches), self.parameters), np.float32)
        losses = np.empty(batches.shape, np.float32)
        velocity, correction = sgd.state(updates.shape, momentum, correction)
        rates = sgd.rates(batches.shape[1]).tolist()
        native = _native.LocalSgd(rates, sgd.momentum, sgd.weight_decay, sgd.prox, sgd.clip or 0.0, sgd.nesterov)
        self._engine.train(
            *self._data("train"), theta, batches, native, velocity, correction, self.threads, updates, losses, False
        )
        for device in range(len(batches)):
            if not (np.isfinite(updates[device]).all() and _finite_where(losses[device], batches[device])):
                raise EngineError(
                    f"training diverged: device {device} of the cohort of {len(batches)} (counted from 0) has"
                    f" weights or losses that are no finite numbers; try a learning.local.lr below {sgd.largest_lr:g}"
                )
        return Training(updates, losses, velocity)

    def gradients(self, theta: NDArray[np.float32], samples: NDArray[np.int64]) -> Gradients:
        """The gradient of the mean loss of each device's samples (devices, samples) at θ: see Learner.gradients."""
        theta = self._finite(theta)
        batches = self._batches(samples, ("devices", "samples"))[:, None]
        values = np.empty((len(batches), self.parameters), np.float32)
        losses = np.empty(batches.shape, np.float32)
        self._engine.gradients(*self._data("train"), theta, batches, self.threads, values, losses)
        if not (np.isfinite(values).all() and _finite_where(losses, batches)):
            raise EngineError("a gradient is not a finite number: the weights have grown too large")
        return Gradients(values, losses[:, 0])

    def log_probabilities(self, theta: NDArray[np.float32], samples: NDArray[np.int64]) -> NDArray[np.float32]:
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

    def embeddings(self, theta: NDArray[np.float32], samples: NDArray[np.int64]) -> NDArray[np.float32]:
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

    def evaluate(self, theta: NDArray[np.float32]) -> Evaluation:
        """Mean cross-entropy and accuracy of θ on the whole test set; EngineError if the loss is not finite."""
        theta = self._finite(theta)
        total, right, _ = self._engine.evaluate(*self._data("test"), theta, self.threads, False)
        if not np.isfinite(total):
            raise EngineError("the test loss is not a finite number: the weights have grown too large")
        return Evaluation(total / len(self._test_labels), right / len(self._test_labels))

    def predict(
        self, theta: NDArray[np.float32], of: Part = "test", samples: NDArray[np.int64] | None = None
    ) -> Predictions:
        """Loss and class of each of these samples: see Learner.predict. EngineError if a loss is not finite."""
        theta = self._finite(theta)
        data = self._data(of)
        samples = chosen(samples, len(data[1]))
        losses, classes = np.empty(len(samples), np.float32), np.empty(len(samples), np.int32)
        self._engine.predict(*data, theta, samples, self.threads, losses, classes)
        if not np.isfinite(losses).all():
            raise EngineError("a loss is not a finite number: the weights have grown too large")
        return Predictions(losses, classes, data[1][samples])

    def _data(self, of: Part) -> tuple[Pixels, NDArray[np.int32], float, float]:
        """Images, labels, scale and shift of a part of the data set, as the engine takes them."""
        images, labels = (self._images, self._labels) if of == "train" else (self._test_images, self._test_labels)
        return images, labels, self._scale, self._shift

    def _finite(self, theta: NDArray[np.float32]) -> NDArray[np.float32]:
        if theta.dtype != np.float32 or theta.shape != (self.parameters,):
            raise ValueError(
                f"theta must be float32 of shape ({self.parameters},), not {theta.dtype} of shape {theta.shape}"
            )
        if not np.isfinite(theta).all():
            raise EngineError("theta holds weights that are no finite numbers: an earlier round diverged")
        return np.ascontiguousarray(theta)

    def _batches(self, batches: NDArray[np.int64], axes: Sequence[str]) -> NDArray[np.int64]:
        batches = padded(batches, len(self._labels), axes)
        if batches.size == 0:
            raise ValueError(f"batches of shape {batches.shape} hold no samples to train on")
        return batches


def _finite_where(losses: NDArray[np.float32], numbers: NDArray[np.int64]) -> bool:
    """Whether every loss of a sample that is there is a finite number."""
    return bool((np.isfinite(losses) | (numbers == ABSENT)).all())


def _samples(model: Model, which: str, images: Features, labels: ArrayLike) -> tuple[Pixels, NDArray[np.int32]]:
    """The images as (samples, pixels) and the labels as int32, once they have been found to fit the model."""
    labels = np.asarray(labels)
    if images.dtype not in (np.uint8, np.float32) or images.shape[1:] != model.input or len(images) == 0:
        raise ValueError(
            f"{which} images must be uint8 or float32 of shape (samples ≥ 1, {', '.join(map(str, model.input))}),"
            f" not {images.dtype} of shape {images.shape}"
        )
    if labels.shape != (len(images),) or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"{which} labels must be {len(images)} integers, not {labels.dtype} of shape {labels.shape}")
    if labels.min() < 0 or labels.max() >= model.classes:
        raise ValueError(
            f"{which} labels must lie in 0 … {model.classes - 1}, the model's logits, and they span"
            f" {labels.min()} … {labels.max()}"
        )
    pixels = cast(Pixels, np.ascontiguousarray(images)).reshape(len(images), -1)
    return pixels, np.ascontiguousarray(labels, np.int32)


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
