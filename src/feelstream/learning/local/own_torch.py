"""Devices that train by a user's own function on PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from feelstream.arrays import Ids, Nested
from feelstream.errors import EngineError, FeelstreamError, ScenarioError, explain
from feelstream.learning.contract import Learner, Training
from feelstream.learning.local.base import Cohort
from feelstream.learning.local.batches import mini_batches
from feelstream.learning.sample_numbers import ABSENT
from feelstream.learning.torch_engine import TorchLearner
from feelstream.learning.torch_modules import vector
from feelstream.randomness import Purpose

if TYPE_CHECKING:
    from feelstream.learning.local.own import OwnFunction


class Sampler:
    """The mini-batches of one device in one round: (inputs, labels) each, as the engine feeds them to the module."""

    def __init__(self, learner: TorchLearner, batches: Ids, held: int) -> None:
        self._learner, self._batches, self._at = learner, batches, -1
        self.losses = np.full(batches.shape, np.nan, np.float32)
        self.held = held  # samples that the device holds

    def __len__(self) -> int:
        return int((self._batches != ABSENT).any(axis=1).sum())

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for at in range(len(self)):
            self._at, batch = at, self._batches[at]
            yield self._learner.inputs(batch[batch != ABSENT])

    def report(self, losses: torch.Tensor) -> None:
        """The loss of each sample of the mini-batch at hand: policies that go by losses are told them."""
        values = losses.detach().cpu().numpy().astype(np.float32)
        wanted = int((self._batches[self._at] != ABSENT).sum())
        if values.shape != (wanted,):
            raise ValueError(f"report takes one loss per sample, {wanted} of them, not an array of {values.shape}")
        self.losses[self._at, :wanted] = values


def train_devices(
    own: OwnFunction, learner: Learner, theta: NDArray[np.float32], cohort: Cohort, state: Nested
) -> tuple[Training, Nested]:
    """Every device by itself, one after the other: torch has one global generator."""
    if not isinstance(learner, TorchLearner):
        raise ScenarioError(
            f"learning.local.kind: '{own.plugin_name()}' trains nn.Modules; use learning.engine = torch"
        )
    batches = mini_batches(cohort, own.steps, own.epochs, own.batch, own.sampling)
    updates, losses = np.empty((len(cohort.ids), len(theta)), np.float32), np.empty(batches.shape, np.float32)
    after: Nested = {}
    for row, k in enumerate(cohort.ids.tolist()):
        seed = int(cohort.rng(k, Purpose.LOCAL_TRAINING).integers(2**63))
        module, sampler = learner.module(theta).train(), Sampler(learner, batches[row], len(cohort.held(k)))
        with learner.alone(seed):
            kept = _called(own, k, module, sampler, cohort.round, dict(state.get(str(k), {})), seed)
        updates[row], losses[row] = vector(module) - theta, sampler.losses
        if kept:
            after[str(k)] = kept
    if not np.isfinite(updates).all():
        raise EngineError(own.diverged(cohort.round))
    return Training(updates, losses), after


def _called(own: OwnFunction, device: int, module: Any, sampler: Sampler, round: int, state: Nested, seed: int) -> Any:
    more = {"lr": own.lr} if own.wants_lr else {}
    when = f"for device {device} in round {round}"
    try:
        kept = own.function(module, sampler, round, state, torch.Generator().manual_seed(seed), **more)
    except (FeelstreamError, KeyboardInterrupt):
        raise
    except BaseException as problem:
        what = explain(problem, "site-packages", "dist-packages")
        raise EngineError(f"learning.local.kind: '{own.plugin_name()}' failed {when}: {what}") from problem
    if isinstance(kept, dict):
        kept = {name: np.asarray(value) for name, value in kept.items()}
    plain = isinstance(kept, dict) and all(
        isinstance(name, str) and array.dtype.kind in "biuf" for name, array in kept.items()
    )
    if kept is not None and not plain:
        raise EngineError(
            f"learning.local.kind: '{own.plugin_name()}' must return a dictionary of arrays, or nothing, {when}"
        )
    return kept
