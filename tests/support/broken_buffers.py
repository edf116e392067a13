"""Buffers that break one promise each."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import odd_plugins as odd

from feelstream.arrays import Ints, Nested
from feelstream.data.streaming.buffers import Fifo, Interval, Items, Keep, UseOnce, Window


class Uncounted(Keep):
    def join(self, state: Nested, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        came, left = super().join(state, devices, counts, rng)
        return Items(came.devices[1:], came.positions[1:]), left


class Blind(Interval):
    def join(self, state: Nested, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        found = super().join(state, devices, counts, rng)
        state["hi"][devices] += 1
        return found


class Elsewhere(Keep):
    def draw(self, state: Nested, device: int, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
        return np.full(shape, state["hi"][device])


class SaysItEmpties(Keep):
    empties_on_use: ClassVar[bool] = True


class EmptiesUnasked(UseOnce):
    empties_on_use: ClassVar[bool] = False


class Writes(Keep):
    def join(self, state: Nested, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        found = super().join(state, devices, counts, rng)
        counts += 1
        return found


class Answers(Keep):
    def use(self, state: Nested, devices: Ints) -> None:
        return len(devices)  # type: ignore[return-value]


class Objects(Keep):
    def join(self, state: Nested, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        state["names"] = ["a", "b"]
        return super().join(state, devices, counts, rng)


class Shared(odd.Lists):
    """All buffers of the class share one list: hidden memory."""

    everyone: ClassVar[list[int]] = []

    def wanted(self, position: Ints) -> np.ndarray:
        self.everyone.append(1)
        return np.full(len(position), len(self.everyone) % 2 == 0)


class Raises(Keep):
    def held(self, state: Nested, device: int) -> Ints:
        raise OSError("no such disk")


class Boast(Fifo):
    """fifo that claims what only keep can."""

    admits_all: ClassVar[bool] = True
    capacity: int = 3


class Few(Keep):
    @property
    def most_held(self) -> int | None:
        return 4


class Short(Window):
    """window that holds a round more than it says."""

    rounds: int = 3

    @property
    def holds_rounds(self) -> int | None:
        return 2


BROKEN_BUFFERS = [
    (Uncounted(), "flags"),
    (Blind(), "flags"),
    (Elsewhere(), "flags"),
    (SaysItEmpties(), "flags"),
    (EmptiesUnasked(), "flags"),
    (Writes(), "runs"),
    (Answers(), "contract"),
    (Objects(), "contract"),
    (Shared(), "repeatable"),
    (Raises(), "runs"),
    (Boast(), "flags"),
    (Few(), "flags"),
    (Short(), "flags"),
]
