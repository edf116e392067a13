"""The learning task: a small network, how it is trained and tested."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from flower_mnist.stream import CLASSES, dataset


def network() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 32), nn.ReLU(), nn.Linear(32, CLASSES))


def inputs(images: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(images.reshape(len(images), -1) / np.float32(255)).float()


def train(model: nn.Module, name: str, samples: np.ndarray, steps: int, lr: float) -> float:
    data, optimiser = dataset(name), torch.optim.SGD(model.parameters(), lr)
    loss = torch.zeros(())
    for _ in range(steps):
        batch = np.random.default_rng().choice(samples, 32)
        loss = cross_entropy(model(inputs(data.train_images[batch])), torch.from_numpy(data.train_labels[batch]).long())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return float(loss.detach())


@torch.inference_mode()
def test(model: nn.Module, name: str) -> tuple[float, float]:
    """(loss, accuracy) on the whole test set."""
    data = dataset(name)
    logits, labels = model(inputs(data.test_images)), torch.tensor(data.test_labels).long()
    return float(cross_entropy(logits, labels)), float((logits.argmax(1) == labels).float().mean())
