"""Buffers that break one promise each."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import odd_plugins as odd

from feelstream.arrays import Ints, Nested
from feelstream.data.streaming.buffers import Buffer, Fifo, IntervalStore, Items, Keep, Store, UseOnceStore, WindowStore


class Made(Keep):
    """keep, with a store of its own that is made wrong in one way."""

    made: ClassVar[type[Store]] = IntervalStore

    def store(self, devices: int, longest: int | None) -> Store:
        return self.made(devices)  # type: ignore[call-arg]


class Uncounted(IntervalStore):
    def join(self, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        came, left = super().join(devices, counts, rng)
        return Items(came.devices[1:], came.positions[1:]), left


class Blind(IntervalStore):
    def join(self, devices: Ints, counts: Ints, rng: np.random.Generator) -> tuple[Items, Items]:
        found = super().join(devices, counts, rng)
        self.hi[devices] += 1
        return found


class Elsewhere(IntervalStore):
    def draw(self, device: int, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
        return np.full(shape, self.hi[device])


class SaysOtherwise(IntervalStore):
    def use(self, devices: Ints) -> bool:
        return True


class EmptiesUnasked(UseOnceStore):
    """What it returns is right; that its settings promise to keep everything is not."""


class Forgetful(IntervalStore):
    def snapshot(self) -> Nested:
        return {"hi": self.hi.copy()}

    def restore(self, saved: Nested) -> None:
        self.hi[:] = saved["hi"]
        self.lo[:] = saved["hi"]


class Views(IntervalStore):
    def snapshot(self) -> Nested:
        return {"hi": self.hi, "lo": self.lo}


class Objects(IntervalStore):
    def snapshot(self) -> Nested:
        return super().snapshot() | {"names": ["a", "b"]}


class Shared(odd.ListStore):
    """All stores of the class share one list: hidden memory."""

    everyone: ClassVar[list[int]] = []

    def wanted(self, position: Ints) -> np.ndarray:
        self.everyone.append(1)
        return np.full(len(position), len(self.everyone) % 2 == 0)


class Raises(IntervalStore):
    def held(self, device: int) -> Ints:
        raise OSError("no such disk")


def buffer(of: type[Store], **flags: bool) -> Buffer:
    return type(of.__name__, (Made,), {"made": of, **flags, "__module__": __name__, "__annotations__": _class(flags)})()


def _class(flags: dict[str, bool]) -> dict[str, Any]:
    return {"made": ClassVar[type], **dict.fromkeys(flags, ClassVar[bool])}


class Boast(Fifo):
    """fifo that claims what only keep can."""

    admits_all: ClassVar[bool] = True
    capacity: int = 3


class Few(Keep):
    @property
    def most_held(self) -> int | None:
        return 4


class Short(Keep):
    keeps: ClassVar[bool] = False

    @property
    def holds_rounds(self) -> int | None:
        return 2

    def store(self, devices: int, longest: int | None) -> Store:
        return WindowStore(devices, 3)


NOTHING = {"admits_all": False, "keeps": False}
BROKEN_BUFFERS = [
    (buffer(Uncounted), "flags"),
    (buffer(Blind, **NOTHING), "flags"),
    (buffer(Elsewhere), "flags"),
    (buffer(SaysOtherwise), "flags"),
    (buffer(EmptiesUnasked), "flags"),
    (buffer(Forgetful), "checkpoint"),
    (buffer(Views), "runs"),
    (buffer(Objects), "contract"),
    (buffer(Shared, **NOTHING), "repeatable"),
    (buffer(Raises), "runs"),
    (Boast(), "flags"),
    (Few(), "flags"),
    (Short(), "flags"),
]
