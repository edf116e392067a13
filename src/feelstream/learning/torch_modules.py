"""PyTorch modules: made from our models or by a user, refused if they cannot be used, as one vector of weights."""

from __future__ import annotations

import copy
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from feelstream.errors import EngineError, sentence
from feelstream.learning.contract import ABSENT
from feelstream.learning.models import Conv, Dense, MaxPool, Model, ReLU
from feelstream.learning.settings import BatchNorm
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


def batch_norms(module: nn.Module) -> dict[str, Any]:
    """The BatchNorm layers of a module by name."""
    layers = module.named_modules()
    return {name: part for name, part in layers if isinstance(part, nn.modules.batchnorm._BatchNorm)}


def without_statistics(module: nn.Module) -> nn.Module:
    """The module, whose BatchNorm layers normalise every batch by itself from now on, in evaluation too."""
    for layer in batch_norms(module).values():
        layer.track_running_stats = False
        layer.running_mean = layer.running_var = layer.num_batches_tracked = None
    return module


def carried(module: nn.Module) -> list[torch.Tensor]:
    """All that θ holds of a module: its parameters, then running mean and variance of each BatchNorm layer."""
    kept = [(layer.running_mean, layer.running_var) for layer in batch_norms(module).values()]
    return [*module.parameters(), *(values for pair in kept for values in pair if values is not None)]


def vector(module: nn.Module) -> NDArray[np.float32]:
    with torch.no_grad():
        # reshape, not view: a weight that is laid out channels last still reads as (out, in, row, column)
        return torch.cat([values.reshape(-1) for values in carried(module)]).cpu().numpy()


def put(module: nn.Module, theta: NDArray[np.float32]) -> nn.Module:
    """The module with the weights θ."""
    start = 0
    with torch.no_grad():
        for values in carried(module):
            part = np.ascontiguousarray(theta[start : start + values.numel()], np.float32)
            values.copy_(torch.tensor(part).view_as(values))
            start += values.numel()
        for layer in batch_norms(module).values():
            if layer.running_var is not None:  # a server update may step below 0, where no variance is
                layer.running_var.clamp_(min=0)
    return module


def parts(module: nn.Module, values: NDArray[np.float32]) -> list[torch.Tensor]:
    """What of a vector like θ belongs to each parameter that is trained; changing them changes the vector."""
    split = torch.from_numpy(values).split([each.numel() for each in carried(module)])
    pairs = zip(module.parameters(), split, strict=False)  # statistics come behind and are not trained
    return [part.view(parameter.shape) for parameter, part in pairs if parameter.requires_grad]


def draws_random_numbers(module: nn.Module, inputs: torch.Tensor) -> bool:
    """Whether a step of training uses torch's random numbers, of which there is one generator for all threads."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        before = torch.get_rng_state()
        try:
            copy.deepcopy(module).train()(inputs)
        except Exception:  # what is wrong with it is said elsewhere
            return True
        return not torch.equal(before, torch.get_rng_state())


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


def usable(device: str) -> torch.device:
    """The device of that name; EngineError where this machine has none."""
    try:
        found = torch.device(device)
        torch.zeros(1, device=found).cpu()
    except Exception as problem:  # of many types, by the kind of device
        raise EngineError(f"learning.device: '{device}' cannot be used here: {sentence(problem)}") from problem
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
        raise EngineError(f"the model does not accept {what}: {sentence(error)}") from error
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
