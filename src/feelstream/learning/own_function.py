"""A user's own training function, for the torch engine: `kind = "file.py:train"`.

    def train(module, sampler, round, state, generator, lr, rho=0.05):
        for inputs, labels in sampler:                        # this round's mini-batches
            …                                                 # change the weights of `module` as you like
            sampler.report(losses)                            # of the samples of this mini-batch, where a policy asks
        return {"momentum": v}                                # what the device keeps (plain arrays), or nothing

`lr` and parameters with a default are settings, as in `--set learning.local.rho=0.1`; they may be left out. `module`
has the weights θ, `state` is what the device kept ({} at first), `generator` a torch.Generator keyed by round
and device; torch's global generator, which dropout uses, is seeded from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, create_model

from feelstream.arrays import Flags, Ids, Nested
from feelstream.errors import EngineError, FeelstreamError, ScenarioError, sentence_and_place
from feelstream.guard import STATE
from feelstream.learning.contract import ABSENT, Learner, Training
from feelstream.learning.local import Cohort, MiniBatches
from feelstream.plugins import Positive
from feelstream.randomness import Purpose

if TYPE_CHECKING:
    import torch

    from feelstream.learning.torch_engine import TorchLearner


PLAIN = (bool, int, float, str)  # what a parameter's default may be to be a setting


class OwnFunction(MiniBatches):
    """A user's training function and how its mini-batches are drawn; a class is made for each function."""

    needs_torch: ClassVar[bool] = True
    function: ClassVar[Callable[..., Any]]
    own: ClassVar[tuple[str, ...]] = ()  # settings that the function takes by name

    lr: Positive = Field(default=0.02, description="given to a function that has a parameter lr; > 0")

    def train(
        self, learner: Learner, theta: NDArray[np.float32], cohort: Cohort, state: Nested
    ) -> tuple[Training, Nested]:
        """Every device by itself, one after the other: torch has one global generator."""
        import torch

        from feelstream.learning.torch_engine import TorchLearner
        from feelstream.learning.torch_modules import vector

        assert isinstance(learner, TorchLearner)  # needs_torch: there is no other
        batches = self.batches(cohort)
        updates, losses = np.empty((len(cohort.ids), len(theta)), np.float32), np.empty(batches.shape, np.float32)
        after: Nested = {}
        for row, k in enumerate(cohort.ids.tolist()):
            seed = int(cohort.rng(k, Purpose.LOCAL_TRAINING).integers(2**63))
            module, sampler = learner.module(theta).train(), Sampler(learner, batches[row], len(cohort.held(k)))
            random = torch.Generator().manual_seed(seed)
            with learner.alone(seed):
                before = dict(state.get(str(k), {}))
                kept = self._kept(k, module, sampler, cohort.round, before, random)
            updates[row], losses[row] = vector(module) - theta, sampler.losses
            after[str(k)] = kept
        if not np.isfinite(updates).all():
            raise EngineError(self.diverged(cohort.round))
        return Training(updates, losses), after

    def _kept(
        self, device: int, module: Any, sampler: Sampler, round: int, state: Nested, random: torch.Generator
    ) -> Nested:
        """What the function makes a device keep, as arrays by name."""
        when = f"for device {device} in round {round}"
        own = {name: getattr(self, name) for name in self.own}
        try:
            kept = self.function(module, sampler, round, state, random, **own)
        except (FeelstreamError, KeyboardInterrupt):
            raise
        except BaseException as problem:
            what = sentence_and_place(problem, "site-packages", "dist-packages")
            raise EngineError(f"learning.local.kind: '{self.plugin_name()}' failed {when}: {what}") from problem
        if kept is None:
            return {}
        arrays = {name: np.asarray(value) for name, value in kept.items()} if isinstance(kept, dict) else None
        if arrays is None or STATE.problem(arrays, {}):
            raise EngineError(
                f"learning.local.kind: '{self.plugin_name()}' must return a dictionary of arrays, or nothing, {when}"
            )
        return arrays

    def update(self, state: Nested, after: Nested, cohort: Cohort, sent: Flags) -> Nested:
        """A device keeps what its function returned last, whether its update arrives or not."""
        return {device: kept for device, kept in {**state, **after}.items() if kept}


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


@lru_cache(maxsize=64)
def class_of(name: str, function: Callable[..., Any]) -> type[OwnFunction]:
    """The settings class of a function: its parameters with a plain default are fields."""
    try:
        parameters = [p for p in signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    except (TypeError, ValueError):
        parameters = []
    needed = [p.name for p in parameters if p.default is p.empty and p.name != "lr"]
    if len(needed) != 5:
        raise ScenarioError(
            f"'{name}' must take five arguments, module, sampler, round, state and generator, and lr if it likes; it "
            f"takes {', '.join(needed) or 'none'}"
        )
    fields: dict[str, Any] = {
        p.name: (type(p.default), Field(default=p.default, strict=True, description="of the function"))
        for p in parameters
        if type(p.default) in PLAIN and p.name not in OwnFunction.model_fields
    }
    module = getattr(function, "__module__", __name__)  # its file is that of the function
    made = create_model("OwnFunction", __base__=OwnFunction, __module__=module, **fields)
    made.tag, made.function = name, staticmethod(function)
    made.own = tuple(p.name for p in parameters if p.name in made.model_fields)
    return made
