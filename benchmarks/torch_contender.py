"""The best plain PyTorch we can write for the same work: eager, one thread, several variants of each task.

Its images are floats normalised beforehand, which the native engine does as it goes: the comparison favours it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import cross_entropy

from feelstream.learning.models import Conv, Dense, MaxPool, Model, ReLU

FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def module_of(model: Model, theta: NDArray[np.float32], layout: torch.memory_format) -> nn.Sequential:
    modules: list[nn.Module] = []
    shape, flat = model.input, False
    for layer, after in zip(model.layers, model.shapes(), strict=True):
        match layer:
            case Conv(channels):
                # Both engines put one more zero behind than before where their number is odd.
                padding = "same" if layer.same else 0
                modules.append(nn.Conv2d(shape[0], channels, (layer.rows, layer.columns), padding=padding))
            case MaxPool(rows, columns):
                modules.append(nn.MaxPool2d((rows, columns)))
            case ReLU():
                modules.append(nn.ReLU(inplace=True))
            case Dense(units):
                modules += [nn.Linear(prod(shape), units)] if flat else [nn.Flatten(), nn.Linear(prod(shape), units)]
                flat = True
        shape = after
    module = nn.Sequential(*modules)
    nn.utils.vector_to_parameters(torch.from_numpy(theta.copy()), module.parameters())
    return module.to(memory_format=layout)  # pyright: ignore[reportCallIssue]


class Contender:
    """Training and evaluation tasks for best_times, by variant."""

    def __init__(self, model, theta, images, labels, mean: float, std: float) -> None:
        torch.set_num_threads(1)
        self.model, self.theta = model, theta
        pixels = (torch.from_numpy(images).float() / 255 - mean) / std
        self.pixels = {name: pixels.contiguous(memory_format=layout) for name, layout in FORMATS.items()}
        self.labels = torch.from_numpy(labels)

    def training(self, batches: NDArray[np.int64], lr: float) -> dict[str, Callable[[], object]]:
        """One device's steps, from the same weights at every call as far as speed is concerned."""
        numbers = torch.from_numpy(batches)

        def variant(name: str, options: dict[str, bool]) -> Callable[[], None]:
            module = module_of(self.model, self.theta, FORMATS[name])
            optimiser = torch.optim.SGD(module.parameters(), lr, **options)
            pixels = self.pixels[name]

            def run() -> None:
                for batch in numbers:
                    optimiser.zero_grad(set_to_none=True)
                    cross_entropy(module(pixels[batch]), self.labels[batch]).backward()
                    optimiser.step()

            return run

        optimisers = {"SGD loop": {"foreach": False}, "SGD foreach": {"foreach": True}, "SGD fused": {"fused": True}}
        return {f"{name}, {title}": variant(name, options) for name in FORMATS for title, options in optimisers.items()}

    def evaluation(self) -> dict[str, Callable[[], object]]:
        def variant(name: str, size: int) -> Callable[[], tuple[float, int]]:
            module = module_of(self.model, self.theta, FORMATS[name])
            pixels = self.pixels[name]

            def run() -> tuple[float, int]:
                loss, right = 0.0, 0
                with torch.inference_mode():
                    for some, truth in zip(pixels.split(size), self.labels.split(size), strict=True):
                        logits = module(some)
                        loss += cross_entropy(logits, truth, reduction="sum").item()
                        right += int((logits.argmax(1) == truth).sum())
                return loss, right

            return run

        return {f"{name}, batches of {size}": variant(name, size) for name in FORMATS for size in (50, 250, 1000)}
