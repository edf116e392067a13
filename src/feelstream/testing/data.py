"""The contracts of arrival processes and of partitions: `feelstream check my_arrivals.py:Mine`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from feelstream.arrays import Ints
from feelstream.data.recording import Recording
from feelstream.data.streaming import ARRIVALS, PARTITIONS
from feelstream.data.streaming.arrivals import ArrivalContext, Arrivals, ArrivalSchedule, Events
from feelstream.data.streaming.partition import IID, Partition
from feelstream.testing.contract import Kind, Promise, frozen, stored_and_read

LABELS = frozen(np.random.default_rng(1).integers(0, 10, 120).astype(np.uint8))
RECORDING = Recording(
    owner=frozen((np.arange(120) % 6).astype(np.int32)), time_s=frozen(np.arange(120) // 6 * 2.0 + 0.5)
)
ORDINARY = ArrivalContext(LABELS, 10, 6, 12, 4.0, 9, IID(), RECORDING)
FEW = Recording(RECORDING.owner[:3], RECORDING.time_s[:3])  # type: ignore[index]
CASES = {
    "ordinary": ORDINARY,
    "one device": replace(ORDINARY, devices=1),
    "one round": replace(ORDINARY, rounds=1),
    "a long run": replace(ORDINARY, rounds=80),
    "more devices than samples": replace(ORDINARY, labels=LABELS[:3], recording=FEW),
    "one label": replace(ORDINARY, labels=frozen(np.full(120, 2, np.uint8))),
}


@dataclass(frozen=True)
class Arrived:
    """A round of an arrival process, and what it has planned; the same the second time and from a stored state."""

    context: ArrivalContext
    plan: ArrivalSchedule
    plan_again: ArrivalSchedule
    counts: NDArray
    counts_again: NDArray
    counts_from_store: NDArray
    state: NDArray
    total: Ints  # (K,) samples so far, this round's included


def _play(process: Arrivals, context: ArrivalContext) -> Iterator[tuple[str, Arrived]]:
    plan, again = process.plan(context), process.plan(context)
    K, total = context.devices, np.zeros(context.devices, np.int64)
    state = process.init(K, np.random.default_rng(2)) if plan.events is None else np.empty(0)
    for t in range(1, context.rounds + 1):
        if plan.events is None or again.events is None:
            stored = stored_and_read({"state": state})["state"]
            given = [frozen(state), state, frozen(stored)]
            found = [process.counts(t, each, K, np.random.default_rng([3, t])) for each in given]
            counts, state = [np.asarray(each) for each, _ in found], found[0][1]
        else:
            counts = [_full(plan.events, t, K), _full(again.events, t, K), _full(plan.events, t, K)]
        total = total + (counts[0] if counts[0].shape == (K,) else 0)
        yield f"round {t}", Arrived(context, plan, again, counts[0], counts[1], counts[2], state, total)


def _full(events: Events, round: int, devices: int) -> Ints:
    found = np.zeros(devices, np.int64)
    who, many = events.of(round)
    np.add.at(found, who, many)
    return found


def _shards(step: Arrived) -> str | None:
    offsets, samples, K = step.plan.shards.offsets, step.plan.shards.samples, step.context.devices
    if offsets.shape != (K + 1,) or offsets[0] != 0 or (np.diff(offsets) < 0).any() or offsets[-1] != len(samples):
        return f"the offsets {offsets!r:.100} do not cut {len(samples)} samples into {K} shards"
    inside = samples.dtype.kind in "iu" and bool(((samples >= 0) & (samples < len(step.context.labels))).all())
    return None if inside else f"the shards name samples that are not there: {samples!r:.100}"


def _counts(step: Arrived) -> str | None:
    counts, sizes = step.counts, step.plan.shards.sizes
    if counts.shape != (step.context.devices,) or counts.dtype.kind not in "iu" or (counts < 0).any():
        return f"the samples of each device must be whole numbers, 0 or more, not {counts!r:.100}"
    if step.plan.events is not None and (step.total > sizes).any():
        return f"{step.total.tolist()} samples have arrived of shards of {sizes.tolist()}"
    return None


def _plain(step: Arrived) -> str | None:
    plain = isinstance(step.state, np.ndarray) and step.state.dtype.kind in "biuf"
    return None if plain and np.isfinite(step.state).all() else f"it is {step.state!r:.100}"


def _repeatable(step: Arrived) -> str | None:
    one, other = step.plan.shards, step.plan_again.shards
    if not np.array_equal(one.samples, other.samples) or not np.array_equal(one.offsets, other.offsets):
        return "the second plan has other shards"
    same = np.array_equal(step.counts, step.counts_again)
    return None if same else f"{step.counts.tolist()} arrived, and the second time {step.counts_again.tolist()}"


def _checkpoint(step: Arrived) -> str | None:
    same = np.array_equal(step.counts, step.counts_from_store)
    return (
        None if same else f"{step.counts.tolist()} arrived, and {step.counts_from_store.tolist()} from a stored state"
    )


@dataclass(frozen=True)
class Split:
    """Who owns each sample, and who does the second time."""

    context: ArrivalContext
    owner: NDArray
    again: NDArray


def _play_split(partition: Partition, context: ArrivalContext) -> Iterator[tuple[str, Split]]:
    context = replace(context, partition=partition)
    yield "the split", Split(context, *(context.owners(np.random.default_rng(context.seed)) for _ in range(2)))


def _owners(step: Split) -> str | None:
    owner, K = step.owner, step.context.devices
    plain = isinstance(owner, np.ndarray) and owner.shape == step.context.labels.shape and owner.dtype.kind == "i"
    if plain and bool(((owner >= -1) & (owner < K)).all()):
        return None
    return f"each of {len(step.context.labels)} samples needs an owner from 0 to {K - 1}, or -1, not {owner!r:.100}"


def _same_owners(step: Split) -> str | None:
    return None if np.array_equal(step.owner, step.again) else f"{step.owner!r:.100}, then {step.again!r:.100}"


ARRIVAL_PROCESS: Kind[Arrived] = Kind(
    "arrivals",
    ARRIVALS,
    CASES,
    _play,
    (
        Promise("shards", "every device has a shard of samples that exist", _shards),
        Promise("counts", "every round brings whole numbers of samples, by its end no more than there are", _counts),
        Promise("state", "its state is one plain, finite array", _plain),
        Promise("repeatable", "the same settings, seed and state bring the same samples", _repeatable),
        Promise("checkpoint", "it goes on the same from a stored state", _checkpoint),
    ),
    may_refuse=True,
)
PARTITION: Kind[Split] = Kind(
    "partition",
    PARTITIONS,
    CASES,
    _play_split,
    (
        Promise("owners", "every sample has one owner among the devices, or none", _owners),
        Promise("repeatable", "the same labels and random numbers give the same owners", _same_owners),
    ),
    may_refuse=True,
)
