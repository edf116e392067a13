"""Mini-batches: which samples a device trains on, step by step."""

from __future__ import annotations

from math import ceil
from typing import Literal

import numpy as np

from feelstream.arrays import Ids
from feelstream.learning.local.base import Cohort
from feelstream.learning.sample_numbers import ABSENT

Sampling = Literal["replacement", "epoch"]


def mini_batches(cohort: Cohort, steps: int, epochs: int | None, batch: int, sampling: Sampling) -> Ids:
    """(n, most steps, batch) sample numbers, ABSENT where a device takes fewer steps or a batch is short."""
    drawn = [of_device(cohort, int(k), steps, epochs, batch, sampling) for k in cohort.ids]
    most = max(map(len, drawn), default=0)
    batches = np.full((len(drawn), most, batch), ABSENT, np.int64)
    for own, found in zip(batches, drawn, strict=True):
        own[: len(found)] = found
    return batches


def of_device(cohort: Cohort, device: int, steps: int, epochs: int | None, batch: int, sampling: Sampling) -> Ids:
    """(steps, batch) sample numbers of one device, ABSENT behind those of a short batch.

    replacement: each sample of each batch is drawn by itself; with epochs, ⌈epochs · |S_k| / batch⌉ batches.
    epoch: batches follow one another through a random order of all that the device holds, the last of which may be
        short; then another order begins. With epochs, as many orders.
    """
    rng = cohort.rng(device)
    if sampling == "replacement":
        if epochs is not None:
            steps = ceil(epochs * len(cohort.held(device)) / batch)
        return cohort.draw(device, (steps, batch), rng)
    held = cohort.held(device)
    each = ceil(len(held) / batch)
    passes = epochs if epochs is not None else ceil(steps / each)
    found = np.full((passes, each * batch), ABSENT, np.int64)
    for order in found:
        order[: len(held)] = rng.permutation(held)
    return found.reshape(passes * each, batch)[: steps if epochs is None else None]
