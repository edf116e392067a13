"""Local SGD with momentum, weight decay, clipping, FedProx's term and SCAFFOLD's control variates.

What a step does is in contract.LocalSGD; docs/learning.md says which fields are which algorithm.

SCAFFOLD, option II of its Algorithm 1, with steps of the round's rate η, the c_k of device k and the server's c:

    y ← y − η (g + c − c_k)  in each of the s steps;   c_k⁺ = c_k − c + (θ − y)/(s η);   c ← c + Σ_sent (c_k⁺ − c_k)/K

Choice: a device whose update does not arrive keeps its c_k, so that c stays the mean of all c_k. Momentum that is kept
is the device's own, and is kept whether its update arrives or not.

References: T. Li et al., "Federated Optimization in Heterogeneous Networks" (FedProx), MLSys 2020, arXiv:1812.06127;
S. P. Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020,
arXiv:1910.06378.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from feelstream.arrays import Flags, Ids, Nested
from feelstream.learning.contract import Learner, LocalSGD, Training
from feelstream.learning.local.base import Cohort, LocalTraining
from feelstream.learning.local.batches import Sampling, mini_batches
from feelstream.learning.local.device_rows import rows_of, with_rows
from feelstream.learning.local.schedules import Schedule, factor
from feelstream.learning.sample_numbers import ABSENT
from feelstream.plugins import Count, Fraction, NonNegative, Positive


class Sgd(LocalTraining):
    """Mini-batch SGD, from θ."""

    tag: ClassVar[str] = "sgd"

    steps: Count = Field(default=20, description="mini-batch steps of a scheduled device per round; ≥ 1")
    epochs: Count | None = Field(
        default=None, description="passes over what a device holds, in place of steps; ≥ 1, left out: steps count"
    )
    batch: Count = Field(default=32, description="samples of a mini-batch; ≥ 1")
    sampling: Sampling = Field(
        default="replacement",
        description="replacement: every sample is drawn from all that the device holds; epoch: in a random order, each "
        "once, then again",
    )
    lr: Positive = Field(default=0.02, description="learning rate; > 0")
    schedule: Schedule = Field(
        default="constant",
        description="of the rate over rounds: constant, step (times decay every so many), cosine (to floor) or inverse",
    )
    decay: Annotated[float, Field(strict=True, gt=0, le=1)] = Field(
        default=0.5, description="step: factor; inverse: the rate is lr/(1 + decay·(t − 1)/every); above 0, at most 1"
    )
    every: Count = Field(default=10, description="rounds to which decay refers; ≥ 1")
    floor: Fraction = Field(default=0.0, description="cosine: the rate falls to this fraction of lr; 0 to 1")
    momentum: Annotated[float, Field(strict=True, ge=0, lt=1)] = Field(
        default=0.0, description="v ← momentum·v + g, and the step is lr·v; at least 0 (none), below 1"
    )
    nesterov: bool = Field(default=False, strict=True, description="Nesterov's form of momentum")
    weight_decay: NonNegative = Field(default=0.0, description="times the weights is added to the gradient; ≥ 0")
    prox: NonNegative = Field(default=0.0, description="μ of FedProx: μ(w − θ) is added to the gradient; ≥ 0")
    clip: Positive | None = Field(
        default=None, description="largest norm of a gradient, longer ones are scaled; > 0, left out: no limit"
    )
    keep: Literal["none", "momentum", "scaffold"] = Field(
        default="none",
        description="what devices keep between rounds: none, their momentum, or scaffold: its control variates",
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.nesterov and not self.momentum:
            raise ValueError(".nesterov: must be false where momentum = 0")
        if self.keep == "momentum" and not self.momentum:
            raise ValueError(".keep: must not be momentum where momentum = 0")
        if self.keep == "scaffold" and (self.momentum or self.prox or self.clip is not None):
            raise ValueError(".keep: scaffold goes with plain SGD: momentum and prox must be 0, and clip left out")
        return self

    @property
    def shape(self) -> tuple[int, int] | None:
        return (self.steps, self.batch) if self.epochs is None else None

    @property
    def remembers(self) -> bool:
        return self.keep != "none"

    @property
    def vectors_sent(self) -> int:
        return 2 if self.keep == "scaffold" else 1  # the change of c_k is sent beside that of θ

    def diverged(self, round: int) -> str:
        return (
            f"learning.local.lr: training diverged in round {round} with a learning rate of {self.lr:g}; choose a "
            "smaller one"
        )

    def rate(self, round: int, rounds: int) -> float:
        """The learning rate of a round."""
        if self.schedule == "constant":
            return self.lr
        return self.lr * factor(self.schedule, round, rounds, decay=self.decay, every=self.every, floor=self.floor)

    def sgd(self, round: int, rounds: int) -> LocalSGD:
        """What the devices do in each step of a round."""
        return LocalSGD(self.rate(round, rounds), self.momentum, self.nesterov, self.weight_decay, self.prox, self.clip)

    def train(
        self, learner: Learner, theta: NDArray[np.float32], cohort: Cohort, state: Nested
    ) -> tuple[Training, Nested]:
        batches = mini_batches(cohort, self.steps, self.epochs, self.batch, self.sampling)
        sgd = self.sgd(cohort.round, cohort.rounds)
        if self.keep == "momentum":
            before = rows_of(state.get("momentum", {}), cohort.ids, len(theta))
            training = learner.train(theta, batches, sgd, momentum=before)
            assert training.momentum is not None
            return training, {"momentum": training.momentum}
        if self.keep == "scaffold":
            return _scaffold(learner, theta, batches, sgd, cohort, state)
        return learner.train(theta, batches, sgd), {}

    def update(self, state: Nested, after: Nested, cohort: Cohort, sent: Flags) -> Nested:
        if self.keep == "momentum":
            everyone = np.ones(len(cohort.ids), bool)
            return {"momentum": with_rows(state.get("momentum", {}), cohort.ids, after["momentum"], everyone)}
        if self.keep == "scaffold":
            own = with_rows(state.get("own", {}), cohort.ids, after["own"], sent)
            change = after["change"][sent].sum(axis=0, dtype=np.float64) / cohort.devices
            common = state.get("common", np.zeros(len(change), np.float32))
            return {"own": own, "common": (common + change).astype(np.float32)}
        return state


def _scaffold(
    learner: Learner, theta: NDArray[np.float32], batches: Ids, sgd: LocalSGD, cohort: Cohort, state: Nested
) -> tuple[Training, Nested]:
    own = rows_of(state.get("own", {}), cohort.ids, len(theta))
    common = state.get("common", np.zeros(len(theta), np.float32))
    training = learner.train(theta, batches, sgd, correction=common - own)
    steps = (batches != ABSENT).any(axis=2).sum(axis=1)[:, None]
    moved = steps * sgd.largest_lr  # 0 where a schedule has brought the rate down to nothing
    gradient = -training.updates / np.where(moved > 0, moved, 1) - (common - own)  # the mean of g over the steps
    change = np.where(moved > 0, gradient - own, 0).astype(np.float32)
    return training, {"own": own + change, "change": change}
