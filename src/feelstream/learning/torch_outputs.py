"""What a PyTorch model says of samples beside losses and classes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from feelstream.errors import EngineError
from feelstream.learning.sample_numbers import ABSENT


def log_probabilities(module: nn.Module, inputs: torch.Tensor) -> NDArray[np.float32]:
    """(m, classes) ln p_c."""
    with torch.inference_mode():
        return module(inputs).log_softmax(1).cpu().numpy()


def embeddings(
    module: nn.Module, inputs: Callable[[NDArray[np.int64]], torch.Tensor], samples: NDArray[np.int64]
) -> NDArray[np.float32]:
    """(n, features) what the last linear layer is given, mean over each device's samples."""
    linear = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    if not linear:
        raise EngineError("embedding needs a learning.model with a linear layer")
    given: list[torch.Tensor] = []
    hook = linear[-1].register_forward_pre_hook(lambda _, arguments: given.append(arguments[0]))
    found = []
    try:
        for own in samples:
            given.clear()
            with torch.inference_mode():
                module(inputs(own[own != ABSENT]))
            h = given[-1]
            found.append(h.reshape(len(h), -1).double().mean(dim=0).float().cpu().numpy())
    finally:
        hook.remove()
    return np.stack(found)
