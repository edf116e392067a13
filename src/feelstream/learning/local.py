"""Local training: what a scheduled device does with its data between θ and its update.

A training is a frozen settings object. What devices keep between rounds is its state, nested dictionaries of arrays
that the simulation keeps, stores in checkpoints and hands back:

    training, after = local.train(learner, theta, cohort, state)     each round; `state` is {} before the first
    state           = local.update(state, after, cohort, sent)       once it is known whose update arrived

Ours is SGD with momentum, weight decay, clipping, FedProx's term and SCAFFOLD's control variates. What a step does is
in contract.LocalSGD; docs/learning.md says which fields are which algorithm. A function of the user's own is in
own_function.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, cos, pi
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from feelstream.arrays import Flags, Frozen, Ids, Nested
from feelstream.guard import STATE, Array, One, Out, Pair
from feelstream.learning.contract import ABSENT, BelowOne, Learner, LocalSGD, Training
from feelstream.plugins import Count, Fraction, Kind, NonNegative, Plugin, Positive, import_object, name_of
from feelstream.randomness import Purpose, generator

Sampling = Literal["replacement", "epoch"]
Schedule = Literal["constant", "step", "cosine", "inverse"]
Rows = NDArray[np.float32]


@dataclass(frozen=True)
class Cohort(Frozen):
    """The n devices that train in a round, all of which hold data; every draw is keyed by round and device.

    Attributes:
        seed: Of the run.
        round: t, from 1.
        rounds: T, of the whole run.
        devices: K.
        ids: (n,) who trains.
        held: Of a device, the numbers of all samples that it holds.
        draw: Of a device, a shape and random numbers: samples drawn from what it holds, with replacement.
    """

    seed: int
    round: int
    rounds: int
    devices: int
    ids: Ids
    held: Callable[[int], Ids]
    draw: Callable[[int, tuple[int, ...], np.random.Generator], Ids]

    def rng(self, device: int, purpose: Purpose = Purpose.MINI_BATCHES) -> np.random.Generator:
        """The random numbers of a device in this round."""
        return generator(self.seed, purpose, self.round, int(device))


class LocalTraining(Plugin):
    """Base of all local training: give it a `train`, and an `update` if devices are to remember something."""

    plugin_field: ClassVar[str] = "learning.local"
    contract: ClassVar[Mapping[str, Out]] = {
        "train": Out(
            Pair(
                One(Training, updates=Array(("n", "d"), dtype=np.float32), losses=Array(("n", None, None), nan=True)),
                STATE,
            )
        ),
        "update": Out(STATE),
    }

    needs_torch: ClassVar[bool] = False  # only the torch engine can run it

    @property
    def shape(self) -> tuple[int, int] | None:
        """(steps, batch) of a device in a round; None where that depends on what it holds."""
        return None

    @property
    def remembers(self) -> bool:
        """Whether devices keep anything between rounds."""
        return type(self).update is not LocalTraining.update

    @property
    def vectors_sent(self) -> int:
        """Vectors as long as θ that an update consists of."""
        return 1

    def diverged(self, round: int) -> str:
        """The sentence for a model that is no longer finite."""
        return f"learning.local: training by '{self.plugin_name()}' diverged in round {round}; choose other settings"

    @abstractmethod
    def train(
        self, learner: Learner, theta: NDArray[np.float32], cohort: Cohort, state: Nested
    ) -> tuple[Training, Nested]:
        """Updates and losses of the cohort, in its order, and what `update` has to know. `state` is read-only."""
        ...

    def update(self, state: Nested, after: Nested, cohort: Cohort, sent: Flags) -> Nested:
        """The state after the round; sent: (n,) whose update the server received."""
        return state


class MiniBatches(LocalTraining):
    """Base of local training by mini-batches of what a device holds; every draw is keyed by round and device."""

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

    @property
    def shape(self) -> tuple[int, int] | None:
        return (self.steps, self.batch) if self.epochs is None else None

    def batches(self, cohort: Cohort) -> Ids:
        """(n, most steps, batch) sample numbers, ABSENT where a device takes fewer steps or a batch is short."""
        return padded_rows([self.of_device(cohort, int(k)) for k in cohort.ids], self.batch)

    def of_device(self, cohort: Cohort, device: int) -> Ids:
        """(steps, batch) sample numbers of one device, ABSENT behind those of a short batch.

        replacement: each sample of each batch is drawn by itself; with epochs, ⌈epochs · |S_k| / batch⌉ batches.
        epoch: batches follow one another through a random order of all that the device holds, the last of which may be
            short; then another order begins. With epochs, as many orders.
        """
        rng, steps = cohort.rng(device), self.steps
        if self.sampling == "replacement":
            if self.epochs is not None:
                steps = ceil(self.epochs * len(cohort.held(device)) / self.batch)
            return cohort.draw(device, (steps, self.batch), rng)
        held = cohort.held(device)
        each = ceil(len(held) / self.batch)
        passes = self.epochs if self.epochs is not None else ceil(steps / each)
        found = np.full((passes, each * self.batch), ABSENT, np.int64)
        for order in found:
            order[: len(held)] = rng.permutation(held)
        return found.reshape(passes * each, self.batch)[: steps if self.epochs is None else None]


def padded_rows(drawn: Sequence[Ids], *shape: int) -> Ids:
    """(n, most, *shape) the sample numbers of n devices, ABSENT behind those of a device that has fewer.

    >>> padded_rows([np.array([3, 5]), np.array([4])]).tolist()
    [[3, 5], [4, -1]]
    """
    found = np.full((len(drawn), max(map(len, drawn), default=0), *shape), ABSENT, np.int64)
    for row, own in zip(found, drawn, strict=True):
        row[: len(own)] = own
    return found


def rows_of(kept: Nested, ids: Ids, length: int) -> Rows:
    """(n, length) what these devices keep.

    >>> rows_of({"ids": np.array([3, 5]), "rows": np.eye(2, dtype=np.float32)}, np.array([5, 4]), 2).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    found = np.zeros((len(ids), length), np.float32)
    if kept:
        there = np.isin(ids, kept["ids"])
        found[there] = kept["rows"][np.searchsorted(kept["ids"], ids[there])]
    return found


