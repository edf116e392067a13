"""A user's own training function, for the torch engine: `kind = "file.py:train"`.

    def train(module, sampler, round, state, generator):      # or with a sixth parameter, lr
        for inputs, labels in sampler:                        # this round's mini-batches
            …                                                 # change the weights of `module` as you like
            sampler.report(losses)                            # of the samples of this mini-batch, where a policy asks
        return {"momentum": v}                                # what the device keeps (plain arrays), or nothing

`module` has the weights θ, `state` is what the device kept ({} at first), `generator` a torch.Generator keyed by round
and device; torch's global generator, which dropout uses, is seeded from it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from inspect import signature
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from feelstream.arrays import Flags, Nested
from feelstream.errors import ScenarioError
from feelstream.learning.contract import Learner, Training
from feelstream.learning.local.base import Cohort, LocalTraining
from feelstream.learning.local.batches import Sampling
from feelstream.plugins import Count, Kind, Positive, import_object


class OwnFunction(LocalTraining):
    """A user's training function and how its mini-batches are drawn; a class is made for each function."""

    needs_torch: ClassVar[bool] = True
    function: ClassVar[Callable[..., Any]]
    wants_lr: ClassVar[bool] = False

    steps: Count = Field(default=20, description="mini-batches of a scheduled device per round; ≥ 1")
    epochs: Count | None = Field(default=None, description="passes over what a device holds, in place of steps; ≥ 1")
    batch: Count = Field(default=32, description="samples of a mini-batch; ≥ 1")
    sampling: Sampling = Field(default="replacement", description="as of sgd")
    lr: Positive = Field(default=0.02, description="given to a function that has a parameter lr; > 0")

    @property
    def shape(self) -> tuple[int, int] | None:
        return (self.steps, self.batch) if self.epochs is None else None

    def train(
        self, learner: Learner, theta: NDArray[np.float32], cohort: Cohort, state: Nested
    ) -> tuple[Training, Nested]:
        from feelstream.learning.local.own_torch import train_devices

        return train_devices(self, learner, theta, cohort, state)

    def update(self, state: Nested, after: Nested, cohort: Cohort, sent: Flags) -> Nested:
        """A device keeps what its function returned, whether its update arrives or not."""
        return {**state, **after}


class LocalTrainings(Kind[type[LocalTraining]]):
    """Classes of local training by name, and functions of users' own."""

    def lookup(self, name: str) -> type[LocalTraining]:
        if name in self.ours or ":" not in name:
            return super().lookup(name)
        found = import_object(name)
        return super().lookup(name) if isinstance(found, type) or not callable(found) else class_of(name, found)


@lru_cache(maxsize=64)
def class_of(name: str, function: Callable[..., Any]) -> type[OwnFunction]:
    """The settings class of a function."""
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
    wants_lr = any(p.name == "lr" for p in parameters)
    body = {"tag": name, "function": staticmethod(function), "wants_lr": wants_lr}
    body["__module__"] = getattr(function, "__module__", __name__)  # its file is that of the function
    annotated = {"tag": ClassVar[str], "function": ClassVar[Any], "wants_lr": ClassVar[bool]}
    return type("OwnFunction", (OwnFunction,), {**body, "__annotations__": annotated})
