"""Models as stacks of small frozen layers, and the order of their parameters.

The parameter vector θ holds, layer by layer from input to output, the weight and then the bias of each layer
that has them, each flattened in C order: a convolution's weight is (out, in, row, column), a dense layer's is
(out, in). A dense layer sees its input flattened as (channel, row, column). This is PyTorch's own order.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from feelstream.errors import ScenarioError
from feelstream.randomness import Purpose, generator

Shape = tuple[int, int, int]  # channels, rows, columns


@dataclass(frozen=True)
class Conv:
    """Convolution with stride 1.

    kernel: its size, k for k×k or (rows, columns): a time series is an image of one row, so (1, k) there.
    same: put zeros around the input such that the output has its rows and columns; of an odd number of zeros one
        more comes behind than before.

    >>> Conv(8, 5).rows, Conv(8, (1, 9)).columns
    (5, 9)
    """

    channels: int
    kernel: int | tuple[int, int]
    same: bool = False

    @property
    def rows(self) -> int:
        return self.kernel if isinstance(self.kernel, int) else self.kernel[0]

    @property
    def columns(self) -> int:
        return self.kernel if isinstance(self.kernel, int) else self.kernel[1]


@dataclass(frozen=True)
class MaxPool:
    """Maximum over windows that lie side by side: 2×2, or MaxPool(1, 2) for inputs of one row, or 2×1.

    An odd last row or column is left out.
    """

    rows: int = 2
    columns: int = 2


@dataclass(frozen=True)
class ReLU:
    """max(x, 0)."""


@dataclass(frozen=True)
class Dense:
    """Fully connected layer."""

    units: int


Layer = Conv | MaxPool | ReLU | Dense
WINDOWS = ((2, 2), (1, 2), (2, 1))  # of MaxPool


@dataclass(frozen=True)
class Model:
    """A stack of layers for inputs of one shape; its last layer gives one logit per class."""

    input: Shape
    layers: tuple[Layer, ...]

    def shapes(self) -> list[Shape]:
        """The shape after each layer; raises ScenarioError where a layer does not fit."""
        shape, shapes = self.input, []
        if min(shape) < 1:
            raise ScenarioError(f"the input shape {shape} must hold positive numbers")
        for position, layer in enumerate(self.layers):
            channels, rows, columns = shape
            match layer:
                case Conv() if min(layer.rows, layer.columns) < 1:
                    raise ScenarioError(f"layer {position + 1} ({layer}) needs a kernel of at least 1")
                case Conv(out, same=True):
                    shape = (out, rows, columns)
                case Conv(out):
                    shape = (out, rows - layer.rows + 1, columns - layer.columns + 1)
                case MaxPool() if (layer.rows, layer.columns) not in WINDOWS:
                    raise ScenarioError(f"layer {position + 1} ({layer}) must have windows of 2×2, 1×2 or 2×1")
                case MaxPool():
                    shape = (channels, rows // layer.rows, columns // layer.columns)
                case Dense(units):
                    shape = (units, 1, 1)
                case ReLU():
                    pass
            if min(shape) < 1:
                raise ScenarioError(f"layer {position + 1} ({layer}) leaves nothing of its {rows}×{columns} input")
            shapes.append(shape)
        return shapes

    def weights(self) -> list[tuple[tuple[int, ...], int]]:
        """(weight shape, fan-in) of each layer that has weights; its bias has weight_shape[0] entries."""
        return [(weight, prod(weight[1:])) for weight, _ in self._weighted()]

    def _weighted(self) -> list[tuple[tuple[int, ...], Shape]]:
        """(weight shape, shape of its output) of each layer that has weights."""
        found, shape = [], self.input
        for layer, after in zip(self.layers, self.shapes(), strict=True):
            if isinstance(layer, Conv):
                found.append(((layer.channels, shape[0], layer.rows, layer.columns), after))
            elif isinstance(layer, Dense):
                found.append(((layer.units, prod(shape)), after))
            shape = after
        return found

    @property
    def classes(self) -> int:
        """How many logits the last layer gives."""
        return self.shapes()[-1][0] if self.layers else 0

    def check(self, classes: int) -> None:
        """Raise ScenarioError unless the layers fit, weigh something and end in a logit for each class, or more."""
        shapes = self.shapes()
        if not self.weights():
            raise ScenarioError("a model needs at least one layer with weights (Conv or Dense)")
        if shapes[-1][1:] != (1, 1):
            raise ScenarioError(f"the last layer must give one logit per class, and it gives shape {shapes[-1]}")
        if self.classes < classes:
            raise ScenarioError(f"the last layer gives {self.classes} logits, and the data set has {classes} classes")

    @property
    def parameters(self) -> int:
        return sum(prod(weight) + weight[0] for weight, _ in self.weights())

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of training on one sample: each layer's output, the gradient of its weights and that of its
        input, as many for each; the first layer with weights needs no gradient of its input.

        >>> build("paper-cnn", (1, 28, 28), 10).multiply_adds  # forward 144,000 + 320,000 + 16,000 + 500
        1297500
        """
        forward = [prod(weight) * prod(after[1:]) for weight, after in self._weighted()]
        return 3 * sum(forward) - forward[0] if forward else 0

    def init(self, seed: int) -> NDArray[np.float32]:
        """θ(1): weights and biases from U(−1/√fan_in, 1/√fan_in), drawn with NumPy so that all engines agree."""
        rng = generator(seed, Purpose.MODEL_INIT)
        parts = [
            rng.uniform(-(fan_in**-0.5), fan_in**-0.5, prod(weight) + weight[0]) for weight, fan_in in self.weights()
        ]
        return np.concatenate(parts).astype(np.float32)


# Each ends in a dense layer with one logit per class, which `build` adds.
STACKS: dict[str, tuple[Layer, ...]] = {
    "paper-cnn": (Conv(10, 5), MaxPool(), ReLU(), Conv(20, 5), MaxPool(), ReLU(), Dense(50), ReLU()),
    "lenet5": (
        Conv(6, 5), ReLU(), MaxPool(), Conv(16, 5), ReLU(), MaxPool(), Dense(120), ReLU(), Dense(84), ReLU(),
    ),
    # Three 3×3 convolutions with zeros around, halved after each: for colour images of 32×32.
    "cifar-cnn": (
        Conv(32, 3, same=True), MaxPool(), ReLU(), Conv(32, 3, same=True), MaxPool(), ReLU(),
        Conv(64, 3, same=True), MaxPool(), ReLU(), Dense(64), ReLU(),
    ),
    # Three convolutions along time, halved after each: for series in one row, such as six channels of 128.
    "har-cnn": (
        Conv(16, (1, 7), same=True), MaxPool(1, 2), ReLU(), Conv(32, (1, 5), same=True), MaxPool(1, 2), ReLU(),
        Conv(32, (1, 5), same=True), MaxPool(1, 2), ReLU(), Dense(32), ReLU(),
    ),
    "mlp": (Dense(64), ReLU()),
    "softmax": (),
}  # fmt: skip


def build(name: str, input: Shape, classes: int) -> Model:
    """One of the named models, for inputs of the data set's shape.

    >>> build("paper-cnn", (1, 28, 28), 10).parameters
    21840
    """
    return Model(input, (*STACKS[name], Dense(classes)))
