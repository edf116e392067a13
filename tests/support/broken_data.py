"""Arrivals and partitions that break one promise each."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from feelstream.data.streaming.arrivals import ArrivalSchedule, Events
from feelstream.data.streaming.order import Shards
from feelstream.data.streaming.partition import IID
from feelstream.data.streaming.processes import Poisson, Uniform
from feelstream.errors import ScenarioError


class Negative(Poisson):
    def counts(self, round: int, state: Any, devices: int, rng: np.random.Generator) -> Any:
        return np.full(devices, -1), state


class Listed(Poisson):
    def init(self, devices: int, rng: np.random.Generator) -> Any:
        return np.array([None] * devices)


class ByHeart(Poisson):
    """Knows its last state as an object: what a checkpoint gives back is another."""

    known: ClassVar[list[Any]] = []

    def counts(self, round: int, state: Any, devices: int, rng: np.random.Generator) -> Any:
        same = round == 1 or any(state is each for each in self.known)
        after = state.copy()
        self.known.append(after)
        return np.full(devices, int(same)), after


class Counting(Poisson):
    """Its number of calls decides, not its state."""

    calls: ClassVar[list[int]] = []

    def counts(self, round: int, state: Any, devices: int, rng: np.random.Generator) -> Any:
        self.calls.append(round)
        return np.full(devices, len(self.calls)), state


class WritesLabels(Uniform):
    def plan(self, context: Any) -> Any:
        context.labels[0] = 1
        return super().plan(context)


class Stray(Uniform):
    def plan(self, context: Any) -> Any:
        found = super().plan(context)
        return ArrivalSchedule(Shards(found.shards.offsets, found.shards.samples + 10**6), found.events)


class TooMany(Uniform):
    def plan(self, context: Any) -> Any:
        found = super().plan(context)
        everyone = np.repeat(np.arange(context.devices, dtype=np.int32), 200)
        starts = np.arange(context.rounds + 1) * len(everyone)
        return ArrivalSchedule(found.shards, Events(np.tile(everyone, context.rounds), starts))


class Global(Uniform):
    def times(self, sizes: Any, run_s: float, rng: np.random.Generator) -> Any:
        return np.random.random(int(sizes.sum())) * run_s  # noqa: NPY002


class Nobody(IID):
    def split(self, labels: Any, devices: int, classes: int, rng: np.random.Generator) -> Any:
        return np.full(len(labels), devices, np.int32)


class Unseeded(IID):
    def split(self, labels: Any, devices: int, classes: int, rng: np.random.Generator) -> Any:
        return super().split(labels, devices, classes, np.random.default_rng())


class Refuses(IID):
    def split(self, labels: Any, devices: int, classes: int, rng: np.random.Generator) -> Any:
        raise ScenarioError("no")


BROKEN_DATA = [
    (Negative(), "contract"),
    (Listed(), "contract"),
    (ByHeart(), "checkpoint"),
    (Counting(), "repeatable"),
    (WritesLabels(), "runs"),
    (Stray(), "contract"),
    (TooMany(), "contract"),
    (Global(), "global random"),
    (Nobody(), "contract"),
    (Unseeded(), "repeatable"),
    (Refuses(), "runs"),
]
