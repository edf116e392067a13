"""PyTorch modules: made from our models or by a user, and as one vector of weights."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from feelstream.errors import EngineError
from feelstream.learning.models import Conv, Dense, MaxPool, Model, ReLU
from feelstream.plugins import in_a_sentence


def stack(model: Model) -> nn.Sequential:
    """The same model in PyTorch's layers, which keep their parameters in our order."""
    layers: list[nn.Module] = []
    before = model.input
    for layer, after in zip(model.layers, model.shapes(), strict=True):
        match layer:
            case Conv(channels):
                if layer.same:  # Conv2d's own padding="same" warns of even kernels
                    layers.append(nn.ZeroPad2d(_halves(layer.columns - 1) + _halves(layer.rows - 1)))
                layers.append(nn.Conv2d(before[0], channels, (layer.rows, layer.columns)))
            case MaxPool(rows, columns):
                layers.append(nn.MaxPool2d((rows, columns)))
            case ReLU():
                layers.append(nn.ReLU())
            case Dense(units):
                layers += [nn.Flatten(), nn.Linear(prod(before), units)]
        before = after
    return nn.Sequential(*layers)


def _halves(zeros: int) -> tuple[int, int]:
    return zeros // 2, zeros - zeros // 2


def seeded(make: Callable[[], object], seed: int) -> nn.Module:
    """A new module whose initial weights follow from `seed`; the caller's random numbers stay untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            module = make()
        except Exception as error:  # a foreign class may raise anything
            raise EngineError(f"learning.model: the model cannot be made: {in_a_sentence(error)}") from error
    if not isinstance(module, nn.Module):
        raise EngineError(f"learning.model: a torch.nn.Module is needed, not {type(module).__name__}")
    return module


def vector(module: nn.Module) -> NDArray[np.float32]:
    with torch.no_grad():
        # reshape, not view: a weight that is laid out channels last still reads as (out, in, row, column)
        return torch.cat([parameter.reshape(-1) for parameter in module.parameters()]).numpy()


def parts(module: nn.Module, values: NDArray[np.float32]) -> list[torch.Tensor]:
    """What of a vector like θ belongs to each parameter that is trained; changing them changes the vector."""
    split = torch.from_numpy(values).split([parameter.numel() for parameter in module.parameters()])
    pairs = zip(module.parameters(), split, strict=True)
    return [part.view(parameter.shape) for parameter, part in pairs if parameter.requires_grad]
