"""What the engines should compute, in PyTorch's float64: its own layers, its own optimiser."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from feelstream.data.datasets import Dataset, assembled
from feelstream.learning.contract import LocalSGD
from feelstream.learning.models import Conv, Dense, MaxPool, Model, ReLU

if TYPE_CHECKING:
    import torch
    from torch import nn
else:
    try:
        import torch
        from torch import nn
    except ImportError:  # the tests against it skip; those of the engine alone do not need it
        torch = nn = None

MEAN, STD = 0.3, 0.4
TOLERANCE = 1e-4  # of the update's norm: float32 arithmetic over 20 steps against float64


def data(model: Model, samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (samples, *model.input), dtype=np.uint8)
    return images, rng.integers(0, model.classes, samples)


def data_set(model: Model, samples: int = 80, tests: int = 50) -> Dataset:
    return of_arrays(*data(model, samples), *data(model, tests, 1))


def of_arrays(
    images: np.ndarray, labels: np.ndarray, test_images: np.ndarray, test_labels: np.ndarray, *moments: float
) -> Dataset:
    """moments: mean and deviation, MEAN and STD unless they are given."""
    arrays = {"x_train": images, "y_train": labels, "x_test": test_images, "y_test": test_labels}
    made = assembled("random", arrays, "none")
    return replace(made, normalisation=moments or (MEAN, STD))  # pyright: ignore[reportArgumentType]


def needs_torch() -> None:
    pytest.importorskip("torch", reason="needs PyTorch: install feelstream[torch]")


def torch_module(model: Model, theta: np.ndarray) -> nn.Sequential:
    needs_torch()
    modules: list[nn.Module] = []
    shape = model.input
    for layer, after in zip(model.layers, model.shapes(), strict=True):
        match layer:
            case Conv(channels):
                modules += [padding_of(layer), nn.Conv2d(shape[0], channels, (layer.rows, layer.columns))]
            case MaxPool(rows, columns):
                modules.append(nn.MaxPool2d((rows, columns)))
            case ReLU():
                modules.append(nn.ReLU())
            case Dense(units):
                modules += [nn.Flatten(), nn.Linear(prod(shape), units), nn.Unflatten(1, after)]
        shape = after
    module = nn.Sequential(*modules, nn.Flatten()).double()
    nn.utils.vector_to_parameters(torch.from_numpy(theta.astype(np.float64)), module.parameters())
    return module


def padding_of(layer: Conv) -> nn.Module:
    """By hand rather than by padding="same": (before, behind) of columns, then of rows."""
    sides = [(zeros // 2, zeros - zeros // 2) for zeros in (layer.columns - 1, layer.rows - 1)]
    return nn.ZeroPad2d((*sides[0], *sides[1]) if layer.same else 0)


def torch_input(images: np.ndarray) -> torch.Tensor:
    return (torch.from_numpy(images).double() / 255 - MEAN) / STD


def torch_training(
    model: Model,
    images: np.ndarray,
    labels: np.ndarray,
    theta: np.ndarray,
    batches: np.ndarray,
    sgd: LocalSGD | float,
    momentum: np.ndarray | None = None,
    correction: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """What train should give, for one device: (update, losses, momentum) in float64.

    torch.optim.SGD and torch.nn.utils.clip_grad_norm_, with the gradients of the proximal term and of the correction
    added by hand; batches are (steps, batch), with −1 behind the samples of a step.
    """
    sgd = sgd if isinstance(sgd, LocalSGD) else LocalSGD(sgd)
    module = torch_module(model, theta)
    weights = list(module.parameters())
    start = [weight.detach().clone() for weight in weights]
    optimiser = torch.optim.SGD(
        weights, 1.0, momentum=sgd.momentum, nesterov=sgd.nesterov, weight_decay=sgd.weight_decay
    )
    if momentum is not None:
        for weight, part in zip(weights, _parts(weights, momentum), strict=True):
            optimiser.state[weight]["momentum_buffer"] = part.clone()
    added = None if correction is None else _parts(weights, correction)
    losses = np.full(batches.shape, np.nan)
    rates = sgd.lr if isinstance(sgd.lr, tuple) else (sgd.lr,) * len(batches)
    for step, batch in enumerate(batches):
        there = batch[batch >= 0]
        if not len(there):
            continue
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(
            module(torch_input(images[there])), torch.from_numpy(labels[there]), reduction="none"
        )
        loss.mean().backward()
        for i, weight in enumerate(weights):
            assert weight.grad is not None
            weight.grad += sgd.prox * (weight.detach() - start[i])
            if added is not None:
                weight.grad += added[i]
        if sgd.clip is not None:
            nn.utils.clip_grad_norm_(weights, sgd.clip)
        optimiser.param_groups[0]["lr"] = rates[step]
        optimiser.step()
        losses[step, : len(there)] = loss.detach().numpy()
    update = nn.utils.parameters_to_vector(weights).detach().numpy() - theta
    return update, losses, _momentum(optimiser, weights) if sgd.momentum else None


def _parts(weights: list[Any], vector: np.ndarray) -> list[Any]:
    split = torch.from_numpy(vector.astype(np.float64)).split([weight.numel() for weight in weights])
    return [part.view_as(weight) for part, weight in zip(split, weights, strict=True)]


def _momentum(optimiser: Any, weights: list[Any]) -> np.ndarray:
    return torch.cat([optimiser.state[weight]["momentum_buffer"].reshape(-1) for weight in weights]).numpy()
