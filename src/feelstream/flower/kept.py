"""What survives a restart of the server, and how it becomes plain arrays."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from feelstream.arrays import Nested


class Kept:
    """Base of objects with state: a snapshot has the attributes that are named in `kept`.

    They are arrays, numbers, lists of texts, tables of numbers or texts by number, or further objects of this kind.
    """

    kept: ClassVar[tuple[str, ...]] = ()

    def snapshot(self) -> Nested:
        return {name: _saved(getattr(self, name)) for name in self.kept}

    def restore(self, state: Nested) -> None:
        for name in self.kept:
            setattr(self, name, _restored(getattr(self, name), state[name]))


def _saved(value: Any) -> Any:
    if isinstance(value, Kept):
        return value.snapshot()
    if isinstance(value, dict):
        return {
            "keys": np.array(list(value), np.uint64),
            "values": np.array(list(value.values())),
        }  # keys: node ids too
    return np.array(value)


def _restored(now: Any, saved: Any) -> Any:
    if isinstance(now, Kept):
        now.restore(saved)
        return now
    if isinstance(now, dict):
        return dict(zip(saved["keys"].tolist(), saved["values"].tolist(), strict=True))
    return saved.copy() if isinstance(now, np.ndarray) else saved.tolist()
