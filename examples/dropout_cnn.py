"""The CNN of PyTorch's classic MNIST example: the paper's 21,840 parameters, with the dropout that our engine lacks.

feelstream run literal-iid --set learning.model=examples/dropout_cnn.py:DropoutCNN
"""

from torch import nn


class DropoutCNN(nn.Sequential):
    """Two convolutions of 5×5 and two dense layers for inputs of 28×28; half of the activations of two layers drop."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__(
            nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(),
            nn.Conv2d(10, 20, 5), nn.Dropout2d(0.5), nn.MaxPool2d(2), nn.ReLU(),
            nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Dropout(0.5), nn.Linear(50, classes),
        )  # fmt: skip
