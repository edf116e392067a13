"""The stream: what every device holds, what of it is fresh and what has been used, round after round."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Ints, Nested, read_only
from feelstream.data.datasets.dataset import Recording
from feelstream.data.streaming.arrivals import ArrivalContext, Arrivals, schedule_of
from feelstream.data.streaming.buffers import Buffer, Items, Store
from feelstream.data.streaming.partition import Labels, Partition
from feelstream.errors import PluginError, RunError
from feelstream.guard import ask, freeze
from feelstream.randomness import Purpose, generator

Fresh = Literal["since_use", "per_round"]
UNFIT = "The stored state of the data stream does not fit this scenario; start the run afresh."


class Stream:
    """S_k(t), B_k(t) and S_k(t̂_k) of all devices: sizes and label counts; sample numbers when asked for.

    The array properties are read-only views of the present state: copy what must outlast the round.
    """

    def __init__(
        self,
        *,
        partition: Partition,
        arrivals: Arrivals,
        buffer: Buffer,
        labels: Labels,
        classes: int,
        devices: int,
        rounds: int,
        round_s: float,
        seed: int,
        fresh: Fresh = "since_use",
        recording: Recording | None = None,
        collected: NDArray[np.float64] | None = None,
    ) -> None:
        """Plan the arrivals; labels (N,) below `classes`, `round_s` in s. Nothing has arrived yet.

        fresh: "since_use" (what arrived after the device's last use and is still held) or "per_round" (what
        arrived in this round and is still held). collected: share of the arriving samples that each device keeps,
        (K,); the others are passed over, and it goes through its shard more slowly.
        """
        context = ArrivalContext(labels, classes, devices, rounds, round_s, seed, partition, recording or Recording())
        self._arrivals, self._buffer = arrivals, buffer
        plan = schedule_of(arrivals, context)
        self._events = plan.events
        self._samples, self._offsets = plan.shards.samples, plan.shards.offsets
        self._sizes = plan.shards.sizes
        self._label_at = labels[self._samples]  # uint8, by place in the shards
        self._devices, self._classes, self._rounds, self._seed = devices, classes, rounds, seed
        self._per_round = fresh == "per_round"
        self._collected = collected
        self._round = 0

        endless = plan.events is None
        longest = None if endless else int(self._sizes.max(initial=0))
        self._store: Store = ask(buffer, "store", devices, longest, at=0)
        self._store.buffer = buffer
        self._state = np.empty(0)
        if endless:
            self._state = ask(arrivals, "init", devices, generator(seed, Purpose.ARRIVALS), at=0)
        self._fresh_from = np.zeros(devices, np.int64)  # positions from here on are fresh
        self._stored = np.zeros(devices, np.int64)
        self._fresh = np.zeros(devices, np.int64)
        self._stored_labels = np.zeros((devices, classes), np.int32)
        # Classes first in memory: every round a policy compares each class over all devices.
        self._fresh_labels = np.zeros((classes, devices), np.int32).T
        self._used_labels = np.zeros((devices, classes), np.int32)
        self._used_total = np.zeros(classes, np.int64)

    @property
    def round(self) -> int:
        """The present round; 0 before the first."""
        return self._round

    @property
    def stored(self) -> Ints:
        """|S_k(t)|, int64 (K,)."""
        return read_only(self._stored)

    @property
    def stored_labels(self) -> NDArray[np.int32]:
        """L(S_k(t)), int32 (K, m)."""
        return read_only(self._stored_labels)

    @property
    def fresh(self) -> Ints:
        """|B_k(t)|, int64 (K,)."""
        return read_only(self._fresh)

    @property
    def fresh_labels(self) -> NDArray[np.int32]:
        """L(B_k(t)), int32 (K, m)."""
        return read_only(self._fresh_labels)

    @property
    def used_labels(self) -> NDArray[np.int32]:
        """L(S_k(t̂_k)): what each device held when it was last used, zero if never; int32 (K, m)."""
        return read_only(self._used_labels)

    @property
    def used_total(self) -> Ints:
        """L(X) = Σ_k L(S_k(t̂_k)), int64 (m,)."""
        return read_only(self._used_total)

    def advance(self, round: int) -> None:
        """Let the arrivals of `round` join the buffers; rounds must be taken one by one from 1."""
        if round != self._round + 1:
            raise ValueError(f"round {round} cannot follow round {self._round}")
        self._round = round
        devices, counts = self._arriving(round)
        if self._collected is not None:
            counts = generator(self._seed, Purpose.COLLECTION, round).binomial(counts, self._collected[devices])
            devices, counts = devices[counts > 0], counts[counts > 0]
        if self._per_round:
            stale = np.flatnonzero(self._fresh_from < self._store.hi)
            self._fresh_from[stale] = self._store.hi[stale]
            self._forget_fresh(stale)
        rng = generator(self._seed, Purpose.BUFFER, round)
        came, left = ask(self._store, "join", devices, counts, rng, at=round)
        self._count(came, np.int32(1))
        self._count(left, np.int32(-1))

    def use(self, devices: NDArray) -> None:
        """Mark devices, int (n,), as used up to this round: those that transmitted, after aggregation.

        What they hold becomes their part of X; it is no longer fresh `since_use`; a buffer may delete it all.
        What is fresh `per_round` stays so until the next round, unless it is deleted.
        """
        devices = np.unique(np.asarray(devices, np.int64))
        held = self._stored_labels[devices]
        self._used_total += (held - self._used_labels[devices]).sum(axis=0)
        self._used_labels[devices] = held
        emptied = ask(self._store, "use", devices, at=self._round)
        if emptied:
            self._stored[devices] = 0
            self._stored_labels[devices] = 0
        if emptied or not self._per_round:
            self._fresh_from[devices] = self._store.hi[devices]
            self._forget_fresh(devices)

    def draw(self, device: int, shape: int | tuple[int, ...], rng: np.random.Generator) -> Ints:
        """Sample numbers drawn uniformly with replacement from S_k(t), int64 of the given shape."""
        if not self._stored[device]:
            raise ValueError(f"device {device} holds no samples to draw from")
        shape = (shape,) if isinstance(shape, int) else shape
        positions = ask(self._store, "draw", device, shape, rng, at=self._round)
        return self._numbers(device, positions)

    def samples(self, device: int) -> Ints:
        """All sample numbers in S_k(t), int64; with repetitions once an endless stream has started over."""
        positions = ask(self._store, "held", device, at=self._round)
        return self._numbers(device, positions)

    _SAVED = (
        "round", "fresh_from", "stored", "fresh", "stored_labels", "fresh_labels", "used_labels", "used_total",
    )  # fmt: skip

    def snapshot(self) -> Nested:
        """All that, with the same settings and seed, lets `restore` go on exactly from here; copies."""
        own = {name: np.array(getattr(self, "_" + name)) for name in self._SAVED}
        return own | {"arrivals": np.array(self._state), "buffer": ask(self._store, "snapshot")}

    def restore(self, saved: Nested) -> None:
        """Go back or forward to a snapshot of a stream with the same settings.

        Only what is the stream's own is checked here: what a buffer or an arrival process remembers is their business.
        """
        present = {name: np.array(getattr(self, "_" + name)) for name in self._SAVED}
        fits = saved.keys() == present.keys() | {"arrivals", "buffer"} and all(
            saved[name].dtype == array.dtype and saved[name].shape == array.shape for name, array in present.items()
        )
        if not fits or saved["arrivals"].dtype != self._state.dtype:
            raise RunError(UNFIT)
        for name in self._SAVED:
            setattr(self, "_" + name, saved[name].copy())
        self._fresh_labels = np.asfortranarray(self._fresh_labels)
        self._round, self._state = int(saved["round"]), saved["arrivals"].copy()
        self._restore_buffer(saved["buffer"])

    def _restore_buffer(self, saved: Nested) -> None:
        try:
            ask(self._store, "restore", freeze(saved))
            fits = ask(self._store, "snapshot").keys() == saved.keys()
        except PluginError as problem:
            raise RunError(f"{problem}. {UNFIT}") from problem
        if not fits:
            raise RunError(UNFIT)

    def _arriving(self, round: int) -> tuple[Ints, Ints]:
        """The devices that receive samples in this round, ascending, and how many each."""
        if round > self._rounds:
            raise ValueError(f"round {round} is beyond the run of {self._rounds} rounds")
        if self._events is not None:
            return self._events.of(round)
        rng = generator(self._seed, Purpose.ARRIVALS, round)
        known = round, self._state, self._devices, rng
        counts, self._state = ask(self._arrivals, "counts", *known, at=round, K=self._devices)
        devices = np.flatnonzero((counts > 0) & (self._sizes > 0))
        return devices, counts[devices].astype(np.int64)

    def _places(self, items: Items) -> Ints:
        """Where in the shards the arrivals stand: the shard starts again after its end."""
        return self._offsets[items.devices] + items.positions % self._sizes[items.devices]

    def _numbers(self, device: int, positions: Ints) -> Ints:
        if not positions.size:
            return np.empty(0, np.int64)
        return self._samples[self._offsets[device] + positions % self._sizes[device]].astype(np.int64)

    def _count(self, items: Items, step: np.int32) -> None:
        """Add `step` to the counts of the items' devices and labels."""
        if not len(items.devices):
            return
        labels = self._label_at[self._places(items)].astype(np.int64)
        fresh = items.positions >= self._fresh_from[items.devices]
        np.add.at(self._stored, items.devices, np.int64(step))
        np.add.at(self._stored_labels.reshape(-1), items.devices * self._classes + labels, step)
        np.add.at(self._fresh, items.devices[fresh], np.int64(step))
        np.add.at(self._fresh_labels.T.reshape(-1), (labels * self._devices + items.devices)[fresh], step)

    def _forget_fresh(self, devices: Ints) -> None:
        self._fresh[devices] = 0
        self._fresh_labels[devices] = 0
