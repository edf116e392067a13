"""Buffers: which of the samples that have arrived a device still holds.

Samples are known by their arrival position. All buffers but the reservoir hold an interval [lo, hi) of them.
What a buffer keeps to beyond its contract are traits of its class, by which a server knows what devices hold without
seeing it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from feelstream.arrays import Ints, Nested
from feelstream.guard import STATE, Array, One, Out, Pair
from feelstream.plugins import Count, Kind, Plugin

Capacity = Annotated[Count, Field(description="most samples a device holds; integer, at least 1")]


class Items(NamedTuple):
    """Samples named by device and arrival position, int64 (n,) each."""

    devices: Ints
    positions: Ints


WHOLE = Array((None,), "iu")
ITEMS = One(Items, devices=WHOLE, positions=WHOLE)
NOTHING = Items(np.empty(0, np.int64), np.empty(0, np.int64))


def ranges(devices: Ints, starts: Ints, counts: Ints) -> Items:
    """The positions start, …, start + count − 1 of each device, one device after another."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return Items(np.repeat(devices, counts), np.arange(total) + np.repeat(starts - ends + counts, counts))


class Buffer(Plugin, ABC):
    """The contract: what all devices hold follows from a state, which the methods change in place: K may be a million.

    A state is a dictionary of plain arrays of any shape, or of such dictionaries. In it `hi`, int64 (K,), says how many
    samples have ever arrived at each device.
    """

    plugin_field: ClassVar[str] = "data.buffer"
    contract: ClassVar[Mapping[str, Out]] = {
        "init": Out(STATE),
        "join": Out(Pair(ITEMS, ITEMS)),
        "use": Out(One(type(None))),
        "draw": Out(Array((...,), "iu")),
        "held": Out(WHOLE),
    }
    plugin_traits: ClassVar[tuple[str, ...]] = ("admits_all", "keeps", "empties_on_use", "holds_rounds", "most_held")

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

    def init(self, devices: int) -> Nested:
        """The state before the first round, when nothing has arrived."""
        return {"hi": np.zeros(devices, np.int64)}

    @abstractmethod
    def join(self, state: Nested, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        """One round's arrivals: `counts` ≥ 1 new samples for each of `devices` (ascending, distinct).

        Returns the items that came into the buffer and those that left it; an item may be in both.
        """

    def use(self, state: Nested, devices: Ints) -> None:
        """Devices have transmitted; whoever `empties_on_use` deletes all that they hold."""
        return

    @abstractmethod
    def draw(self, state: Nested, device: int, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
        """Positions drawn uniformly with replacement from those held; the device must hold one."""

    @abstractmethod
    def held(self, state: Nested, device: int) -> Ints:
        """All positions held, ascending or in slot order."""


class Interval(Buffer):
    """Holds [lo, hi) per device: what arrives comes in, and the oldest leaves first."""

    def init(self, devices: int) -> Nested:
        return super().init(devices) | {"lo": np.zeros(devices, np.int64)}

    def join(self, state: Nested, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        came = ranges(devices, state["hi"][devices], counts)
        state["hi"][devices] += counts
        return came, self.expire(state, devices, counts)

    def expire(self, state: Nested, devices: Ints, counts: Ints) -> Items:
        """Raise `lo` after arrivals and return what fell out."""
        return NOTHING

    def draw(self, state: Nested, device: int, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
        return rng.integers(state["lo"][device], state["hi"][device], shape)

    def held(self, state: Nested, device: int) -> Ints:
        return np.arange(state["lo"][device], state["hi"][device])


def drop_below(state: Nested, devices: Ints, lo: Ints) -> Items:
    """Delete what arrived at these devices before the positions `lo`, and return it."""
    gone = ranges(devices, state["lo"][devices], lo - state["lo"][devices])
    state["lo"][devices] = lo
    return gone


class Keep(Interval):
    """Keep everything."""

    admits_all: ClassVar[bool] = True
    keeps: ClassVar[bool] = True


class Window(Interval):
    """Keep what arrived in the last `rounds` rounds, the present one included."""

    admits_all: ClassVar[bool] = True

    rounds: Count = Field(
        default=10, description="rounds a sample is held, that of its arrival included; integer, at least 1"
    )

    @property
    def holds_rounds(self) -> int | None:
        return self.rounds

    def init(self, devices: int) -> Nested:
        # Who received how much in each of the last rounds, in the place of that number modulo `rounds`.
        return super().init(devices) | {"joined": np.array(0), "recent": {}}

    def expire(self, state: Nested, devices: Ints, counts: Ints) -> Items:
        place = str(state["joined"] % self.rounds)
        old = state["recent"].get(place)
        state["recent"][place] = {"devices": devices, "counts": counts}
        state["joined"] += 1
        return drop_below(state, old["devices"], state["lo"][old["devices"]] + old["counts"]) if old else NOTHING


class Fifo(Interval):
    """Keep the last `capacity` arrivals of each device."""

    capacity: Capacity = 500

    @property
    def most_held(self) -> int | None:
        return self.capacity

    def expire(self, state: Nested, devices: Ints, counts: Ints) -> Items:
        lo, hi = state["lo"][devices], state["hi"][devices]
        return drop_below(state, devices, np.maximum(lo, hi - self.capacity))


class Reservoir(Buffer):
    """Keep a uniform random sample of `capacity` of everything that has arrived.

    Algorithm R (Vitter 1985): arrival number i = 1, 2, … takes slot i − 1 while i ≤ capacity; later ones draw r
    uniformly from 0..i − 1 and replace slot r if r < capacity. State slots: int64 (K, as many as were needed so far),
    the first min(hi, capacity) of a device are filled.
    """

    capacity: Capacity = 500

    @property
    def most_held(self) -> int | None:
        return self.capacity

    def init(self, devices: int) -> Nested:
        return super().init(devices) | {"slots": np.zeros((devices, 0), np.int64)}

    def join(self, state: Nested, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        filled = np.minimum(state["hi"], self.capacity)
        device, position = ranges(devices, state["hi"][devices], counts)
        state["hi"][devices] += counts
        self._make_room(state)
        slot = position.copy()
        beyond = position >= self.capacity
        slot[beyond] = rng.integers(position[beyond] + 1)
        kept = slot < self.capacity
        device, position, slot = device[kept], position[kept], slot[kept]

        flat = state["slots"].reshape(-1)
        place = device * state["slots"].shape[1] + slot
        before = flat[place]
        flat[place] = position  # of several that chose one slot the last stays, as one by one
        stays = flat[place] == position
        replaced = stays & (slot < filled[device])
        return Items(device[stays], position[stays]), Items(device[replaced], before[replaced])

    def _make_room(self, state: Nested) -> None:
        """Slots for the device that has received most, twice as many as before at least: a capacity may be huge."""
        devices, there = state["slots"].shape
        needed = min(self.capacity, int(state["hi"].max(initial=0)))
        if needed > there:
            more = min(self.capacity, max(needed, 2 * there)) - there
            state["slots"] = np.hstack([state["slots"], np.zeros((devices, more), np.int64)])

    def draw(self, state: Nested, device: int, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
        held = self.held(state, device)
        return held[rng.integers(len(held), size=shape)]

    def held(self, state: Nested, device: int) -> Ints:
        return state["slots"][device, : state["hi"][device]].copy()


class UseOnce(Interval):
    """Keep everything until the device transmits, then delete all it holds."""

    admits_all: ClassVar[bool] = True
    keeps: ClassVar[bool] = True
    empties_on_use: ClassVar[bool] = True

    def use(self, state: Nested, devices: Ints) -> None:
        state["lo"][devices] = state["hi"][devices]


BUFFERS = Kind(
    "buffer",
    "buffers",
    Buffer,
    {"keep": Keep, "window": Window, "fifo": Fifo, "reservoir": Reservoir, "use_once": UseOnce},
)
