"""Buffers: which of the samples that have arrived a device still holds.

Samples are known by their arrival position. All buffers but the reservoir hold an interval [lo, hi) of them.
A buffer's settings are frozen; `store` makes the arrays that change. What a buffer promises beyond that are flags of
its class, by which a server knows what devices hold without seeing it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from feelstream.arrays import Flags, Ints, Nested
from feelstream.guard import STATE, Array, One, Out, Pair
from feelstream.plugins import Plugin

Whole = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]


class Items(NamedTuple):
    """Samples named by device and arrival position, int64 (n,) each."""

    devices: Ints
    positions: Ints


WHOLE = Array((None,), "iu")
NOTHING = Items(np.empty(0, np.int64), np.empty(0, np.int64))


def ranges(devices: Ints, starts: Ints, counts: Ints) -> Items:
    """The positions start, …, start + count − 1 of each device, one device after another."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return Items(np.repeat(devices, counts), np.arange(total) + np.repeat(starts - ends + counts, counts))


class Store(ABC):
    """What all devices hold. `hi`: int64 (K,), how many samples have ever arrived."""

    plugin_field: ClassVar[str] = "data.buffer"
    contract: ClassVar[Mapping[str, Out]] = {
        "join": Out(Pair(One(Items, devices=WHOLE, positions=WHOLE), One(Items, devices=WHOLE, positions=WHOLE))),
        "use": Out(One(bool)),
        "draw": Out(Array((...,), "iu")),
        "held": Out(Array((None,), "iu")),
        "snapshot": Out(STATE),
        "restore": Out(One(type(None))),
    }
    buffer: Buffer  # whose settings made it

    def __init__(self, devices: int) -> None:
        self.hi = np.zeros(devices, np.int64)

    def plugin_name(self) -> str:
        return self.buffer.plugin_name()

    @abstractmethod
    def join(self, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        """One round's arrivals: `counts` ≥ 1 new samples for each of `devices` (ascending, distinct).

        Returns the items that came into the buffer and those that left it; an item may be in both.
        """

    def use(self, devices: Ints) -> bool:
        """Devices have transmitted; True if that empties their buffers, as `empties_on_use` of the settings says."""
        return False

    @abstractmethod
    def draw(self, device: int, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
        """Positions drawn uniformly with replacement from those held; the buffer must not be empty."""

    @abstractmethod
    def held(self, device: int) -> Ints:
        """All positions held, ascending or in slot order."""

    def snapshot(self) -> Nested:
        """All that `restore` needs: copies of plain arrays of any shape, by name, or dictionaries of them."""
        return {"hi": self.hi.copy()}

    def restore(self, saved: Nested) -> None:
        """Go back or forward to a snapshot of a store made by the same settings; `saved` itself is not to change."""
        self.hi[:] = saved["hi"]


class IntervalStore(Store):
    """Holds [lo, hi) per device; this one keeps everything."""

    def __init__(self, devices: int) -> None:
        super().__init__(devices)
        self.lo = np.zeros(devices, np.int64)

    def join(self, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        came = ranges(devices, self.hi[devices], counts)
        self.hi[devices] += counts
        return came, self.expire(devices, counts)

    def expire(self, devices: Ints, counts: Ints) -> Items:
        """Raise `lo` after arrivals and return what fell out."""
        return NOTHING

    def drop_below(self, devices: Ints, lo: Ints) -> Items:
        """Delete what arrived at these devices before the positions `lo`, and return it."""
        gone = ranges(devices, self.lo[devices], lo - self.lo[devices])
        self.lo[devices] = lo
        return gone

    def draw(self, device: int, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
        return rng.integers(self.lo[device], self.hi[device], shape)

    def held(self, device: int) -> Ints:
        return np.arange(self.lo[device], self.hi[device])

    def snapshot(self) -> Nested:
        return super().snapshot() | {"lo": self.lo.copy()}

    def restore(self, saved: Nested) -> None:
        super().restore(saved)
        self.lo[:] = saved["lo"]


class FifoStore(IntervalStore):
    """Holds the last `capacity` arrivals."""

    def __init__(self, devices: int, capacity: int) -> None:
        super().__init__(devices)
        self.capacity = capacity

    def expire(self, devices: Ints, counts: Ints) -> Items:
        return self.drop_below(devices, np.maximum(self.lo[devices], self.hi[devices] - self.capacity))


class WindowStore(IntervalStore):
    """Holds the arrivals of the last `rounds` rounds; remembers who received how much in each of them."""

    def __init__(self, devices: int, rounds: int) -> None:
        super().__init__(devices)
        self.rounds = rounds
        self.recent: deque[tuple[Ints, Ints]] = deque()

    def expire(self, devices: Ints, counts: Ints) -> Items:
        self.recent.append((devices, counts))
        if len(self.recent) <= self.rounds:
            return NOTHING
        old, many = self.recent.popleft()
        return self.drop_below(old, self.lo[old] + many)

    def snapshot(self) -> Nested:
        return super().snapshot() | {
            "recent_lengths": np.array([len(devices) for devices, _ in self.recent], np.int64),
            "recent_devices": np.concatenate([NOTHING.devices, *(devices for devices, _ in self.recent)]),
            "recent_counts": np.concatenate([NOTHING.devices, *(counts for _, counts in self.recent)]),
        }

    def restore(self, saved: Nested) -> None:
        super().restore(saved)
        cuts = np.cumsum(saved["recent_lengths"])
        devices = np.split(saved["recent_devices"], cuts)[:-1]
        counts = np.split(saved["recent_counts"], cuts)[:-1]
        self.recent = deque(zip(devices, counts, strict=True))


class UseOnceStore(IntervalStore):
    """Holds what has arrived since the device last transmitted."""

    def use(self, devices: Ints) -> bool:
        self.lo[devices] = self.hi[devices]
        return True


class ReservoirStore(Store):
    """Holds a uniform sample of `capacity` of all arrivals so far, by Algorithm R (Vitter 1985).

    Arrival number i = 1, 2, … takes slot i − 1 while i ≤ capacity; later ones draw r uniformly from 0..i − 1
    and replace slot r if r < capacity. slots: int64 (K, as many as were needed so far), the first min(hi, capacity) of
    a device are filled.
    """

    def __init__(self, devices: int, capacity: int) -> None:
        super().__init__(devices)
        self.capacity = capacity
        self.slots = np.zeros((devices, 0), np.int64)

    def join(self, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        capacity = self.capacity
        filled = np.minimum(self.hi, capacity)
        device, position = ranges(devices, self.hi[devices], counts)
        self.hi[devices] += counts
        self._make_room()
        slot = position.copy()
        beyond = position >= capacity
        slot[beyond] = rng.integers(position[beyond] + 1)
        kept = slot < capacity
        device, position, slot = device[kept], position[kept], slot[kept]

        flat = self.slots.reshape(-1)
        place = device * self.slots.shape[1] + slot
        before = flat[place]
        flat[place] = position  # of several that chose one slot the last stays, as one by one
        stays = flat[place] == position
        replaced = stays & (slot < filled[device])
        return Items(device[stays], position[stays]), Items(device[replaced], before[replaced])

    def _make_room(self) -> None:
        """Slots for the device that has received most, twice as many as before at least: a capacity may be huge."""
        devices, there = self.slots.shape
        needed = min(self.capacity, int(self.hi.max(initial=0)))
        if needed > there:
            more = min(self.capacity, max(needed, 2 * there)) - there
            self.slots = np.hstack([self.slots, np.zeros((devices, more), np.int64)])

    def draw(self, device: int, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
        held = self.held(device)
        return held[rng.integers(len(held), size=shape)]

    def held(self, device: int) -> Ints:
        return self.slots[device, : self.hi[device]].copy()

    def snapshot(self) -> Nested:
        return super().snapshot() | {"slots": self.slots.copy()}

    def restore(self, saved: Nested) -> None:
        super().restore(saved)
        self.slots = saved["slots"].copy()


class Buffer(Plugin, ABC):
    """The contract: a buffer's settings make its store, and promise what their flags say."""

    plugin_field: ClassVar[str] = "data.buffer"
    contract: ClassVar[Mapping[str, Out]] = {"store": Out(One(Store))}
    plugin_flags: ClassVar[tuple[str, ...]] = ("admits_all", "keeps", "empties_on_use", "holds_rounds", "most_held")

    admits_all: ClassVar[bool] = False  # every arrival comes in, and is held in the round of its arrival
    keeps: ClassVar[bool] = False  # what came in never leaves, except all at once by `empties_on_use`
    empties_on_use: ClassVar[bool] = False  # when a device transmits, all that it holds is deleted

    @property
    def holds_rounds(self) -> int | None:
        """Rounds that every sample is held, that of its arrival included, and then deleted; None: not promised."""
        return None

    @property
    def most_held(self) -> int | None:
        """The most samples that a device ever holds; None: no limit is promised."""
        return None

    def arrivals(self, stored: Ints, sent: Flags) -> Ints | None:
        """Samples that arrived at each device in each round, from what it held and when it transmitted, (T, K) each.

        |S(t)| − |S(t−1)| plus what left: all, where a transmission empties the buffer, or the arrivals of round t − w,
        where samples are held w rounds. None where the promises do not tell.
        """
        if not self.admits_all or not (self.keeps or self.holds_rounds) or (self.empties_on_use and self.holds_rounds):
            return None
        came = np.diff(stored, axis=0, prepend=0)
        if self.empties_on_use:
            came[1:] += np.where(sent[:-1], stored[:-1], 0)
        for t in range(self.holds_rounds or len(came), len(came)):
            came[t] += came[t - (self.holds_rounds or 0)]
        return came

    @abstractmethod
    def store(self, devices: int, longest: int | None) -> Store:
        """An empty store; `longest` bounds the arrivals of any device, None if the stream is endless."""


class Keep(Buffer):
    """Keep everything."""

    tag: ClassVar[str] = "keep"
    admits_all: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def store(self, devices: int, longest: int | None) -> Store:
        return IntervalStore(devices)


class Window(Buffer):
    """Keep what arrived in the last `rounds` rounds, the present one included."""

    tag: ClassVar[str] = "window"
    admits_all: ClassVar[bool] = True

    rounds: Annotated[
        Whole, Field(description="rounds a sample is held, that of its arrival included; integer, at least 1")
    ] = 10

    @property
    def holds_rounds(self) -> int | None:
        return self.rounds

    def store(self, devices: int, longest: int | None) -> Store:
        return WindowStore(devices, self.rounds)


class Fifo(Buffer):
    """Keep the last `capacity` arrivals of each device."""

    tag: ClassVar[str] = "fifo"

    capacity: Annotated[Whole, Field(description="most samples a device holds; integer, at least 1")] = 500

    @property
    def most_held(self) -> int | None:
        return self.capacity

    def store(self, devices: int, longest: int | None) -> Store:
        return FifoStore(devices, self.capacity)


class Reservoir(Buffer):
    """Keep a uniform random sample of `capacity` of everything that has arrived."""

    tag: ClassVar[str] = "reservoir"

    capacity: Annotated[Whole, Field(description="most samples a device holds; integer, at least 1")] = 500

    @property
    def most_held(self) -> int | None:
        return self.capacity

    def store(self, devices: int, longest: int | None) -> Store:
        return ReservoirStore(devices, self.capacity if longest is None else max(1, min(self.capacity, longest)))


class UseOnce(Buffer):
    """Keep everything until the device transmits, then delete all it holds."""

    tag: ClassVar[str] = "use_once"
    admits_all: ClassVar[bool] = True
    keeps: ClassVar[bool] = True
    empties_on_use: ClassVar[bool] = True

    def store(self, devices: int, longest: int | None) -> Store:
        return UseOnceStore(devices)
