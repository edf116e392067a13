"""Make the sizes of devices equal by moving samples between devices that hold the same label."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


def equalised(counts: Counts) -> Counts:
    """Label counts (K, m) with the same labels on each device, the same total of each label, and sizes that differ by
    at most 1, or as little as moving samples within labels allows.

    A maximum flow from devices with too many samples, through labels, to devices with too few. In one pass no count
    loses more than half of what it has, so that shards stay alike and no device loses a label; passes go on while they
    move anything.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow  # takes a while to come

    counts = counts.astype(np.int64)
    devices, labels = counts.shape
    size, rest = divmod(int(counts.sum()), devices)
    target = np.full(devices, size, np.int64)
    target[np.argsort(-counts.sum(axis=1), kind="stable")[:rest]] += 1  # the largest keep what cannot be divided
    k, label = np.nonzero(counts)
    source, sink = devices + labels, devices + labels + 1
    while True:
        over = counts.sum(axis=1) - target
        if not over.any():
            return counts
        half = counts[k, label] // 2
        give, take = np.flatnonzero(over > 0), np.flatnonzero(over < 0)
        rows = np.concatenate([np.full(len(give), source), k, devices + label, take])
        columns = np.concatenate([give, devices + label, k, np.full(len(take), sink)])
        capacity = np.concatenate([over[give], half, half, -over[take]]).astype(np.int32)
        graph = csr_array((capacity, (rows, columns)), shape=(sink + 1, sink + 1))
        found = maximum_flow(graph, source, sink)
        if not found.flow_value:
            return counts
        flow = found.flow.tocoo()  # net: what a device takes from a label is negative
        own = (flow.row < devices) & (flow.col >= devices) & (flow.col < source)
        counts[flow.row[own], flow.col[own] - devices] -= flow.data[own]
