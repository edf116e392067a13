"""What keeps a user's module or device from being used, in a sentence."""

from __future__ import annotations

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from feelstream.errors import EngineError
from feelstream.learning.settings import BatchNorm
from feelstream.learning.torch_modules import batch_norms


def usable(device: str) -> torch.device:
    """The device of that name; EngineError where this machine has none."""
    try:
        found = torch.device(device)
        torch.zeros(1, device=found).cpu()
    except Exception as problem:  # of many types, by the kind of device
        raise EngineError(f"learning.device: '{device}' cannot be used here: {_first_line(problem)}") from problem
    return found


def check_state(module: nn.Module, batch_norm: BatchNorm) -> None:
    """Refuse a module whose predictions are no function of θ and the sample."""
    layers = batch_norms(module)
    untracked = next((name for name, layer in layers.items() if layer.running_mean is None), None)
    if untracked is not None and batch_norm == "average":
        raise EngineError(
            f"the model has a BatchNorm layer ({untracked}) without running statistics, so that a prediction depends "
            'on the others of its batch; if you mean that, set learning.batch_norm = "batch"'
        )
    known = {id(values) for layer in layers.values() for values in layer.buffers(recurse=False)}
    buffer = next((name for name, values in module.named_buffers() if id(values) not in known), None)
    if buffer is not None:
        raise EngineError(
            f"the model keeps a buffer ({buffer}), which averaging does not carry from device to device; "
            "use layers without state of their own, such as GroupNorm"
        )
    if any(parameter.dtype != torch.float32 for parameter in module.parameters()):
        raise EngineError("the model has parameters of another type than float32; only float32 is allowed")


def check_answers(module: nn.Module, inputs: torch.Tensor, shape: tuple[int, ...], classes: int) -> None:
    """Refuse a module that does not give one logit per class for each of these inputs."""
    try:
        with torch.inference_mode():
            logits = copy.deepcopy(module).eval()(inputs)
        fits = logits.ndim == 2 and logits.shape[0] == len(inputs) and logits.shape[1] >= classes
    except Exception as error:  # a foreign module may raise anything
        what = f"samples of shape {shape}"
        if inputs.dtype == torch.int64:
            what = f"tokens from 0 to {int(inputs.max())}, int64 of shape (batch, {inputs.shape[1]})"
        raise EngineError(f"the model does not accept {what}: {_first_line(error)}") from error
    if not fits:
        one, n = ("one sample", 1) if len(inputs) == 1 else (f"{len(inputs)} samples", len(inputs))
        raise EngineError(
            f"the model gives {tuple(logits.shape)} for {one}; it must give ({n}, classes) with at least {classes} "
            "classes"
        )


def hardest(images: NDArray, test_images: NDArray, samples: int) -> NDArray:
    """So many samples on which to try a module: the first test sample, or of tokens the largest there is."""
    first = np.repeat(test_images[:1], samples, axis=0)
    return np.full_like(first, max(images.max(), test_images.max())) if first.dtype == np.int64 else first


def _first_line(problem: Exception) -> str:
    return (str(problem).splitlines() or [type(problem).__name__])[0]
