"""Local SGD on PyTorch tensors: the steps that contract.LocalSGD describes.

torch.optim.SGD would do the same, but imports its compiler at the first step, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from feelstream.learning.contract import LocalSGD

Tensors = Sequence[torch.Tensor]


class Descent:
    """The steps of one device.

    weights: the parameters that are trained; `step` changes them.
    velocity: momentum's state, like them; `step` changes it. None without momentum.
    correction: like them, added to every gradient, or None.
    """

    def __init__(self, sgd: LocalSGD, weights: Tensors, velocity: Tensors | None, correction: Tensors | None) -> None:
        self.sgd, self.weights, self.velocity, self.correction = sgd, weights, velocity, correction
        self.start = [weight.detach().clone() for weight in weights] if sgd.prox else None

    @torch.no_grad()
    def step(self, gradients: Sequence[torch.Tensor | None], lr: float) -> None:
        """One step; a parameter that the loss does not depend on (gradient None) stays as it is, as in PyTorch."""
        used = [i for i, gradient in enumerate(gradients) if gradient is not None]
        found = {i: self._objective(i, gradient) for i, gradient in enumerate(gradients) if gradient is not None}
        if self.sgd.clip is not None and used:
            norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(found[i]) for i in used]))
            factor = torch.clamp(self.sgd.clip / (norm + 1e-6), max=1.0)
            found = {i: gradient * factor for i, gradient in found.items()}
        for i in used:
            self.weights[i].sub_(self._direction(i, found[i]), alpha=lr)

    def _objective(self, i: int, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient of the device's objective: with SCAFFOLD's and FedProx's terms."""
        if self.correction is not None:
            gradient = gradient + self.correction[i]
        if self.start is not None:
            gradient = gradient + self.sgd.prox * (self.weights[i] - self.start[i])
        return gradient

    def _direction(self, i: int, gradient: torch.Tensor) -> torch.Tensor:
        """What torch.optim.SGD multiplies by the step size."""
        if self.sgd.weight_decay:
            gradient = gradient.add(self.weights[i], alpha=self.sgd.weight_decay)
        if self.velocity is None:
            return gradient
        velocity = self.velocity[i].mul_(self.sgd.momentum).add_(gradient)
        return gradient.add(velocity, alpha=self.sgd.momentum) if self.sgd.nesterov else velocity
