"""The contract of local training: what a scheduled device does with its data between θ and its update.

A training is a frozen settings object. What devices keep between rounds is its state, nested dictionaries of arrays
that the simulation keeps, stores in checkpoints and hands back:

    training, after = local.train(learner, theta, cohort, state)     each round; `state` is {} before the first
    state           = local.update(state, after, cohort, sent)       once it is known whose update arrived
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Flags, Frozen, Ids, Nested
from feelstream.guard import STATE, Array, One, Out, Pair
from feelstream.learning.contract import Learner, Training
from feelstream.plugins import Plugin
from feelstream.randomness import Purpose, generator


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
