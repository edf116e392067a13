"""The stream: what every device holds, what of it is fresh and what has been used, round after round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Flags, Ints, LabelCounts, Nested, Reals, copied, read_only
from feelstream.data.streaming.arrivals import ArrivalContext, Arrivals, schedule_of
from feelstream.data.streaming.buffers import Buffer, Items
from feelstream.guard import STATE, ask, broken
from feelstream.randomness import Purpose, generator
from feelstream.resolved import Fresh


class Stream:
    """S_k(t), B_k(t) and S_k(t̂_k) of all devices: sizes and label counts; sample numbers when asked for.

    The arrays are read-only views of the present state: copy what must outlast the round.

    Attributes:
        round: The present one; 0 before the first.
        stored: |S_k(t)|, int64 (K,).
        stored_labels: L(S_k(t)), int32 (K, m).
        fresh: |B_k(t)|, int64 (K,).
        fresh_labels: L(B_k(t)), int32 (K, m).
        used_labels: L(S_k(t̂_k)): what each device held when it was last used, zero if never; int32 (K, m).
        used_total: L(X) = Σ_k L(S_k(t̂_k)), int64 (m,).
        stored_features, fresh_features: as the labels, of the vectors given; int64 (K, m'); None without any.
    """

    stored: Ints
    stored_labels: LabelCounts
    fresh: Ints
    fresh_labels: LabelCounts
    used_labels: LabelCounts
    used_total: Ints
    stored_features: Ints | None = None
    fresh_features: Ints | None = None

    def __init__(
        self,
        context: ArrivalContext,
        arrivals: Arrivals,
        buffer: Buffer,
        *,
        fresh: Fresh = "since_use",
        collected: Reals | None = None,
        vectors: LabelCounts | None = None,
    ) -> None:
        """Plan the arrivals. Nothing has arrived yet.

        fresh: "since_use" (what arrived after the device's last use and is still held) or "per_round" (what
        arrived in this round and is still held). collected: share of the arriving samples that each device keeps,
        (K,); the others are passed over, and it goes through its shard more slowly. vectors: (N, m') of each sample, to
        be added up as the labels are counted.
        """
        self._context, self._arrivals, self._buffer = context, arrivals, buffer
        self._per_round, self._collected = fresh == "per_round", collected
        plan = schedule_of(arrivals, context)
        self._events, self._shards, self._sizes = plan.events, plan.shards, plan.shards.sizes
        self._label_at = context.labels[plan.shards.samples]  # uint8, by place in the shards

        K, m = context.devices, context.classes
        self.round = 0
        self._now = {
            "stored": np.zeros(K, np.int64),
            "stored_labels": np.zeros((K, m), np.int32),
            "fresh": np.zeros(K, np.int64),
            # Classes first in memory: every round a policy compares each class over all devices.
            "fresh_labels": np.zeros((m, K), np.int32).T,
            "fresh_from": np.zeros(K, np.int64),  # positions from here on are fresh
            "used_labels": np.zeros((K, m), np.int32),
            "used_total": np.zeros(m, np.int64),
        }
        self._vectors = None if vectors is None else vectors[plan.shards.samples]  # by place in the shards
        if vectors is not None:
            self._now |= {f"{of}_features": np.zeros((K, vectors.shape[1]), np.int64) for of in ("stored", "fresh")}
        for name, array in self._now.items():
            setattr(self, name, read_only(array))
        self._held = copied(ask(buffer, "init", K, at=0))
        self._arrived = np.empty(0)  # the state of an endless process
        if plan.events is None:
            self._arrived = ask(arrivals, "init", K, generator(context.seed, Purpose.ARRIVALS), at=0)

    def advance(self, round: int) -> None:
        """Let the arrivals of `round` join the buffers; rounds must be taken one by one from 1."""
        if round != self.round + 1 or round > self._context.rounds:
            raise ValueError(f"round {round} cannot follow round {self.round} of {self._context.rounds}")
        self.round = round
        devices, counts = self._arriving(round)
        if self._collected is not None:
            rng = generator(self._context.seed, Purpose.COLLECTION, round)
            counts = rng.binomial(counts, self._collected[devices])
            devices, counts = devices[counts > 0], counts[counts > 0]
        if self._per_round:
            self._forget_fresh(np.flatnonzero(self._now["fresh_from"] < self._held["hi"]))
        rng = generator(self._context.seed, Purpose.BUFFER, round)
        came, left = ask(self._buffer, "join", self._held, devices, counts, rng, at=round)
        self._count(came, np.int32(1))
        self._count(left, np.int32(-1))

    def use(self, devices: NDArray) -> None:
        """Mark devices, int (n,), as used up to this round: those that transmitted, after aggregation.

        What they hold becomes their part of X; it is no longer fresh `since_use`; a buffer may delete it all.
        What is fresh `per_round` stays so until the next round, unless it is deleted.
        """
        now, devices = self._now, np.unique(np.asarray(devices, np.int64))
        held = now["stored_labels"][devices]
        now["used_total"] += (held - now["used_labels"][devices]).sum(axis=0)
        now["used_labels"][devices] = held
        ask(self._buffer, "use", self._held, devices, at=self.round)
        if self._buffer.empties_on_use:
            now["stored"][devices] = 0
            now["stored_labels"][devices] = 0
            if self._vectors is not None:
                now["stored_features"][devices] = 0
        if self._buffer.empties_on_use or not self._per_round:
            self._forget_fresh(devices)

    def draw(self, device: int, shape: int | tuple[int, ...], rng: np.random.Generator) -> Ints:
        """Sample numbers drawn uniformly with replacement from S_k(t), int64 of the given shape."""
        if not self.stored[device]:
            raise ValueError(f"device {device} holds no samples to draw from")
        shape = (shape,) if isinstance(shape, int) else shape
        return self._numbers(device, ask(self._buffer, "draw", self._held, device, shape, rng, at=self.round))

    def samples(self, device: int) -> Ints:
        """All sample numbers in S_k(t), int64; with repetitions once an endless stream has started over."""
        return self._numbers(device, self.positions(device))

    @property
    def overlaps(self) -> bool:
        """Whether several devices may hold the same sample."""
        return self._arrivals.overlaps

    def distinct(self, devices: Ints) -> int:
        """|∪ S_k|: how many samples these devices hold, each counted once where several may hold the same."""
        if not self.overlaps:
            return int(self._now["stored"][devices].sum())
        return len(np.unique(np.concatenate([self.samples(int(k)) for k in devices]))) if len(devices) else 0

    def fresh_among(self, device: int) -> Flags:
        """Which of `samples(device)` are fresh."""
        return self.positions(device) >= self._now["fresh_from"][device]

    def positions(self, device: int) -> Ints:
        """Which of the device's arrivals are in S_k(t), counted from 0."""
        return ask(self._buffer, "held", self._held, device, at=self.round)

    def snapshot(self) -> Nested:
        """All that, with the same settings and seed, lets `restore` go on exactly from here; copies."""
        if problem := STATE.problem(self._held, {}):
            raise broken(self._buffer, f"must keep in its state {problem}")
        state = {"arrivals": self._arrived, "buffer": self._held, "round": np.array(self.round)}
        return copied({**self._now, **state})

    def restore(self, saved: Nested) -> None:
        """Go back or forward to a snapshot of a stream with the same settings."""
        for name, array in self._now.items():
            array[...] = saved[name]
        self.round, self._arrived = int(saved["round"]), saved["arrivals"].copy()
        self._held = copied(saved["buffer"])

    def _arriving(self, round: int) -> tuple[Ints, Ints]:
        """The devices that receive samples in this round, ascending, and how many each."""
        if self._events is not None:
            here = self._events.devices[self._events.starts[round - 1] : self._events.starts[round]]
            first = np.flatnonzero(np.diff(here, prepend=-1))
            return here[first].astype(np.int64), np.diff(first, append=len(here))
        K, rng = self._context.devices, generator(self._context.seed, Purpose.ARRIVALS, round)
        counts, self._arrived = ask(self._arrivals, "counts", round, self._arrived, K, rng, at=round, K=K)
        devices = np.flatnonzero((counts > 0) & (self._sizes > 0))
        return devices, counts[devices].astype(np.int64)

    def _places(self, devices: Ints | int, positions: Ints) -> Ints:
        """Where in the shards the arrivals stand: the shard starts again after its end."""
        return self._shards.offsets[devices] + positions % self._sizes[devices]

    def _numbers(self, device: int, positions: Ints) -> Ints:
        return self._shards.samples[self._places(device, positions)].astype(np.int64)

    def _count(self, items: Items, step: np.int32) -> None:
        """Add `step` to the counts of the items' devices and labels."""
        if not len(items.devices):
            return
        now, (K, m) = self._now, self.stored_labels.shape
        places = self._places(*items)
        labels = self._label_at[places].astype(np.int64)
        fresh = items.positions >= now["fresh_from"][items.devices]
        np.add.at(now["stored"], items.devices, np.int64(step))
        np.add.at(now["stored_labels"].reshape(-1), items.devices * m + labels, step)
        np.add.at(now["fresh"], items.devices[fresh], np.int64(step))
        np.add.at(now["fresh_labels"].T.reshape(-1), (labels * K + items.devices)[fresh], step)
        if self._vectors is not None:
            change = step * self._vectors[places]
            np.add.at(now["stored_features"], items.devices, change)
            np.add.at(now["fresh_features"], items.devices[fresh], change[fresh])

    def _forget_fresh(self, devices: Ints) -> None:
        """What these devices hold is fresh no longer."""
        self._now["fresh_from"][devices] = self._held["hi"][devices]
        self._now["fresh"][devices] = 0
        self._now["fresh_labels"][devices] = 0
        if self._vectors is not None:
            self._now["fresh_features"][devices] = 0