def with_rows(kept: Nested, new: Nested) -> Nested:
    """The same with what is new of some devices in place: columns by name, of which `ids` ascend, none there twice."""
    if not len(new["ids"]):
        return kept
    if kept:
        others = ~np.isin(kept["ids"], new["ids"])
        new = {name: np.concatenate([kept[name][others], column]) for name, column in new.items()}
    order = np.argsort(new["ids"], kind="stable")
    return {name: column[order] for name, column in new.items()}


class Sgd(MiniBatches):
    """Mini-batch SGD, from θ.

    SCAFFOLD, option II of its Algorithm 1, with steps of the round's rate η, the c_k of device k and the server's c:

        y ← y − η (g + c − c_k)  in each of the s steps;  c_k⁺ = c_k − c + (θ − y)/(s η);  c ← c + Σ_sent (c_k⁺ − c_k)/K

    Choice: a device whose update does not arrive keeps its c_k, so that c stays the mean of all c_k. Momentum that is
    kept is the device's own, and is kept whether its update arrives or not.

    References: T. Li et al., "Federated Optimization in Heterogeneous Networks" (FedProx), MLSys 2020,
    arXiv:1812.06127; S. P. Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning",
    ICML 2020, arXiv:1910.06378.
    """

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
    momentum: BelowOne = Field(
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
        """The learning rate of round t of T, which is lr in the first.

        constant: lr
        step:     lr decay^⌊(t − 1)/every⌋
        cosine:   lr (floor + (1 − floor)(1 + cos(π (t − 1)/T)) / 2)
        inverse:  lr / (1 + decay (t − 1)/every)

        >>> [Sgd(lr=1.0, schedule="step", decay=0.5, every=2).rate(t, 4) for t in (1, 2, 3, 4)]
        [1.0, 1.0, 0.5, 0.5]
        """
        before = round - 1
        match self.schedule:
            case "constant":
                return self.lr
            case "step":
                return self.lr * self.decay ** (before // self.every)
            case "cosine":
                return self.lr * (self.floor + (1 - self.floor) * (1 + cos(pi * before / rounds)) / 2)
            case "inverse":
                return self.lr * (1 / (1 + self.decay * before / self.every))

    def train(
        self, learner: Learner, theta: NDArray[np.float32], cohort: Cohort, state: Nested
    ) -> tuple[Training, Nested]:
        batches, lr = self.batches(cohort), self.rate(cohort.round, cohort.rounds)
        sgd = LocalSGD(lr, self.momentum, self.nesterov, self.weight_decay, self.prox, self.clip)
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
            return {"momentum": with_rows(state.get("momentum", {}), {"ids": cohort.ids, "rows": after["momentum"]})}
        if self.keep == "scaffold":
            own = with_rows(state.get("own", {}), {"ids": cohort.ids[sent], "rows": after["own"][sent]})
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


class LocalTrainings(Kind[type[LocalTraining]]):
    """Classes of local training by name, and functions of users' own."""

    takes_functions = True

    def lookup(self, name: Any) -> type[LocalTraining]:
        """name: or the function itself."""
        found = import_object(name) if isinstance(name, str) and ":" in name else name
        if callable(found) and not isinstance(found, type):
            from feelstream.learning.own_function import class_of

            return class_of(name if isinstance(name, str) else name_of(found), found)
        return super().lookup(name)


LOCAL_TRAININGS = LocalTrainings("local_training", "local_training", LocalTraining, {"sgd": Sgd})
