"""The networks of both workloads and their test, for the contenders that are built on PyTorch.

mnist: the paper's network of 21,840 parameters. cifar: three 3×3 convolutions, 94,890 parameters.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from workload import Workload


def network(work: Workload, seed: int | None = None) -> nn.Sequential:
    """seed: of its weights; the workload's own where it is left out."""
    torch.manual_seed(work.seed if seed is None else seed)
    if work.workload == "cifar":
        return nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(),
            nn.Flatten(), nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 10),
        )  # fmt: skip
    return nn.Sequential(
        nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10),
    )  # fmt: skip


def drawn(share: Tensor, count: int) -> Tensor:
    """So many of a client's images in a random order; where it has fewer, in several orders, one after the other."""
    orders = [torch.randperm(len(share)) for _ in range(-(-count // len(share)))]
    return share[torch.cat(orders)[:count]]


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
        for chosen in drawn(share, steps * batch).split(batch):
            yield self.pixels[chosen], self.labels[chosen]

    def in_order(self, batch: int) -> list[tuple[Tensor, Tensor]]:
        return list(zip(self.pixels.split(batch), self.labels.split(batch), strict=True))
