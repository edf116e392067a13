"""Arrival processes: how many samples reach each device in each round.

A finite process gives every sample of a device's shard one arrival time; an endless one gives each device a
number of arrivals per round, and the device goes through its shard again and again. Either way the j-th
arrival of device k, j = 0, 1, 2, …, is samples[offsets[k] + j mod n_k], so all else deals with positions j.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from feelstream.arrays import Frozen, Ints, Reals
from feelstream.data.datasets.dataset import Labels, Recording
from feelstream.data.streaming.order import Order, Shards, arrange
from feelstream.data.streaming.partition import Owner, Partition
from feelstream.errors import ScenarioError
from feelstream.guard import Array, One, Out, Pair, ask, shown
from feelstream.plugins import Fraction, Plugin
from feelstream.randomness import Purpose, generator

MOST_SAMPLES = 200_000  # of a data set for which the last schedule is kept


@dataclass(frozen=True)
class ArrivalContext(Frozen):
    """What a process is planned for: the data (labels (N,)), the devices, the run and its seed."""

    labels: Labels
    classes: int
    devices: int
    rounds: int
    round_s: float
    seed: int
    partition: Partition
    recording: Recording = field(default_factory=Recording)

    def owners(self, rng: np.random.Generator) -> Owner:
        """The device of each sample, −1 for none."""
        known = self.recording, self.labels, self.devices, self.classes, rng
        return ask(self.partition, "owners", *known, N=len(self.labels))


@dataclass(frozen=True)
class Events(Frozen):
    """All arrivals of a finite process by round: devices int32 (n,), starts int64 (rounds+1,)."""

    devices: NDArray[np.int32]
    starts: Ints


@dataclass(frozen=True)
class ArrivalSchedule:
    """A planned process: the shards, and the events unless the process is endless."""

    shards: Shards
    events: Events | None


def has_shards(process: Plugin, plan: ArrivalSchedule, context: ArrivalContext) -> str | None:
    """Every device has a shard of samples that exist."""
    offsets, samples, K = plan.shards.offsets, plan.shards.samples, context.devices
    if offsets.shape != (K + 1,) or offsets[0] != 0 or offsets[-1] != len(samples) or (np.diff(offsets) < 0).any():
        return f"plans offsets that do not cut {len(samples)} samples into {K} shards: {shown(offsets)}"
    if len(samples) and not (samples.min() >= 0 and samples.max() < len(context.labels)):
        return f"plans with samples that are not there: {shown(samples)}, of {len(context.labels)}"
    if plan.events is not None:
        came = np.bincount(plan.events.devices, minlength=K)
        if len(came) > K or (came > plan.shards.sizes).any():
            return f"plans that {came.max()} samples come to a device, more than its shard has"
    return None


class Arrivals(Plugin, ABC):
    """The contract of every arrival process; derive from FiniteArrivals or EndlessArrivals."""

    plugin_field: ClassVar[str] = "data.arrivals"
    contract: ClassVar[Mapping[str, Out]] = {
        "plan": Out(One(ArrivalSchedule), has_shards),
        "init": Out(Array((...,), "biuf")),
        "counts": Out(Pair(Array(kind="iu", least=0), Array((...,), "biuf"))),
    }

    repeats: ClassVar[bool] = False  # the plan follows from settings, partition, labels and seed alone: no file

    @abstractmethod
    def plan(self, context: ArrivalContext) -> ArrivalSchedule:
        """Fix all that is known before the first round. Without events the process is endless: `counts` is asked."""

    @property
    def overlaps(self) -> bool:
        """Whether several devices may hold the same sample, so that |∪ S_j| is not the sum of |S_j|."""
        return False

    def init(self, devices: int, rng: np.random.Generator) -> NDArray:
        """Of an endless process, the state before the first round: one plain array, whose shape may change."""
        return np.empty(0)

    def counts(self, round: int, state: NDArray, devices: int, rng: np.random.Generator) -> tuple[Ints, NDArray]:
        """Of an endless process, new samples of each device in this round, int64 (K,), and the next state.

        A device whose shard is empty receives nothing, whatever is returned for it.
        """
        raise ScenarioError(f"data.arrivals: {self.plugin_name()} plans no events, so it must have `counts`.")


def schedule_of(arrivals: Arrivals, context: ArrivalContext) -> ArrivalSchedule:
    """`arrivals.plan(context)`, or what it gave the last time if nothing differs; its arrays are read-only.

    A schedule is a function of its settings and the seed, and planning one takes as long as playing fifty rounds. Only
    those of a process and a partition that promise so (`repeats`) are kept, and only small ones.
    """
    global _last
    if not (arrivals.repeats and context.partition.repeats) or len(context.labels) > MOST_SAMPLES:
        return ask(arrivals, "plan", context)
    sizes = context.classes, context.devices, context.rounds, context.round_s
    made_for = arrivals, context.partition, context.seed, sizes
    last = _last  # one read: another thread may replace it
    if last is not None and last[0] is context.labels and last[1] == made_for:
        return last[2]  # a data set that is loaded again has other labels, at worst it is planned again
    found = ask(arrivals, "plan", context)
    _last = context.labels, made_for, found
    return found


_last: tuple[Labels, tuple[Any, ...], ArrivalSchedule] | None = None


class OrderedArrivals(Arrivals):
    """Arrivals drawn from a partition, each device's samples in a chosen order."""

    order: Order = Field(
        default="label",
        description="order of a device's samples: label (by class, cyclic, from a random first class of its own), "
        "label_from_any (from any class), label_ascending (the first, then the lowest), label_random, shuffled, or "
        "markov (see stay)",
    )
    stay: Fraction = Field(
        default=0.9, description="order markov only: probability that the next sample has the same label; 0 to 1"
    )

    def shards(self, context: ArrivalContext) -> Shards:
        """Partition the data and put each device's samples in order."""
        rng = generator(context.seed, Purpose.PARTITION)
        owner = context.owners(rng)
        return arrange(owner, context.labels, context.devices, context.classes, self.order, self.stay, rng)


