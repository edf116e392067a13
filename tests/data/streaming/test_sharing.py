"""A kept schedule is the one that would be made; anything that differs makes a new one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from feelstream.data.streaming.arrivals import ArrivalContext, schedule_of
from feelstream.data.streaming.partition import IID, Digits
from feelstream.data.streaming.processes import TruncatedNormal, Uniform

LABELS = np.arange(300, dtype=np.uint8) % 10
CONTEXT = ArrivalContext(LABELS, 10, 5, 12, 4.0, 3, IID())


def arrays(arrivals, context):
    made = schedule_of(arrivals, context)
    assert made.events is not None
    return [made.shards.samples, made.shards.offsets, made.events.devices, made.events.starts]


def test_the_same_settings_share_one_schedule_and_nobody_can_change_it():
    first = schedule_of(TruncatedNormal(), CONTEXT)
    assert schedule_of(TruncatedNormal(), replace(CONTEXT)) is first
    with pytest.raises(ValueError, match="read-only"):
        first.shards.samples[0] = 1


@pytest.mark.parametrize(
    ("arrivals", "context"),
    [
        (TruncatedNormal(sigma=0.2), CONTEXT),
        (TruncatedNormal(bounds="clip"), CONTEXT),
        (TruncatedNormal(order="shuffled"), CONTEXT),
        (Uniform(), CONTEXT),
        (TruncatedNormal(), replace(CONTEXT, seed=4)),
        (TruncatedNormal(), replace(CONTEXT, rounds=13)),
        (TruncatedNormal(), replace(CONTEXT, round_s=5.0)),
        (TruncatedNormal(), replace(CONTEXT, devices=6)),
        (TruncatedNormal(), replace(CONTEXT, partition=Digits(per_device=2))),
        (TruncatedNormal(), replace(CONTEXT, labels=LABELS[::-1].copy())),
    ],
)
def test_whatever_differs_is_planned_anew(arrivals, context):
    schedule_of(TruncatedNormal(), CONTEXT)
    found, alone = arrays(arrivals, context), arrivals.plan(context)
    assert alone.events is not None
    for ours, theirs in zip(
        found, [alone.shards.samples, alone.shards.offsets, alone.events.devices, alone.events.starts], strict=True
    ):
        assert np.array_equal(ours, theirs)
