"""For a client that is to train on what the world has brought its device so far, in place of all its data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from flwr.app import Message
from numpy.typing import ArrayLike, NDArray

from feelstream.errors import FeelstreamError


class Held(NamedTuple):
    """What a device holds by the world: its arrivals, counted from 0, and how many samples of each label."""

    device: int
    arrivals: NDArray[np.int64]
    labels: NDArray[np.int32]


held: dict[str, Held] = {}  # by the id of the message that a client is at work on


def world_subset(data: Any, message: Message, labels: ArrayLike | None = None) -> Any:
    """The part of a device's own data that has arrived when it gets the message; outside of a WorldGrid, all of it.

    data: what has a row per sample (an array, tensor, list, data set with `select`), or a tuple of such, as (X, y).
    They arrive in their order, again and again. labels: the label of each; then it has as many of each label as the
    device has in the world, so that schedulers that go by labels see what clients train on.
    """
    world = held.get(message.metadata.message_id)
    if world is None:
        return data
    if labels is None:
        rows = world.arrivals % max(len(data[0] if isinstance(data, tuple) else data), 1)
    else:
        own = [np.flatnonzero(np.asarray(labels) == label) for label in range(len(world.labels))]
        for label, count in enumerate(world.labels):
            if count and not len(own[label]):
                raise FeelstreamError(
                    f"device {world.device} has samples of label {label} by the scenario, and its client has none"
                )
        rows = np.concatenate([np.resize(mine, count) for mine, count in zip(own, world.labels, strict=True)])
    return tuple(_rows_of(part, rows) for part in data) if isinstance(data, tuple) else _rows_of(data, rows)


def _rows_of(data: Any, rows: NDArray[np.int64]) -> Any:
    if hasattr(data, "select"):
        return data.select(rows)
    return data[rows] if hasattr(data, "shape") else [data[row] for row in rows.tolist()]
