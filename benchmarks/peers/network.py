"""The paper's network of 21,840 parameters and its test, for the contenders that are built on PyTorch."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


def network(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10),
    )  # fmt: skip


@torch.inference_mode()
def accuracy(module: nn.Module, batches: Iterable[tuple[Tensor, Tensor]]) -> float:
    module.eval()
    right = tested = 0
    for pixels, labels in batches:
        right += int((module(pixels).argmax(1) == labels).sum())
        tested += len(labels)
    return right / tested


class Batches:
    """Random batches of a client's share by indexing, test batches by slicing: no single samples in Python."""

    def __init__(self, pixels: Tensor, labels: Tensor, layout: torch.memory_format = torch.contiguous_format) -> None:
        self.pixels, self.labels = pixels.contiguous(memory_format=layout), labels

    def draw(self, share: Tensor, steps: int, batch: int) -> Iterable[tuple[Tensor, Tensor]]:
        for chosen in share[torch.randperm(len(share))[: steps * batch]].split(batch):
            yield self.pixels[chosen], self.labels[chosen]

    def in_order(self, batch: int) -> list[tuple[Tensor, Tensor]]:
        return list(zip(self.pixels.split(batch), self.labels.split(batch), strict=True))
