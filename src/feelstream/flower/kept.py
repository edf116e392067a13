"""What survives a restart of the server, as plain arrays: of our objects what they name, of others what is state."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import numpy as np
from flwr.app import Array, ArrayRecord

from feelstream.arrays import Nested


class Kept:
    """Base of objects with state: a snapshot has the attributes that are named in `kept`."""

    kept: ClassVar[tuple[str, ...]] = ()

    def snapshot(self) -> Nested:
        return {name: saved(getattr(self, name)) for name in self.kept}

    def restore(self, state: Nested) -> None:
        for name in self.kept:
            setattr(self, name, restored(state[name], getattr(self, name)))


def saved(value: Any) -> Nested:
    """A value as {its kind: plain arrays}; nothing for what is no state: functions, texts, other objects."""
    if isinstance(value, Kept):
        return {"kept": value.snapshot()}
    if isinstance(value, bool | int | float):
        return {"number": np.array(value)}
    if isinstance(value, np.ndarray):
        return {"array": value.copy()} if value.dtype.kind in "biuf" else {}
    if isinstance(value, ArrayRecord):
        return {"record": {name: array.numpy() for name, array in value.items()}}
    if not isinstance(value, dict | list):
        return {}
    entries = list(value.items() if isinstance(value, dict) else enumerate(value))
    if all(isinstance(key, str | int) and isinstance(each, np.ndarray | np.generic) for key, each in entries):
        kind = "dict" if isinstance(value, dict) else "list"
        return {kind: {json.dumps(key): np.asarray(each) for key, each in entries}}
    keys, values = zip(*entries, strict=True)
    if isinstance(value, dict) and all(type(key) is int and 0 <= key < 2**64 for key in keys):  # by device or node id
        one_type = {type(each) for each in values} in ({int}, {float}, {str})
        column = np.array(values) if one_type else np.array(None)
        return {"table": {"keys": np.array(keys, np.uint64), "values": column}} if column.dtype.kind in "iufU" else {}
    try:
        text = json.dumps(value)
        same = json.loads(text) == value  # or else it would come back as something else
    except (TypeError, ValueError, RecursionError):
        return {}
    return {"json": np.frombuffer(text.encode(), np.uint8)} if same else {}


def restored(state: Nested, now: Any = None) -> Any:
    """The value again. now: what stands in its place; one of ours, or a dictionary of whatever kind, takes it up."""
    ((kind, found),) = state.items()
    if kind == "kept":
        now.restore(found)
        return now
    if kind == "number":
        return found.item()
    if kind == "array":
        return found.copy()
    if kind == "record":
        return ArrayRecord({name: Array(array) for name, array in found.items()})
    if kind == "table":
        value: Any = dict(zip(found["keys"].tolist(), found["values"].tolist(), strict=True))
    elif kind == "json":
        value = json.loads(found.tobytes())
    else:
        keyed = {json.loads(key): array for key, array in found.items()}
        value = keyed if kind == "dict" else [keyed[row] for row in sorted(keyed)]
    if isinstance(value, dict) and isinstance(now, dict):  # a Counter or defaultdict stays one
        now.clear()
        now.update(value)
        return now
    return value