class FiniteArrivals(OrderedArrivals):
    """Every sample arrives once, at a time drawn before the start; the sorted times follow the order."""

    shared: Fraction = Field(
        default=0.0, description="share of the samples that another device, drawn at random, holds too; 0 to 1"
    )

    @property
    def overlaps(self) -> bool:
        return self.shared > 0

    def shards(self, context: ArrivalContext) -> Shards:
        """With a copy of each shared sample in the shard of a second device, in the same kind of order."""
        if not self.overlaps or context.devices == 1:
            return super().shards(context)
        rng, K = generator(context.seed, Purpose.PARTITION), context.devices
        owner = context.owners(rng)
        copied = np.flatnonzero((owner >= 0) & (rng.random(len(owner)) < self.shared))
        second = (owner[copied] + rng.integers(1, K, len(copied))) % K
        which = np.concatenate([np.arange(len(owner)), copied])
        owners = np.concatenate([owner, second.astype(owner.dtype)])
        found = arrange(owners, context.labels[which], K, context.classes, self.order, self.stay, rng)
        return Shards(found.offsets, which[found.samples].astype(np.int32))

    @abstractmethod
    def times(self, sizes: Ints, run_s: float, rng: np.random.Generator) -> Reals:
        """One arrival time in s per sample, device after device (n = Σ sizes), in any order within a device.

        Samples whose time is beyond `run_s` never arrive.
        """

    def plan(self, context: ArrivalContext) -> ArrivalSchedule:
        shards = self.shards(context)
        rng = generator(context.seed, Purpose.ARRIVALS)
        times = self.times(shards.sizes, context.rounds * context.round_s, rng)
        devices = np.repeat(np.arange(context.devices, dtype=np.int32), shards.sizes)
        if times.shape != devices.shape or not (times >= 0).all():
            raise ScenarioError(
                f"data.arrivals: {self.plugin_name()} must give each of {len(devices)} samples a time, 0 s or later."
            )
        return ArrivalSchedule(shards, events_by_round(times, devices, context))


class EndlessArrivals(OrderedArrivals):
    """Every round brings a drawn number of samples; a device at the end of its shard starts over."""

    @abstractmethod
    def counts(self, round: int, state: NDArray, devices: int, rng: np.random.Generator) -> tuple[Ints, NDArray]:
        """New samples of each device in this round, int64 (K,), and the next state."""

    def plan(self, context: ArrivalContext) -> ArrivalSchedule:
        return ArrivalSchedule(self.shards(context), None)


def events_by_round(times: Reals, devices: NDArray[np.int32], context: ArrivalContext) -> Events:
    """Round t has the events of ((t−1)·T_rd, t·T_rd]; time 0 counts to round 1, times beyond the run to none.

    times: float64 (n,) in s; devices: int32 (n,).
    """
    edges = np.arange(context.rounds + 1) * context.round_s
    rounds = np.maximum(np.searchsorted(edges, times), 1)
    # Round and device in one number: one plain sort groups by round and, within it, by device.
    keys = (rounds * context.devices + devices)[rounds <= context.rounds]
    keys.sort()
    starts = np.searchsorted(keys, np.arange(1, context.rounds + 2) * context.devices)
    return Events((keys % context.devices).astype(np.int32), starts.astype(np.int64))
