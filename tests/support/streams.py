"""Streams of a few samples, of which a test says only what it is about."""

from __future__ import annotations

from typing import Any

import numpy as np

from feelstream.data.streaming.arrivals import ArrivalContext, Arrivals
from feelstream.data.streaming.buffers import Buffer, Keep
from feelstream.data.streaming.partition import IID
from feelstream.data.streaming.stream import Stream
from feelstream.resolved import Fresh


def context(samples: int = 30, **fields: Any) -> ArrivalContext:
    usual: dict[str, Any] = {
        "labels": np.zeros(samples, np.uint8), "classes": 1, "devices": 3, "rounds": 5, "round_s": 4.0, "seed": 0,
        "partition": IID(),
    }  # fmt: skip
    return ArrivalContext(**{**usual, **fields})


def stream_of(arrivals: Arrivals, buffer: Buffer | None = None, fresh: Fresh = "since_use", **fields: Any) -> Stream:
    """fields: of the context."""
    return Stream(context(**fields), arrivals, buffer or Keep(), fresh=fresh)


def held_by_round(stream: Stream, rounds: int, devices: int) -> list[list[list[int]]]:
    """By round and device, the samples held, in the order of their arrival."""
    found = []
    for t in range(1, rounds + 1):
        stream.advance(t)
        found.append([stream.samples(k).tolist() for k in range(devices)])
    return found
