"""The reservoir: its law, and memory for what arrives alone. All buffers are in test_stream.py."""

from __future__ import annotations

import numpy as np
from scipy.stats import chisquare

from feelstream.data.streaming.buffers import Reservoir


def test_a_reservoir_holds_every_arrival_with_equal_probability() -> None:
    devices, capacity, per_round = 20_000, 4, [3, 5, 1, 4]
    buffer, rng, everyone = Reservoir(capacity=capacity), np.random.default_rng(9), np.arange(devices)
    state = buffer.init(devices)
    for count in per_round:
        buffer.join(state, everyone, np.full(devices, count), rng)
    total = sum(per_round)
    held = state["slots"]
    assert all(len(set(row)) == capacity for row in held.tolist())
    # Without replacement within a device the counts vary less than multinomial ones, so chance passes more
    # easily than the level says, while a biased slot or a wrong bound moves the counts by hundreds.
    assert chisquare(np.bincount(held.ravel(), minlength=total)).pvalue > 1e-3


def test_a_huge_reservoir_takes_only_what_arrives() -> None:
    """2³¹ − 1 slots for each of three devices would be 48 GiB; and whoever never fills it keeps everything."""
    buffer, rng = Reservoir(capacity=2**31 - 1), np.random.default_rng(9)
    state = buffer.init(3)
    for _ in range(20):
        joined, left = buffer.join(state, np.array([0, 2]), np.array([3, 1]), rng)
        assert (len(joined.devices), len(left.devices)) == (4, 0)
    assert state["slots"].nbytes < 10_000
    assert [buffer.held(state, device).tolist() for device in range(3)] == [list(range(60)), [], list(range(20))]
