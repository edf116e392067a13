"""Whether PyTorch trains the clients of a round faster together, as one vmapped step, than one after another.

    python benchmarks/cohort.py            ResNet-8 with GroupNorm and four smaller models, n = 10 clients
    python benchmarks/cohort.py --smoke    the smallest, two steps

Contenders, all on one thread, in turns, by CPU time, the least of several takes: **loop**, a plain loop over the
clients with torch.autograd; **engine**, feelstream's engine `torch`, which trains clients one after another on each
of its threads; **vmap**, all clients' weights stacked, and one step of `torch.func.vmap(grad(…))` for all of them.
The losses that the three end with are compared too, so that a faster one is not one that computes something else.
"""

from __future__ import annotations

import argparse
import copy
import os
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap
from torch.nn.functional import cross_entropy, relu

from feelstream.data.datasets import assembled
from feelstream.learning.contract import LocalSGD
from feelstream.learning.models import build
from feelstream.learning.torch_engine import TorchLearner
from feelstream.learning.torch_modules import stack
from machine import described, machine

CLIENTS, LR = 10, 0.02


class Block(nn.Module):
    """Two 3×3 convolutions with GroupNorm; where the width changes, stride 2 and a 1×1 shortcut."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__()
        step = 1 if before == width else 2
        self.first, self.second = (
            nn.Conv2d(before, width, 3, step, 1, bias=False), nn.Conv2d(width, width, 3, 1, 1, bias=False),
        )  # fmt: skip
        self.norms = nn.ModuleList(nn.GroupNorm(8, width) for _ in range(2))
        self.short = nn.Conv2d(before, width, 1, step, bias=False) if step == 2 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inside = relu(self.norms[0](self.first(x)))
        return relu(self.short(x) + self.norms[1](self.second(inside)))


class ResNet8(nn.Module):
    """A convolution, three blocks of 16, 32 and 64 channels, average pooling: 78,042 parameters on CIFAR-10."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.GroupNorm(8, 16)
        self.blocks = nn.Sequential(Block(16, 16), Block(16, 32), Block(32, 64))
        self.last = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.blocks(relu(self.norm(self.first(x)))).mean(dim=(2, 3)))


def named(name: str) -> tuple[nn.Module, tuple[int, int, int]]:
    if name == "resnet8":
        torch.manual_seed(0)
        return ResNet8(), (3, 32, 32)
    shape = (3, 32, 32) if name == "cifar-cnn" else (1, 28, 28)
    model = build(name, shape, 10)
    module = stack(model)
    start = 0
    theta = torch.from_numpy(model.init(0))
    with torch.no_grad():
        for values in module.parameters():
            values.copy_(theta[start : start + values.numel()].view_as(values))
            start += values.numel()
    return module, shape


Made = tuple[nn.Module, torch.Tensor, torch.Tensor, np.ndarray]  # module, inputs and labels of all samples, batches


def loop(made: Made, batches: np.ndarray) -> np.ndarray:
    """Losses (clients, steps) of a plain loop."""
    module, inputs, labels, _ = made
    losses = np.empty(batches.shape[:2])
    for k, own in enumerate(batches):
        client = copy.deepcopy(module)
        trained = list(client.parameters())
        for step, batch in enumerate(own):
            loss = cross_entropy(client(inputs[batch]), labels[batch])
            found = torch.autograd.grad(loss, trained)
            with torch.no_grad():
                for weight, gradient in zip(trained, found, strict=True):
                    weight.sub_(gradient, alpha=LR)
            losses[k, step] = float(loss.detach())
    return losses


def together(made: Made, batches: np.ndarray) -> np.ndarray:
    """The same by one vmapped step for all clients."""
    module, inputs, labels, _ = made
    weights, _ = stack_module_state([module] * len(batches))  # pyright: ignore[reportArgumentType]
    bare = copy.deepcopy(module).to("meta")

    def objective(own: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return cross_entropy(functional_call(bare, own, (x,)), y)

    step_of_all = vmap(grad_and_value(objective))
    losses = np.empty(batches.shape[:2])
    for step in range(batches.shape[1]):
        found, loss = step_of_all(weights, inputs[batches[:, step]], labels[batches[:, step]])
        with torch.no_grad():
            weights = {name: value.sub(found[name], alpha=LR) for name, value in weights.items()}
        losses[:, step] = loss.detach().numpy()
    return losses


def engine(made: Made, batches: np.ndarray) -> Callable[[], np.ndarray]:
    module, _, labels, images = made
    truth = labels.numpy().astype(np.uint8)
    arrays = {"x_train": images, "y_train": truth, "x_test": images[:2], "y_test": truth[:2]}
    learner = TorchLearner(lambda: copy.deepcopy(module), assembled("random", arrays, "none"))
    theta = learner.init(0)
    return lambda: learner.train(theta, batches, LocalSGD(LR)).losses.mean(axis=2)


def measure(name: str, steps: int, batch: int, takes: int) -> dict[str, Any]:
    module, shape = named(name)
    rng = np.random.default_rng(0)
    images = rng.standard_normal((400, *shape), np.float32)
    labels = rng.integers(0, 10, 400)
    batches = rng.integers(0, 400, (CLIENTS, steps, batch))
    made = module, torch.from_numpy(images), torch.from_numpy(labels), images
    contenders: dict[str, Callable[[], np.ndarray]] = {
        "loop": lambda: loop(made, batches), "engine": engine(made, batches), "vmap": lambda: together(made, batches),
    }  # fmt: skip
    losses: dict[str, np.ndarray] = {}
    times: dict[str, list[float]] = {contender: [] for contender in contenders}
    for _ in range(takes):
        for contender, play in contenders.items():
            start = process_time()
            losses[contender] = play()
            times[contender].append(process_time() - start)
    apart = max(float(np.abs(losses[contender] - losses["loop"]).max()) for contender in contenders)
    return {"apart": apart, **{contender: min(taken) / steps for contender, taken in times.items()}}


def main() -> None:
    options = argparse.ArgumentParser(description="Clients of a round together or one after another, on PyTorch.")
    options.add_argument("--smoke", action="store_true", help="the smallest model, two steps")
    options.add_argument("--models", default="softmax,mlp,paper-cnn,cifar-cnn,resnet8")
    options.add_argument("--steps", type=int, default=5)
    options.add_argument("--takes", type=int, default=3)
    asked = options.parse_args()
    models = ["softmax"] if asked.smoke else asked.models.split(",")
    steps, takes = (2, 1) if asked.smoke else (asked.steps, asked.takes)
    torch.set_num_threads(1)
    print(described(machine()) + f"; load {os.getloadavg()[0]:.1f}")
    print(f"one step of {CLIENTS} clients, ms of CPU on one thread; vmap against the faster of the other two")
    print("  model      batch      loop    engine      vmap  vmap is  losses apart")
    for name in models:
        for batch in (8, 32):
            found = measure(name, steps, batch, takes)
            ratio = min(found["loop"], found["engine"]) / found["vmap"]
            line = " ".join(f"{found[each] * 1e3:9.2f}" for each in ("loop", "engine", "vmap"))
            print(f"  {name:10} {batch:5} {line} {ratio:7.2f}× {found['apart']:13.1e}", flush=True)


if __name__ == "__main__":
    main()
